"""A workflow that uses everything that a Tern can use, over a store that fails at its n-th call.

Every call that was paid for is counted, so that a test can compare it with what was booked.
"""

from __future__ import annotations

import asyncio
import inspect
import sqlite3
from collections.abc import Callable, Coroutine, Generator
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

from agboss import (
    ActionContext,
    AnswerFinish,
    App,
    Compaction,
    Defaults,
    History,
    ModelReply,
    ModelRequest,
    ModelSpec,
    ModelUsage,
    Price,
    TaskStart,
    ToolContext,
    action,
    agent,
    chain,
    create_app,
    tool,
    workflow,
)
from agboss.errors import StoreError, StoreLockedError
from agboss_memory import (
    AutoCompactConfig,
    BaseMemoryStrategy,
    MemoryContext,
    MemoryModel,
    MemoryStore,
    MemoryTurn,
    MemoryUpdate,
    MemoryView,
    SqliteStore,
    ToolCall,
)
from agboss_memory.stores import Store
from agboss_memory.stores.files import FileStore

PRICED = ModelSpec("ollama:stub", price=Price(input=Decimal(1), output=Decimal(2)))
SMALL = ModelSpec("ollama:stub", price=Price(input=Decimal(1), output=Decimal(2)), context_window=500, max_tokens=60)
PURPOSES = ("answer", "compaction", "memory")


class Desk:
    """The models and tools of one episode, and what they were paid.

    Attributes:
        paid: Caller and purpose of every call that gave something.
        calls: Model calls that were begun.
        at: Number of the model call that goes wrong, 0 = none.
        wrong: What happens then.
    """

    def __init__(self) -> None:
        self.paid: list[tuple[str, str]] = []
        self.calls = 0
        self.at = 0
        self.wrong: Callable[[], Coroutine[Any, Any, None]] | None = None

    async def generate(self, request: ModelRequest) -> ModelReply:
        self.calls += 1
        if self.calls == self.at and self.wrong is not None:
            await self.wrong()
        await asyncio.sleep(0)
        self.paid.append((request.caller, request.purpose))
        usage = ModelUsage(input_tokens=10, output_tokens=1)
        asked = max(n for n, message in enumerate(request.messages) if message.role == "user")
        if request.caller == "finder" and len(request.messages) == asked + 1:
            calls = tuple(ToolCall(id=f"c{name}", name="find", arguments=f'{{"what": "{name}"}}') for name in "ab")
            return ModelReply(tool_calls=calls, usage=usage)
        long = (request.caller, request.purpose) == ("keeper", "answer")
        return ModelReply(text="This and that. " * (40 if long else 1), usage=usage)


desk = Desk()


@tool
async def find(what: str, ctx: ToolContext) -> str:
    """Find it."""
    await asyncio.sleep(0)
    ctx.report_cost(2, "search")
    desk.paid.append(("find", "tool"))
    await asyncio.sleep(0)
    return f"found {what}"


class Facts(BaseMemoryStrategy):
    """Learns with a model of its own."""

    def __init__(self, model: MemoryModel) -> None:
        self._model = model

    def build_context(self, context: MemoryContext) -> MemoryView:
        return MemoryView(history=context.history[-2:], summaries=context.summaries)

    async def update_memory(self, turn: MemoryTurn) -> MemoryUpdate:
        await self._model.generate(f"What is to be kept of {turn.tern.answer!r:.20}?")
        return MemoryUpdate()


@agent(name="finder", model=PRICED, prompt="Find what is asked for.", tools=[find], memory_strategy=Facts)
class Finder: ...


@action(name="mark")
class Mark:
    """Marks what was found."""

    async def run(self, ctx: ActionContext) -> str:
        await asyncio.sleep(0)
        return f"marked: {ctx.input}"


@agent(name="keeper", model=SMALL, prompt="Keep it.", memory_config=AutoCompactConfig(compact_at_ratio=Decimal("0.3")))
class Keeper: ...


@workflow(
    name="fault-desk",
    version="1.0.0",
    flow=[chain(TaskStart, Finder, Mark, Keeper, AnswerFinish)],
    defaults=Defaults(history=History(limit=2, summaries=2)),
    compaction=Compaction(every=2, keep=4, model=PRICED),
)
class FaultDesk: ...


