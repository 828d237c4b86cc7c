"""An agent's own conversation while a Tern runs: what the store has, then what was said in the Tern so far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import agboss.events as events
from agboss.errors import CompactionError
from agboss.plan import total
from agboss.run import CompactionReport
from agboss_memory.contract import Conversation, TokenCounter
from agboss_memory.fit import text_tokens
from agboss_memory.messages import Message, Summary, TernStatus
from agboss_memory.records import replace
from agboss_memory.stores import Store, StoredConversation
from agboss_memory.stores.contract import SummaryWrite
from agboss_memory.tool_results import KEPT_RESULTS

if TYPE_CHECKING:
    from agboss.agents import AgentPlan
    from agboss.run import LiveTern

_PAGE = 500


class RunningConversation(StoredConversation):
    """What a window strategy reads and writes while a Tern runs, and right after it.

    Counts and stubs of what the store does not have yet are kept with the message and stored with it. A summary is
    written together with its cost.

    Args:
        live: The Tern.
        agent: Whose conversation.
        recorded: The Tern's messages are in the store already.
    """

    def __init__(self, live: LiveTern, agent: AgentPlan, *, recorded: bool = False) -> None:
        super().__init__(live.store, live.key, agent.name, tern=live.number)
        self._live = live
        self._model = agent.summary_model
        self._said = [] if recorded else live.messages
        self._last: int | None = None
        self._pages: dict[int, Conversation] = {}  # nobody else writes while the Tern runs

    @property
    def _places(self) -> list[int]:
        """Where this agent's messages stand among those of the Tern."""
        return [place for place, message in enumerate(self._said) if message.agent == self.agent]

    async def newest(self, limit: int) -> Conversation:
        """See ``ConversationLog.newest``."""
        talk = self._pages.get(limit)
        if talk is None:
            talk = self._pages[limit] = await super().newest(limit)
        self._last = talk.last
        current = (replace(self._said[place], number=n) for n, place in enumerate(self._places, talk.last + 1))
        return replace(talk, current=tuple(current))

    async def message(self, number: int) -> Message | None:
        """See ``ConversationLog.message``."""
        place = await self._place(number)
        return await super().message(number) if place is None else replace(self._said[place], number=number)

    async def write_counts(self, counts: Mapping[int, int], tokenizer: str) -> None:
        """See ``ConversationLog.write_counts``."""
        stored = dict(counts)
        for number in counts:
            place = await self._place(number)
            if place is not None:
                self._said[place] = replace(self._said[place], tokens=stored.pop(number), tokenizer=tokenizer)
        if stored:
            self._pages.clear()
            await super().write_counts(stored, tokenizer)

    async def compress_result(self, number: int, stub: str, tokens: int) -> bool:
        """See ``ConversationLog.compress_result``."""
        place = await self._place(number)
        if place is None:
            self._pages.clear()
            return await super().compress_result(number, stub, tokens)
        self._said[place] = replace(self._said[place], compressed_content=stub, compressed_tokens=tokens)
        return True

    async def save_summary(self, summary: Summary) -> Summary:
        """See ``ConversationLog.save_summary``."""
        live = self._live
        with live.meter.taken() as usage:
            cost = total(tuple(item.record.usd for item in usage if item.record.purpose == "compaction"))
            own = replace(summary, agent=self.agent, model=summary.model or self._model, usd=cost)
            write = SummaryWrite(
                key=self.key, tern=self.tern, summary=own, now=own.created_at, usage=usage, fence=live.fence
            )
            kept = await self.store.write_summary(write)
        self._pages.clear()
        if kept.text == own.text:
            live.compacted += (kept,)
            if live.emit is not None:
                live.emit(
                    events.Compacted(
                        node="compaction",
                        memory=str(CompactionReport(conversations=(kept,))),
                        input_tokens=sum(item.record.input_tokens for item in usage),
                        output_tokens=sum(item.record.output_tokens for item in usage),
                    )
                )
        return kept

    async def _place(self, number: int) -> int | None:
        """Where a message of the Tern stands, None when it is one of the store."""
        if self._last is None:
            await self.newest(0)
        before = number - (self._last or 0)
        places = self._places
        return places[before - 1] if 0 < before <= len(places) else None


