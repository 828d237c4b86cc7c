"""Work that hangs keeps neither a thread nor an App: whoever gives up first counts as a try, and closing may be bounded."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from desks import desk, talk

from agboss import (
    AgentDefinition,
    AgentRuntime,
    App,
    AppStateError,
    InvalidInputError,
    ModelReply,
    ModelRequest,
    RunResult,
    TernCancelledError,
    TernStatus,
    agent,
    create_app,
)
from agboss.app import lifecycle
from agboss.errors import StoreLockedError, ThreadDeletedError
from agboss_memory import (
    BaseMemoryStrategy,
    MemoryContext,
    MemoryStore,
    MemoryTurn,
    MemoryUpdate,
    MemoryView,
    SqliteStore,
    Store,
)
from agboss_memory.stores.contract import Admission, Admitted, MemoryOutcome, ThreadRef

KINDS = ("memory", "sqlite")


class Work:
    """What hangs, and how often it was begun."""

    def __init__(self) -> None:
        self.hangs = True
        self.begun = asyncio.Event()
        self.tries = 0

    async def do(self) -> None:
        self.tries += 1
        self.begun.set()
        if self.hangs:
            await asyncio.Event().wait()


work: Work


@pytest.fixture(autouse=True)
async def _fresh() -> None:
    global work
    work = Work()


class Learner(BaseMemoryStrategy):
    """Its first Tern hangs."""

    def build_context(self, context: MemoryContext) -> MemoryView:
        return MemoryView(history=context.history[-2:])

    async def update_memory(self, turn: MemoryTurn) -> MemoryUpdate:
        if turn.tern.number == 1:
            await work.do()
        return MemoryUpdate()


@agent(model="ollama:stub", prompt="Answer.", memory_strategy=Learner)
class Student: ...


@agent(model="ollama:stub", prompt="Answer.")
class Plain: ...


class Stub:
    """Answers; hangs for the task ``hang``, and in summaries."""

    heard: threading.Event | None = None

    async def generate(self, request: ModelRequest) -> ModelReply:
        if self.heard is not None:
            self.heard.set()
        if request.purpose == "compaction" or request.messages[-1].content.endswith("hang"):
            await work.do()
        return ModelReply(text="done")


MODELS: dict[str, Any] = {"ollama:stub": Stub(), "openai:gpt-5-mini": Stub()}


def store_of(kind: str, folder: Path) -> Store:
    return MemoryStore() if kind == "memory" else SqliteStore(folder / "log.db", synchronous="NORMAL")


async def given_up(app: App, task: str) -> None:
    """A Tern whose caller gives up as soon as the work has begun."""
    work.begun.clear()
    running = asyncio.create_task(app.execute(task, thread="t", create_thread=True))
    await work.begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def started(app: App, task: str, **settings: Any) -> asyncio.Task[RunResult]:
    """A Tern that is at the work that hangs."""
    work.begun.clear()
    running = asyncio.create_task(app.execute(task, thread="t", create_thread=True, **settings))
    await work.begun.wait()
    return running


async def blocks(app: App) -> list[tuple[int, str, int]]:
    """First Tern, state and tries of each block."""
    runtime = await app._lifecycle.runtime()  # pyright: ignore[reportPrivateUsage]
    state = await runtime.store.thread(ThreadRef(workflow=app.name, thread="t", any_owner=True), runtime.windows.spec)
    found = await runtime.store.blocks(state.key, ("open", "due", "done", "skipped", "retired"), 99)
    return [(block.first, block.state, block.attempts) for block in sorted(found, key=lambda block: block.first)]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_try_that_a_caller_breaks_off_counts(kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    async with create_app(Student, store=store_of(kind, tmp_path), models=MODELS) as app:
        for number in range(1, 5):
            await given_up(app, f"task {number}.")
        results = await talk(app, 2, first=5)
    assert [one.tern for one in results] == [5, 6]
    assert work.tries == 4
    told = [line.message for line in caplog.records if "update_memory for turn 1" in line.message]
    assert "attempt 1 of 4, tried again at the next turn): it was cancelled" in told[0]
    assert "attempt 4 of 4, given up): it was cancelled" in told[-1]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_summary_that_callers_break_off_is_skipped_in_the_end(kind: str, tmp_path: Path):
    async with create_app(desk(every=2), store=store_of(kind, tmp_path), models=MODELS) as app:
        await talk(app, 1)
        for number in range(2, 6):
            await given_up(app, f"task {number}.")
        assert work.tries == 4  # the block of turns 3 and 4 was never reached
        work.hangs = False
        (after,) = await talk(app, 1, first=6)
        assert after.memory == "turns 3–4 → summary 1/10; turns 5–6 → summary 2/10"
        assert await blocks(app) == [(1, "skipped", 4), (3, "done", 1), (5, "done", 1)]


async def test_a_compact_that_a_person_stops_is_no_try():
    async with create_app(desk(every=2), store="memory://", models=MODELS) as app:
        await talk(app, 1)
        for number in range(2, 6):
            await given_up(app, f"task {number}.")
        before = await blocks(app)
        assert before[0] == (1, "skipped", 4)
        work.begun.clear()
        asked = asyncio.create_task(app.memory.compact("t"))
        await work.begun.wait()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert await blocks(app) == before


class ForgetsOnce(MemoryStore):
    """The first end of memory work cannot be stored: as if the process had died there."""

    failed = False

    async def settle(self, request: MemoryOutcome) -> None:
        if not self.failed and request.work is not None:
            self.failed = True
            raise StoreLockedError("store.locked", "another process writes", "try again")
        await super().settle(request)


async def test_work_that_a_crash_left_stops_one_turn_at_most():
    async with create_app(Student, store=ForgetsOnce(), models=MODELS) as app:
        await given_up(app, "task 1.")
        await given_up(app, "task 2.")  # the work comes before its answer, as nobody has tried it yet
        following = await started(app, "task 3.")
        following.cancel()
        with pytest.raises(asyncio.CancelledError):
            await following
        assert [str(one.status) for one in (await app.threads.get("t")).terns] == ["answered", "cancelled", "answered"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("component", [Student, desk(every=1)], ids=["strategy", "compaction"])
async def test_cancel_breaks_off_memory_work_and_the_turn_keeps_its_answer(
    kind: str, component: type[Any], tmp_path: Path
):
    async with create_app(component, store=store_of(kind, tmp_path), models=MODELS) as app:
        running = await started(app, "task 1.")
        assert await app.cancel("t")
        result = await running
        assert result.status is TernStatus.ANSWERED
        assert any("it was cancelled" in line for line in result.warnings)
        assert "memory work was cancelled" in result.warnings[-1]
        work.hangs = False
        (following,) = await talk(app, 1, first=2)
        assert following.status is TernStatus.ANSWERED
        assert work.tries >= 2
        assert not await app.cancel("t")


async def test_cancel_frees_a_thread_that_waits_for_work_in_the_background():
    async with create_app(Student, store="memory://", models=MODELS, memory_work="background") as app:
        await (await started(app, "task 1."))
        following = asyncio.create_task(app.execute("task 2.", thread="t"))
        work.hangs = False
        assert await app.cancel("t")
        assert (await following).tern == 2


@pytest.mark.parametrize("kind", KINDS)
async def test_a_cancel_that_comes_while_the_last_write_is_under_way_changes_nothing(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = store_of(kind, tmp_path)
    settle = store.settle

    async def cancelled_meanwhile(request: MemoryOutcome) -> None:
        if request.work is not None:
            assert await app.cancel("t")
        await settle(request)

    monkeypatch.setattr(store, "settle", cancelled_meanwhile)
    work.hangs = False
    async with create_app(Student, store=store, models=MODELS) as app:
        async with asyncio.timeout(60) as bound:
            (result,) = await talk(app, 1)
        assert not bound.expired()
        assert result.status is TernStatus.ANSWERED
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        await asyncio.sleep(0)  # nothing is left that would be raised here
        assert (await app.threads.get("t")).terns[0].status is TernStatus.ANSWERED


@pytest.mark.parametrize("kind", KINDS)
async def test_closing_with_a_grace_stores_what_runs_as_cancelled_and_refuses_what_waits(kind: str, tmp_path: Path):
    store = store_of(kind, tmp_path)
    app = create_app(Plain, store=store, models=MODELS)
    running = await started(app, "hang")
    waiting = asyncio.create_task(app.execute("task 2.", thread="t"))
    await asyncio.sleep(0)  # it stands in line
    await app.aclose(0)
    with pytest.raises(TernCancelledError):
        await running
    with pytest.raises(AppStateError) as refused:
        await waiting
    assert refused.value.code == "app.closed"
    async with create_app(Plain, store=store, models=MODELS) as again:
        assert [one.status for one in (await again.threads.get("t")).terns] == [TernStatus.CANCELLED]
        assert await again.threads.check() == ()
        assert (await again.execute("task 2.", thread="t")).tern == 2


@pytest.mark.parametrize("kind", KINDS)
async def test_closing_with_a_grace_refuses_what_waits_for_another_process(kind: str, tmp_path: Path):
    store = store_of(kind, tmp_path)
    second = store if kind == "memory" else store_of(kind, tmp_path)
    async with create_app(Plain, store=store, models=MODELS) as app:
        running = await started(app, "hang")
        other = create_app(Plain, store=second, models=MODELS)
        async with listening(other) as waits:
            waiting = asyncio.create_task(other.execute("task 2.", thread="t"))
            await waits.wait()
        await other.aclose(0)
        with pytest.raises(AppStateError):
            await waiting
        work.hangs = False
        await app.cancel("t")
        with pytest.raises(TernCancelledError):
            await running
        assert (await app.execute("task 3.", thread="t")).tern == 2  # no ticket is left before it


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("task", ["task 1.", "hang"])
async def test_a_turn_that_is_admitted_while_the_app_ends_is_stopped_or_answered(
    kind: str, task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = store_of(kind, tmp_path)
    app = create_app(Plain, store=store, models=MODELS)
    runtime = await app._lifecycle.runtime()  # pyright: ignore[reportPrivateUsage]
    admit = store.admit

    async def ended_meanwhile(request: Admission) -> Admitted:
        admitted = await admit(request)
        runtime.end()
        return admitted

    monkeypatch.setattr(store, "admit", ended_meanwhile)
    if task == "hang":
        with pytest.raises(TernCancelledError):
            await talk_once(app, task)
    else:
        assert (await talk_once(app, task)).status is TernStatus.ANSWERED
    current = asyncio.current_task()
    assert current is not None
    assert current.cancelling() == 0
    await app.aclose()


async def talk_once(app: App, task: str) -> RunResult:
    return await app.execute(task, thread="t", create_thread=True)


@asynccontextmanager
async def listening(app: App) -> AsyncGenerator[asyncio.Event]:
    """Tells when a Tern of the App waits in the store."""
    waits, store = asyncio.Event(), (await app._lifecycle.runtime()).store  # pyright: ignore[reportPrivateUsage]
    wait = store.wait

    async def told(key: int, seconds: float) -> None:
        waits.set()
        await wait(key, seconds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "wait", told)
        yield waits


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("memory_work", ["inline", "background"])
async def test_closing_with_a_grace_leaves_memory_work_to_the_next_turn(kind: str, memory_work: Any, tmp_path: Path):
    store = store_of(kind, tmp_path)
    app = create_app(Student, store=store, models=MODELS, memory_work=memory_work)
    running = await started(app, "task 1.")
    await app.aclose(0)
    assert (await running).status is TernStatus.ANSWERED
    work.hangs = False
    async with create_app(Student, store=store, models=MODELS) as again:
        await talk(again, 1, first=2)
        assert work.tries == 2
        assert await again.threads.check() == ()


async def test_a_grace_that_is_not_needed_changes_nothing():
    app = create_app(Plain, store="memory://", models=MODELS)
    (result,) = await talk(app, 1)
    await app.aclose(60)
    assert result.answer == "done"
    await app.aclose(0)


async def test_a_second_closing_may_bound_the_first():
    app = create_app(Plain, store="memory://", models=MODELS)
    running = await started(app, "hang")
    patient = asyncio.create_task(app.aclose())
    await asyncio.sleep(0)
    await app.aclose(0)
    await patient
    with pytest.raises(TernCancelledError):
        await running


async def test_a_grace_holds_for_a_turn_that_waits_for_the_app_to_open():
    opens, go = asyncio.Event(), asyncio.Event()

    class OpensSlowly(MemoryStore):
        async def open(self) -> None:
            opens.set()
            await go.wait()

    app = create_app(Plain, store=OpensSlowly(), models=MODELS)
    running = asyncio.create_task(talk_once(app, "hang"))
    await opens.wait()
    closing = asyncio.create_task(app.aclose(0))
    for _ in range(3):
        await asyncio.sleep(0)  # the grace is over
    go.set()
    await closing
    with pytest.raises((AppStateError, TernCancelledError)):
        await running


@pytest.mark.parametrize("grace", [-1, float("nan"), float("inf"), "5", True])
async def test_a_grace_that_is_no_number_of_seconds_is_refused(grace: Any):
    app = create_app(Plain, store="memory://", models=MODELS)
    with pytest.raises(InvalidInputError, match="grace="):
        await app.aclose(grace)
    with pytest.raises(InvalidInputError, match="memory_timeout="):
        create_app(Plain, store="memory://", models=MODELS, memory_timeout=grace)


def test_a_script_closes_with_a_grace_too():
    app = create_app(Plain, store="memory://", models=MODELS)
    failed: list[BaseException] = []

    def run() -> None:
        with pytest.raises(TernCancelledError) as failure:
            app.execute_sync("hang", thread="t", create_thread=True)
        failed.append(failure.value)

    asked = threading.Event()
    MODELS["ollama:stub"].heard = asked
    script = threading.Thread(target=run)
    script.start()
    asked.wait()
    with pytest.raises(InvalidInputError, match="grace="):
        app.close(-1)
    app.close(0)
    script.join()
    assert len(failed) == 1


async def test_a_runtime_of_definitions_closes_with_a_grace_too():
    definition = AgentDefinition.model_validate(
        {"name": "plain", "description": "Answers", "systemPrompt": "Answer.", "model": "ollama:stub"}
    )
    async with AgentRuntime([definition], store="memory://", models=MODELS) as agents:
        session = await agents.open_session("plain")
        running = asyncio.create_task(agents.chat(session, "hang"))
        await work.begun.wait()
        await agents.aclose(0)
        with pytest.raises(TernCancelledError):
            await running


@asynccontextmanager
async def heard(text: str) -> AsyncGenerator[None]:
    """Waits at its end until a line with this text is in the log."""
    seen = asyncio.Event()

    class Watch(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if text in record.getMessage():
                seen.set()

    watch = Watch()
    logging.getLogger("agboss").addHandler(watch)
    try:
        yield
        await seen.wait()
    finally:
        logging.getLogger("agboss").removeHandler(watch)


async def test_closing_tells_what_it_waits_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lifecycle, "PATIENCE_SECONDS", 0.0)
    app = create_app(Plain, store="memory://", models=MODELS)
    running = await started(app, "hang")
    async with heard("waits for turns in ['t'] and for memory work in no thread"):
        closing = asyncio.create_task(app.aclose())
    running.cancel()
    await closing


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", [False, True], ids=["same-app", "another-app"])
@pytest.mark.parametrize(("component", "task"), [(Plain, "hang"), (Student, "task 1.")], ids=["turn", "memory-work"])
async def test_a_deleted_thread_stops_what_runs_in_it(
    kind: str, other: bool, component: type[Any], task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(lifecycle, "RENEW_SECONDS", 0.001)
    store = store_of(kind, tmp_path)
    second = store if kind == "memory" else store_of(kind, tmp_path)
    async with (
        create_app(component, store=store, models=MODELS) as app,
        create_app(component, store=second, models=MODELS) as deleting,
    ):
        running = await started(app, task)
        await (deleting if other else app).threads.delete("t")
        if component is Plain:
            with pytest.raises(ThreadDeletedError):
                await running
        else:
            assert (await running).status is TernStatus.ANSWERED
        work.hangs = False
        (fresh,) = await talk(app, 1)
        assert fresh.tern == 1
