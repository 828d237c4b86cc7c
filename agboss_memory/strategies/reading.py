"""How window strategies read a conversation: pages, newest first, until their budget is spent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from agboss_memory.atoms import Atom, atoms_of, in_loop
from agboss_memory.contract import Conversation, ConversationLog, MemoryContext, MemoryTurn, TokenCounter
from agboss_memory.fit.estimate import counter_of, texts_of
from agboss_memory.messages import Message, Summary
from agboss_memory.records import Record, replace
from agboss_memory.tokens import count_async, load_counter

PAGE = 500
"""Messages read at once by kinds that have no setting for it."""

Shape = Callable[[tuple[Atom, ...]], Awaitable[tuple[Atom, ...]]]
"""From live atoms to what the view shows of them, every message with the tokens of what it shows."""


class Loaded(Record, kw_only=True):
    """What was read.

    Attributes:
        atoms: Live atoms, oldest first, the running turn included; every message has its tokens.
        shown: The same as the view would show them.
        summaries: Active summaries, oldest range first.
        first: Lowest number that was read; 1 = all was.
        last: Number of the newest stored message.
        live_tokens: Text tokens of all live messages, read or not, and of the running turn.
        stored: Numbers of the stored messages among ``atoms``.
    """

    atoms: tuple[Atom, ...]
    shown: tuple[Atom, ...]
    summaries: tuple[Summary, ...] = ()
    first: int = 1
    last: int = 0
    live_tokens: int = 0
    stored: frozenset[int] = frozenset()


class PlainLog:
    """A log over the plain values of a context, so that a strategy can be tried without a store. It keeps nothing."""

    def __init__(self, context: MemoryContext) -> None:
        self._context = context
        messages = sorted(context.messages, key=lambda message: message.number)
        if messages and all(message.number <= 0 for message in messages):
            messages = [replace(message, number=n) for n, message in enumerate(context.messages, 1)]
        self._messages = tuple(messages)

    async def newest(self, limit: int) -> Conversation:
        """See ``ConversationLog.newest``."""
        last = self._messages[-1].number if self._messages else 0
        own = [s for s in self._context.summaries if s.kind != "turns"]
        return Conversation(messages=self._messages, summaries=tuple(own), last=last, live_tokens=0, uncounted=last)

    async def older(self, before: int, limit: int) -> tuple[Message, ...]:
        """See ``ConversationLog.older``."""
        return await self._context.older_messages(before, limit)

    async def message(self, number: int) -> Message | None:
        """See ``ConversationLog.message``."""
        return next((message for message in self._messages if message.number == number), None)

    async def write_counts(self, counts: Mapping[int, int], tokenizer: str) -> None:
        """Nothing is kept."""

    async def compress_result(self, number: int, stub: str, tokens: int) -> bool:
        """Nothing is kept."""
        return False

    async def save_summary(self, summary: Summary) -> Summary:
        """Nothing is kept."""
        return summary


class Reader:
    """Reads one conversation for one call; made anew each time.

    Args:
        context: What the strategy was given.
        page: Messages read at once.
    """

    def __init__(self, context: MemoryContext | MemoryTurn, page: int = PAGE) -> None:
        self.context = context if isinstance(context, MemoryContext) else _context_of(context)
        self.log: ConversationLog = self.context.log or PlainLog(self.context)
        self.counter: TokenCounter = counter_of(self.context.budget)
        self._page = page

    async def newest(self, limit: int) -> Loaded:
        """The newest ``limit`` stored messages and the running turn, whether or not summarised.

        In a tool loop that is longer than that, as many more as it takes to see its task.
        """
        await load_counter(self.counter)
        talk = await self.log.newest(limit)
        stored = list(await self._counted(talk.messages[-limit:]))
        current = await self._current(talk)
        atoms = atoms_of((*stored, *current))
        while stored[:1] and _unopened(atoms):
            older = await self._counted(await self.log.older(stored[0].number, PAGE))
            if not older:
                break
            stored[:0] = older
            atoms = atoms_of((*stored, *current))
        first = stored[0].number if stored else talk.last + 1
        return Loaded(atoms=atoms, shown=atoms, first=first, last=talk.last, stored=frozenset(m.number for m in stored))

    async def live(self, shape: Shape, limit: int | None) -> Loaded:
        """Live messages from the newest back, until what is shown of them exceeds ``limit`` tokens; None = all.

        The newest user message is read in any case.
        """
        await load_counter(self.counter)
        talk = await self.log.newest(self._page)
        stored = list(await self._counted(talk.messages))
        current = await self._current(talk)
        begin = first_live(talk.summaries)
        while True:
            first = stored[0].number if stored else talk.last + 1
            atoms = tuple(atom for atom in atoms_of((*stored, *current)) if _is_live(atom, talk.summaries))
            shown = await shape(atoms)
            spent = limit is not None and sum(map(shown_tokens, shown)) > limit
            if first <= begin or (spent and any(atom.from_user for atom in atoms)):
                break
            older = await self._counted(await self.log.older(first, self._page))
            if not older:
                break
            stored[:0] = older
        return Loaded(
            atoms=atoms,
            shown=shown,
            summaries=talk.summaries,
            first=first,
            last=talk.last,
            live_tokens=await self._live_tokens(talk, atoms),
            stored=frozenset(message.number for message in stored),
        )

    async def at_most_live(self) -> int | None:
        """Text tokens of all live messages by the log's own sum, without reading one; None when it has no full sum."""
        talk = await self.log.newest(0)
        return None if talk.uncounted else talk.live_tokens

    async def _live_tokens(self, talk: Conversation, atoms: Sequence[Atom]) -> int:
        if isinstance(self.log, PlainLog):
            return sum(rendered_tokens(message) for atom in atoms for message in atom.members)
        now = sum(m.tokens or 0 for atom in atoms for m in atom.members if m.number > talk.last)
        if talk.uncounted:
            await self._count_all(talk)
            talk = await self.log.newest(0)
        return talk.live_tokens + now

    async def _count_all(self, talk: Conversation) -> None:
        """Count every message that has no count, page by page; done once per old conversation."""
        before = talk.last + 1
        while page := await self.log.older(before, PAGE):
            await self._counted(page)
            before = page[0].number
            if before <= 1:
                break

    async def _current(self, talk: Conversation) -> list[Message]:
        """What the running turn said, numbered as a store would."""
        if talk.current:
            return list(await self._counted(talk.current))
        context = self.context
        given = context.current or ((Message(role="user", content=context.task),) if context.task else ())
        messages = [replace(message, number=talk.last + place) for place, message in enumerate(given, 1)]
        return list(await self._counted(messages, write=False))

    async def _counted(self, messages: Sequence[Message], *, write: bool = True) -> tuple[Message, ...]:
        name = self.counter.name
        todo = [message for message in messages if message.tokens is None or message.tokenizer != name]
        if not todo:
            return tuple(messages)
        texts = [texts_of(message) for message in todo]
        counts = iter(await count_async(self.counter, [text for group in texts for text in group]))
        found = {message.number: sum(next(counts) for _ in group) for message, group in zip(todo, texts, strict=True)}
        if write:
            await self.log.write_counts(found, name)
        return tuple(
            replace(message, tokens=found[message.number], tokenizer=name) if message.number in found else message
            for message in messages
        )