class PreviewConversation(StoredConversation):
    """One agent's conversation, to be looked at: a stub that a strategy would write is kept here, nothing is stored.

    Args:
        store: The store.
        key: The thread's key.
        agent: Whose conversation.
        current: What a past Tern said up to a call of its model; the conversation ends before it.
        summaries: Summaries that stood then; None = those that stand now.
        task_to_come: Look at the request that a next task will make: that task, still without a word, is there as it will
            be, so that every kind keeps, cuts and evicts what it will keep, cut and evict then. ``to_come`` is its number.
    """

    def __init__(
        self,
        store: Store,
        key: int,
        agent: str,
        *,
        current: tuple[Message, ...] = (),
        summaries: tuple[Summary, ...] | None = None,
        task_to_come: bool = False,
    ) -> None:
        super().__init__(store, key, agent)
        self._task_to_come = task_to_come
        self.to_come = 0
        self._current = current
        self._summaries = summaries
        self._stubs: dict[int, tuple[str, int]] = {}
        self._full: set[int] = set()

    async def newest(self, limit: int) -> Conversation:
        """See ``ConversationLog.newest``."""
        if not self._current or self._summaries is None:
            talk = await super().newest(limit)
            talk = replace(talk, messages=self._stubbed(talk.messages))
            if not self._task_to_come:
                return talk
            self.to_come = talk.last + 1
            return replace(talk, current=(Message(role="user", content="", agent=self.agent, number=self.to_come),))
        before = self._current[0].number
        answered = max((one.number for one in self._current if one.role == "assistant"), default=0)
        self._full = {one.number for one in self._current if one.role == "tool" and one.number > answered}
        current = self._as_then(self._current)
        return Conversation(
            messages=await self.older(before, limit) if limit else (),
            summaries=self._summaries,
            last=before - 1,
            live_tokens=await self._live_tokens(before, self._summaries),
            current=self._stubbed(current),
        )

    async def older(self, before: int, limit: int) -> tuple[Message, ...]:
        """See ``ConversationLog.older``."""
        return self._stubbed(self._as_then(await super().older(before, limit)))

    async def write_counts(self, counts: Mapping[int, int], tokenizer: str) -> None:
        """See ``ConversationLog.write_counts``."""
        stored = {number: tokens for number, tokens in counts.items() if number != self.to_come}
        if stored:
            await super().write_counts(stored, tokenizer)

    async def compress_result(self, number: int, stub: str, tokens: int) -> bool:
        """The stub is shown and not stored."""
        self._stubs[number] = (stub, tokens)
        return True

    async def save_summary(self, summary: Summary) -> Summary:
        """A view that is looked at writes no summary. Raises CompactionError."""
        raise CompactionError("compaction.preview", f"a view of {self.agent!r} is only looked at", "use compact")

    def _as_then(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Messages of a past Tern, without stubs that they got later: unread and the newest results were full then.

        Pages come newest first.
        """
        if self._summaries is None:
            return tuple(messages)
        for one in reversed(messages):
            covered = any(summary.first <= one.number <= summary.last for summary in self._summaries)
            if one.role == "tool" and not covered and len(self._full) < KEPT_RESULTS:
                self._full.add(one.number)
        return tuple(
            replace(one, compressed_content=None, compressed_tokens=None) if one.number in self._full else one
            for one in messages
        )

    def _stubbed(self, messages: Iterable[Message]) -> tuple[Message, ...]:
        stubs = self._stubs
        return tuple(
            replace(one, compressed_content=stubs[one.number][0], compressed_tokens=stubs[one.number][1])
            if one.number in stubs
            else one
            for one in messages
        )

    async def _live_tokens(self, before: int, summaries: tuple[Summary, ...]) -> int:
        live = 0
        while page := await super().older(before, _PAGE):
            for one in page:
                if not any(summary.first <= one.number <= summary.last for summary in summaries):
                    full = one.compressed_tokens is None or one.number in self._full
                    live += (one.tokens or 0) if full else one.compressed_tokens or 0
            before = page[0].number
        return live


def outermost(summaries: Iterable[Summary]) -> tuple[Summary, ...]:
    """The summaries that no later one of them replaced."""
    kept: list[Summary] = []
    for summary in summaries:
        kept = [one for one in kept if one.agent != summary.agent or not summary.first <= one.first <= summary.last]
        kept.append(summary)
    return tuple(kept)


def counted(messages: Iterable[Message], counters: Mapping[str, TokenCounter]) -> tuple[Message, ...]:
    """The messages, each with its tokens; agents without a counter keep theirs uncounted."""
    done = list(messages)
    for agent, counter in counters.items():
        todo = [n for n, message in enumerate(done) if message.agent == agent and message.tokenizer != counter.name]
        for place, tokens in zip(todo, text_tokens([done[n] for n in todo], counter), strict=True):
            done[place] = replace(done[place], tokens=tokens, tokenizer=counter.name)
    return tuple(done)


def shared(live: LiveTern, status: TernStatus, answer: str, error: str) -> list[Message]:
    """The Tern as question and answer, for every agent that follows the whole thread and had no part in it."""
    spoke = {message.agent for message in live.messages}
    text = answer if status is TernStatus.ANSWERED else f"[{status}] {answer or error}".rstrip()
    made: list[Message] = []
    for name in live.plan.sharing:
        if name not in spoke:
            asked = Message(role="user", content=live.task, attachments=live.attachments)
            both = asked, Message(role="assistant", content=text)
            made += [replace(message, agent=name, tern=live.number, created_at=live.started_at) for message in both]
    return made