def open_desk(store: Store, **settings: Any) -> App:
    """The App over a store, with a fresh account of what is paid."""
    global desk
    desk = Desk()
    return create_app(FaultDesk, store=store, models={"ollama:stub": desk}, **settings)


class Faults:
    """Decides which store call goes wrong.

    Attributes:
        calls: Names of the calls since it was armed.
        at: Number of the call that goes wrong, 0 = none.
        lasting: Whether all later ones do too.
        strike: What is done to the call: it raises, or it does something and returns.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.at = 0
        self.lasting = False
        self.strike: Callable[[], None] | None = None

    def arm(self, at: int, strike: Callable[[], None] | None, *, lasting: bool = False) -> None:
        self.calls, self.at, self.strike, self.lasting = [], at, strike, lasting

    def heal(self) -> None:
        self.at, self.strike = 0, None

    def pass_by(self, name: str) -> None:
        self.calls.append(name)
        hit = len(self.calls) == self.at or (self.lasting and self.at and len(self.calls) > self.at)
        if hit and self.strike is not None:
            self.strike()


class _Counted:
    """Passes every async call of an object by the faults."""

    def __init__(self, inner: Any, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name in ("open", "close", "remove", "lost") or not inspect.iscoroutinefunction(found):
            return found

        async def call(*arguments: Any, **named: Any) -> Any:
            self._faults.pass_by(name)
            return await found(*arguments, **named)

        return call


class FaultyStore(_Counted):
    """A store whose calls are counted and may go wrong before they begin."""

    @property
    def url(self) -> str:
        return self._inner.url

    @property
    def files(self) -> FileStore:
        return cast("FileStore", _Counted(self._inner.files, self._faults))


class FaultySqlite(SqliteStore):
    """A file whose n-th transaction goes wrong at its end, in SQLite's own words."""

    def __init__(self, path: Path, faults: Faults) -> None:
        super().__init__(path, synchronous="NORMAL", timeout=0)
        connection: Any = self._connection
        plain = connection._transaction

        def transaction(begin: str, call: Callable[[sqlite3.Connection], Any], *rest: Any) -> Any:
            def then_fail(opened: sqlite3.Connection) -> Any:
                result = call(opened)
                faults.pass_by(begin)
                return result

            return plain(begin, then_fail, *rest)

        connection._transaction = transaction


SQLITE_CODES = {
    "locked": (sqlite3.SQLITE_BUSY, "database is locked"),
    "disk-full": (sqlite3.SQLITE_FULL, "database or disk is full"),
    "read-only": (sqlite3.SQLITE_READONLY, "attempt to write a readonly database"),
}


def fail(kind: str, *, sqlite: bool) -> Callable[[], None]:
    """Raises the error of one kind."""

    def strike() -> None:
        if sqlite:
            code, text = SQLITE_CODES[kind]
            error = sqlite3.OperationalError(text)
            error.sqlite_errorcode = code
            raise error
        raise (StoreLockedError if kind == "locked" else StoreError)(f"store.{kind}", "It failed.", "Try again.")

    return strike


class Stepped:
    """Runs a coroutine and counts how often it waits; at the n-th time its task is cancelled.

    Args:
        work: The coroutine.
        at: When; 0 = never.
        late: Cancel in the moment in which the wait ends, instead of when it begins.
    """

    def __init__(self, work: Coroutine[Any, Any, Any], at: int, *, late: bool = False) -> None:
        self.work = work
        self.at = at
        self.late = late
        self.waits = 0

    def __await__(self) -> Generator[Any, Any, Any]:
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        error: BaseException | None = None
        while True:
            try:
                waited: Any = self.work.send(None) if error is None else self.work.throw(error)
            except StopIteration as end:
                return end.value
            self.waits += 1
            error = None
            if self.waits == self.at:
                if self.late and waited is not None:

                    def woken(_: object) -> None:
                        task.cancel()

                    waited.add_done_callback(woken)
                else:
                    task.cancel()
            try:
                yield waited
            except BaseException as raised:
                error = raised


def memory_or_sqlite(kind: str, folder: Path, faults: Faults) -> Store:
    """A store in which calls (memory) or transactions (SQLite) are counted and may go wrong."""
    if kind == "memory":
        return cast("Store", FaultyStore(MemoryStore(), faults))
    return FaultySqlite(folder / "desk.db", faults)
