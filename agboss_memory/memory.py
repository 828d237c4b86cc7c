"""``Memory``: window memory for any framework, without a workflow.

memory = Memory(store, {"kind": "auto_compact"}, model=my_model, window=128_000, system="Be brief.")
await memory.remember("thread-1", [Message(role="user", content="Hello")])
view = await memory.view("thread-1")            # view.system, view.messages: send exactly these
await memory.remember("thread-1", [Message(role="assistant", content="Hi!")])
await memory.after_turn("thread-1")             # compacts when it is time
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from weakref import WeakValueDictionary

from agboss_memory.atoms import atoms_of
from agboss_memory.attachments import Attachment, PartContentReader
from agboss_memory.config import AnyMemoryConfig, SummarizingWindowConfig, parse_memory_config
from agboss_memory.contract import (
    Budget,
    CompressReport,
    LeftOut,
    MemoryContext,
    MemoryModel,
    MemoryTurn,
    MemoryView,
    TokenCounter,
    utc_now,
)
from agboss_memory.errors import AgbossError, InvalidInputError, UnknownThreadError
from agboss_memory.explain import Explanation, explained
from agboss_memory.fit import WindowFit, effective_window, estimate, fit_window, text_tokens
from agboss_memory.mapper import DefaultLlmMessageMapper, LastStep, LlmMessageMapper, MapRequest, Prepared, last_step
from agboss_memory.messages import EPOCH, Message, Summary, UsageRecord, as_utc
from agboss_memory.metering import Meter, MeteredModel, metered
from agboss_memory.records import Record, Struct, replace
from agboss_memory.stores import Append, FileWrite, Store, StoredConversation, ThreadRef, WindowSpec
from agboss_memory.strategies import WindowStrategy, strategy_for
from agboss_memory.tokens import TiktokenCounter, load_counter
from agboss_memory.tokens.calibration import Calibration
from agboss_memory.tool_results import capped, fetch_tool_result, holds_stub
from agboss_memory.wording import quoted

CALLS_PER_TURN = 4
"""Model calls for memory between two user messages, Compact not counted."""

_OPEN_TURNS = 1024
_PAGE = 500


class WindowView(Record, kw_only=True):
    """What to send for the next model call.

    Attributes:
        system: The system text, with summaries where the configuration places them there.
        messages: The exact messages, oldest first; ``content`` is what to send.
        summaries: The summaries in it, oldest range first.
        left_out: Ranges of messages that are in neither, with the reason.
        tokens: Estimate of the request in tokens, without the reply reserve.
        window: The window that it was fitted to, in tokens.
        offers_fetch: A stub is in it: offer ``fetch_tool_result`` to the model.
        warnings: What went wrong without stopping the view.
        usage: Model calls that were made for it; they are booked.
    """

    system: str
    messages: tuple[Message, ...]
    summaries: tuple[Summary, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    tokens: int = 0
    window: int = 0
    offers_fetch: bool = False
    warnings: tuple[str, ...] = ()
    usage: tuple[UsageRecord, ...] = ()


class _Turn(Struct):
    """What is known of a running turn of a thread: the last view, and the calls that are left."""

    view: MemoryView | None = None
    calls: int = CALLS_PER_TURN


class Memory:
    """One agent's memory in all its threads.

    Args:
        store: An open store.
        config: A memoryConfig as model, dict or JSON; None = ``summarizing_window`` with its defaults.
        model: Writes summaries.
        counter: Counts tokens as the agent's model does; None = o200k_base.
        window: The model's context window in tokens; None = unknown, 8192 are assumed.
        system: System text of the agent.
        agent: Name of the agent.
        workflow: Name under which its threads are stored.
        owner: Owner of the threads; None = nobody in particular.
        schemas: Tool schemas as they are sent, for the estimate.
        reply_reserve: Tokens kept free for the answer; None = an eighth of a known window, at most 4096.
        stub_model: Writes stubs of tool results; None = by rule.
        summary_window: Window of ``model`` in tokens; None = ``window``.
        max_result_chars: Characters that are stored of a tool's output, by the tool's name.
        accepts: Kinds (``image``, ``document``, ``audio``, ``video``) and media types that the model takes.
        mapper: Turns stored messages into what is sent; None = ``DefaultLlmMessageMapper``.
        reader: Reads the bytes of attachments; None = the store's own ``files``.
        clock: Gives the moment, aware UTC.

    Raises:
        InvalidInputError: An argument is not acceptable: a class instead of an object, one text instead of a list.
    """

    def __init__(
        self,
        store: Store,
        config: AnyMemoryConfig | Mapping[str, Any] | str | None = None,
        *,
        model: MemoryModel | None = None,
        counter: TokenCounter | None = None,
        window: int | None = None,
        system: str = "",
        agent: str = "agent",
        workflow: str = "memory",
        owner: str | None = None,
        schemas: Sequence[str] = (),
        reply_reserve: int | None = None,
        stub_model: MemoryModel | None = None,
        summary_window: int | None = None,
        max_result_chars: Mapping[str, int] | None = None,
        accepts: Sequence[str] = (),
        mapper: LlmMessageMapper | None = None,
        reader: PartContentReader | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        if not agent:
            raise InvalidInputError("memory.agent", "the agent of a Memory has no name", "pass agent=")
        asked = ("store", store, "append"), ("model", model, "generate"), ("stub_model", stub_model, "generate")
        for name, given, method in (*asked, ("counter", counter, "count"), ("mapper", mapper, "map")):
            _check_object(name, given, method)
        for name, number in (("window", window), ("reply_reserve", reply_reserve), ("summary_window", summary_window)):
            whole = isinstance(number, int) and not isinstance(number, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
            if number is not None and not (whole and (number >= 0 or name != "reply_reserve")):  # no window: unknown
                raise _refused(name, number, "use a whole number of tokens, or None")
        for name, items in (("schemas", schemas), ("accepts", accepts)):
            if isinstance(items, str) or not isinstance(items, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise _refused(name, items, f"write {name}=[...]")
        if max_result_chars is not None and not isinstance(max_result_chars, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise _refused("max_result_chars", max_result_chars, "use a dict of characters by the tool's name")
        self.config: AnyMemoryConfig = SummarizingWindowConfig() if config is None else parse_memory_config(config)
        self.counter: TokenCounter = counter or TiktokenCounter()
        self.window = window
        self.system = system
        self._calibration = Calibration()
        self._fixed = (system, *schemas)
        self._store = store
        self._agent = agent
        self._workflow = workflow
        self._owner = owner
        self._reserve = _reserve(window) if reply_reserve is None else reply_reserve
        self._limits = dict(max_result_chars or {})
        self._accepts = tuple(accepts)
        self._mapper = mapper or DefaultLlmMessageMapper()
        self._reader = reader
        self._clock = clock
        self._turns: OrderedDict[str, _Turn] = OrderedDict()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        name = getattr(self.config, "summary_model", None) or ""
        self.strategy: WindowStrategy = strategy_for(
            self.config,
            MeteredModel(model, self.counter, agent, name, "compaction") if model else None,
            stub_model=MeteredModel(stub_model, self.counter, agent, name, "memory") if stub_model else None,
            summary_window=summary_window,
        )

    async def remember(
        self,
        thread: str,
        messages: Iterable[Message],
        *,
        attachments: Sequence[Attachment] = (),
        imported: bool = False,
    ) -> tuple[Message, ...]:
        """Append what was said: the task, calls, results, the answer. Gives the messages as they are stored.

        Args:
            thread: The thread; it is made when it does not exist.
            messages: In order.
            attachments: Files that come with the newest user message among them.
            imported: They come from elsewhere and may answer a call twice; the last result counts then.

        Raises:
            InvalidInputError: A system or synthetic message, a second result of a call, or files without a user
                message. Nothing was stored.
        """
        own = _with_files([self._checked(message) for message in messages], attachments)
        await load_counter(self.counter)
        counts = await asyncio.to_thread(text_tokens, own, self.counter)
        own = [
            replace(message, tokens=tokens, tokenizer=self.counter.name)
            for message, tokens in zip(own, counts, strict=True)
        ]
        async with self._lock(thread):
            if not imported and any(message.role == "tool" for message in own):
                await self._refuse_repeated(thread, own)
            request = Append(
                workflow=self._workflow,
                thread=thread,
                owner=self._owner,
                agent=self._agent,
                messages=tuple(own),
                now=self._clock(),
            )
            appended = await self._store.append(request)
            for item in attachments:  # the log names them by now, so that nobody removes them
                await self._store.files.write(FileWrite(data=item.data))
        if any(message.role == "user" for message in own):
            self._turns.pop(thread, None)
        return tuple(replace(message, number=n) for n, message in enumerate(own, appended.first))

    async def view(self, thread: str, task: str | None = None) -> WindowView:
        """What to send next.

        Args:
            thread: The thread; one that does not exist is empty.
            task: The user's text when it is not remembered yet.

        Raises:
            StrategyError: ``memory.fixed-overhead`` or ``memory.open-round``: the request cannot fit.
        """
        async with self._lock(thread):
            log = await self.log(thread)
            turn = self._turn(thread)
            meter = Meter(store=self._store, key=log.key, left=turn.calls, clock=self._clock)
            with metered(meter):
                made = await self._build(thread, log, task, turn.view)
            turn.calls = meter.left or 0
            turn.view = made.view
            return await self._window_view(made, tuple(meter.usage))

    async def _build(
        self, thread: str, log: StoredConversation, task: str | None, previous: MemoryView | None, *, index: int = 0
    ) -> Prepared:
        budget = await self._budget()
        context = MemoryContext(
            thread_id=thread,
            owner=self._owner,
            agent=self._agent,
            now=self._clock(),
            task=task or "",
            budget=budget,
            call_index=index or int(previous is not None),
            previous=previous,
            log=log,
        )
        made = await self.strategy.build_context(context)

        async def prepare(extra: int) -> Prepared:
            kept_free = replace(budget, reply_reserve=budget.reply_reserve + extra)
            asked = WindowFit(agent=self._agent, view=made, fixed=self._fixed, budget=kept_free)
            view = await asyncio.to_thread(fit_window, asked)
            return Prepared(view=view, messages=view.messages or ())

        request = MapRequest(
            messages=(),
            thread_id=thread,
            owner=self._owner,
            agent=self._agent,
            accepts=self._accepts,
            reader=self._reader or self._store.files,
        )
        return await last_step(
            LastStep(
                mapper=self._mapper,
                request=request,
                prepare=prepare,
                fixed=lambda view: (self._system_of(view), *self._fixed[1:]),
                budget=budget,
                exact=True,
            )
        )

    def _system_of(self, view: MemoryView) -> str:
        return "\n\n".join(text for text in (self.system, view.system_addendum) if text)

    async def _window_view(self, made: Prepared, usage: tuple[UsageRecord, ...]) -> WindowView:
        view = made.view
        system = self._system_of(view)
        fixed = (system, *self._fixed[1:])
        return WindowView(
            system=system,
            messages=made.messages,
            summaries=view.summaries,
            left_out=view.left_out,
            tokens=await asyncio.to_thread(estimate, made.messages, self.counter, fixed=fixed),
            window=effective_window(self.window),
            offers_fetch=holds_stub(made.messages),
            warnings=view.warnings,
            usage=usage,
        )

    def reported(self, view: WindowView, input_tokens: int) -> None:
        """Tell what the provider counted for a view that was sent: later estimates are calibrated by it.

        Args:
            view: The view, as ``view`` gave it.
            input_tokens: What the provider reports, tokens read from a cache included.
        """
        self._calibration.observe(view.tokens, input_tokens)

    async def after_turn(self, thread: str) -> CompressReport:
        """Let the kind do what is due after an answer. A failure is reported, never raised: the next turn tries again."""
        async with self._lock(thread):
            log = await self.log(thread)
            turn = self._turns.pop(thread, None) or _Turn()
            meter = Meter(store=self._store, key=log.key, left=turn.calls, clock=self._clock)
            finished = MemoryTurn(
                thread_id=thread,
                owner=self._owner,
                agent=self._agent,
                now=self._clock(),
                log=log,
                budget=await self._budget(),
            )
            try:
                with metered(meter):
                    report = (await self.strategy.update_memory(finished)).report or CompressReport()
            except AgbossError as error:
                report = CompressReport(error_code=error.code, error=error.message)
            return replace(report, usage=tuple(meter.usage))

    async def compress(self, thread: str) -> CompressReport:
        """Summarise now, because a person asked for it.

        Raises:
            CompactionError: The summariser failed; what it did before is kept.
        """
        async with self._lock(thread):
            log = await self.log(thread)
            meter = Meter(store=self._store, key=log.key, left=None, clock=self._clock)
            context = MemoryContext(
                thread_id=thread,
                owner=self._owner,
                agent=self._agent,
                now=self._clock(),
                budget=await self._budget(),
                log=log,
            )
            with metered(meter):
                report = await self.strategy.compress(context)
            return replace(report, usage=tuple(meter.usage))

    async def explain(self, thread: str, task: str | None = None) -> Explanation:
        """The next view, piece by piece, with reasons. It never calls a model for a summary."""
        async with self._lock(thread):
            log = await self.log(thread)
            meter = Meter(store=self._store, key=log.key, left=0, clock=self._clock)
            with metered(meter):
                made = await self._build(thread, log, task, None, index=1)
            return await explained(
                made.view,
                log,
                kind=self.config.kind,
                config=self.config.model_dump(mode="json"),
                system=self.system,
                counter=self.counter,
                window=effective_window(self.window),
                sent=made.messages,
            )

    async def fetch_tool_result(self, thread: str, id: object) -> str:
        """The full text of a tool result of this thread, or a text that begins with ``Error:``."""
        return await fetch_tool_result(await self.log(thread), id)

    async def undo(self, thread: str, summary: int) -> Summary | None:
        """Retire a summary by its id: its messages are live again. None when there is no such active one."""
        log = await self.log(thread)
        mine = await self._store.summaries(log.key, self._agent)
        if all(item.id != summary for item in mine):
            return None
        return await self._store.retire(log.key, summary, self._clock())

    async def forget(self, thread: str) -> None:
        """Delete a thread with all that belongs to it. Raises UnknownThreadError, ThreadOwnerError."""
        self._turns.pop(thread, None)
        await self._store.delete_thread(self._ref(thread))

    def _ref(self, thread: str) -> ThreadRef:
        return ThreadRef(workflow=self._workflow, thread=thread, owner=self._owner)

    async def log(self, thread: str) -> StoredConversation:
        """This agent's conversation in a thread as the store keeps it; empty when there is none."""
        try:
            key = (await self._store.thread(self._ref(thread), WindowSpec())).key
        except UnknownThreadError as error:
            if error.code != "run.unknown-thread":
                raise
            key = 0
        return StoredConversation(self._store, key, self._agent, clock=self._clock)

    async def _budget(self) -> Budget:
        await load_counter(self.counter)
        overhead = sum(await asyncio.to_thread(self.counter.count, list(self._fixed)))
        return Budget(
            window=self.window,
            reply_reserve=self._reserve,
            overhead=overhead,
            counter=self.counter,
            calibration=self._calibration.factor,
        )

    def _turn(self, thread: str) -> _Turn:
        turn = self._turns.setdefault(thread, _Turn())
        self._turns.move_to_end(thread)
        while len(self._turns) > _OPEN_TURNS:
            self._turns.popitem(last=False)
        return turn

    def _lock(self, thread: str) -> asyncio.Lock:
        lock = self._locks.get(thread)
        if lock is None:
            lock = self._locks[thread] = asyncio.Lock()
        return lock

    def _checked(self, message: Message) -> Message:
        if message.role == "system":
            raise InvalidInputError(
                "memory.system-message", "system text is no part of a conversation", "pass it as Memory(system=)"
            )
        if message.state != "live" or message.media:
            raise InvalidInputError(
                "memory.view-message",
                f"a message with state {message.state!r} and {len(message.media)} media parts was made for a view; "
                "nobody said it",
                "remember only what the user, the model and the tools said",
            )
        content = message.content
        if message.role == "tool":
            content = capped(content, self._limits.get(message.tool_name or "", 0))
        moment = self._clock() if message.created_at == EPOCH else as_utc(message.created_at)
        return replace(message, content=content, agent=self._agent, number=0, tern=0, created_at=moment)

    async def _refuse_repeated(self, thread: str, own: Sequence[Message]) -> None:
        log = await self.log(thread)
        talk = await log.newest(_PAGE)
        fresh = [replace(message, number=talk.last + place) for place, message in enumerate(own, 1)]
        for atom in atoms_of((*talk.messages, *fresh)):
            if any(message.number > talk.last for message in (*atom.extra, *atom.results)) and atom.extra:
                raise InvalidInputError(
                    "memory.repeated-result",
                    f"call {atom.extra[0].tool_call_id!r} has a result already; the first one counts",
                    "remember each result once",
                    thread=thread,
                )


def _with_files(messages: list[Message], attachments: Sequence[Attachment]) -> list[Message]:
    """The messages, the newest one of the user with these files."""
    if not attachments:
        return messages
    place = max((index for index, message in enumerate(messages) if message.role == "user"), default=None)
    if place is None:
        raise InvalidInputError(
            "memory.no-user-message",
            "attachments come with a message of the user; there is none",
            "remember it with them",
        )
    files = (*messages[place].attachments, *(item.record() for item in attachments))
    return [*messages[:place], replace(messages[place], attachments=files), *messages[place + 1 :]]


def _reserve(window: int | None) -> int:
    return 0 if window is None or window <= 0 else min(4096, window // 8)


def _check_object(name: str, given: object, method: str) -> None:
    if given is None and name != "store":
        return
    if isinstance(given, type) or not callable(getattr(given, method, None)):
        hint = f"call it: {given.__name__}(...)" if isinstance(given, type) else f"pass an object with {method}()"
        raise _refused(name, given, hint)


def _refused(name: str, given: object, hint: str) -> InvalidInputError:
    return InvalidInputError("memory.bad-argument", f"Memory: {name}={quoted(given)} cannot be used", hint)