def _unopened(atoms: Sequence[Atom]) -> bool:
    """Whether a tool loop is open, or one of its results is all that was read of it, and its task is not there."""
    return (in_loop(atoms) or atoms[-1].orphan) and not any(atom.from_user for atom in atoms)


def _context_of(turn: MemoryTurn) -> MemoryContext:
    return MemoryContext(
        thread_id=turn.thread_id,
        owner=turn.owner,
        agent=turn.agent,
        now=turn.now,
        messages=turn.messages,
        budget=turn.budget,
        log=turn.log,
    )


def rendered_tokens(message: Message) -> int:
    """Text tokens of a stored message as it counts: of its stub when it has one."""
    return (message.tokens or 0) if message.compressed_tokens is None else message.compressed_tokens


def shown_tokens(atom: Atom) -> int:
    """Text tokens of what a view shows of an atom."""
    return sum(message.tokens or 0 for message in atom.shown)


def first_live(summaries: Sequence[Summary]) -> int:
    """The lowest number that no summary covers."""
    number = 1
    for summary in summaries:
        if summary.first > number:
            break
        number = max(number, summary.last + 1)
    return number


def _is_live(atom: Atom, summaries: Sequence[Summary]) -> bool:
    """Whether a message of it is covered by no summary: an atom that a boundary splits is live as a whole."""
    return any(not any(s.first <= number <= s.last for s in summaries) for number in atom.numbers) or not atom.numbers
