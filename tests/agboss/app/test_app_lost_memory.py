"""Memory work that stood still while the world went on: another process has the thread, or another file is at the path."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from agboss import (
    AnswerFinish,
    App,
    Compaction,
    LeaseLostError,
    ModelReply,
    ModelRequest,
    StoreError,
    TaskStart,
    agent,
    chain,
    create_app,
    workflow,
)
from agboss_memory import BaseMemoryStrategy, MemoryContext, MemoryStore, MemoryView, SqliteStore, Summary
from agboss_memory.contract import utc_now
from agboss_memory.stores import MemoryClaim, Store, SummaryWrite
from agboss_memory.testing.store_requests import WIDE, ref


@agent(name="writer", model="ollama:stub", prompt="Write.")
class Writer: ...


@workflow(
    name="w",
    version="1",
    flow=[chain(TaskStart, Writer, AnswerFinish)],
    compaction=Compaction(every=2, keep=3, model="ollama:stub"),
)
class Desk: ...


class Broken(BaseMemoryStrategy):
    """Cannot be made."""

    def __init__(self) -> None:
        raise ZeroDivisionError

    def build_context(self, context: MemoryContext) -> MemoryView:
        return MemoryView(history=context.history)


@agent(name="unopenable", model="ollama:stub", prompt="Write.", memory_strategy=Broken)
class Unopenable: ...


class Stub:
    """Answers at once, but for one purpose only when told to."""

    def __init__(self, waits: str = "", fails: bool = False) -> None:
        self.asked, self.go = asyncio.Event(), asyncio.Event()
        self.calls = 0
        self._waits, self._fails = waits, fails

    async def generate(self, request: ModelRequest) -> ModelReply:
        self.calls += 1
        if request.purpose == self._waits and not self.go.is_set():
            self.asked.set()
            await self.go.wait()
            if self._fails:
                raise RuntimeError("no")
        return ModelReply(text=f"secret {request.purpose}")


def desk(store: Store | str, stub: Stub, work: str = "inline") -> App:
    return create_app(Desk, store=store, models={"ollama:stub": stub}, memory_work=work)  # pyright: ignore[reportArgumentType]


@pytest.fixture(params=["memory", "sqlite"])
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[tuple[Store, Store]]:
    """The store of the process that stands still, and that of another one."""
    store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "s.db", synchronous="NORMAL")
    other = store if request.param == "memory" else SqliteStore(tmp_path / "s.db", synchronous="NORMAL")
    await other.open()
    yield store, other
    await other.close()


@asynccontextmanager
async def taken_over(store: Store, *, undone: bool, attempts: int = 1) -> AsyncGenerator[None]:
    """Another process finds the lease ended, and summarises the block; a person undoes that."""
    key = (await store.thread(ref(), WIDE)).key
    claim = MemoryClaim(key=key, holder="other", now=utc_now() + timedelta(seconds=30), window=WIDE)
    state = await store.hold(claim)
    assert state is not None
    made = Summary(first=1, last=2, text="of the other one")
    kept = await store.write_summary(SummaryWrite(key=key, tern=2, summary=made, now=utc_now(), fence=state.fence))
    if undone:
        assert await store.retire(key, kept.id, utc_now()) is not None
    await store.release(key, state.fence, 2)
    yield
    after = await store.copy(ref())
    assert [(one.summary.text, one.summary.state) for one in after.summaries] == [
        ("of the other one", "retired" if undone else "active")
    ]
    assert [(one.state, one.attempts, one.error) for one in after.blocks] == [
        ("retired" if undone else "done", attempts, "")
    ]
    assert await store.check() == ()


@pytest.mark.parametrize("undone", [False, True], ids=["done", "undone"])
@pytest.mark.parametrize("fails", [False, True], ids=["writes", "fails"])
async def test_b170_whoever_lost_the_thread_writes_nothing_but_its_cost(
    stores: tuple[Store, Store], fails: bool, undone: bool
) -> None:
    store, other = stores
    stub = Stub("compaction", fails)
    async with desk(store, stub) as app:
        await app.execute("one", thread="t", create_thread=True)
        second = asyncio.create_task(app.execute("two", thread="t"))
        await stub.asked.wait()
        async with taken_over(other, undone=undone):
            stub.go.set()
            result = await second
        assert result.memory is None
        assert [warning for warning in result.warnings if "memory work ends here" in warning]
        paid = (await app.threads.get("t")).terns[-1]
        assert [one.purpose for one in paid.usage] == (["answer"] if fails else ["answer", "compaction"])
        before = stub.calls
        third = await app.execute("three", thread="t")
        assert (third.answer, stub.calls) == ("secret answer", before + 1)
        assert [one.text for one in await app.memory.summaries("t")] == ([] if undone else ["of the other one"])
        shown = (await app.memory.view("t", "writer")).messages
        assert any("of the other one" in row.shown for row in shown) != undone


@asynccontextmanager
async def owing(store: Store, stub: Stub) -> AsyncGenerator[App]:
    """An App whose thread owes a summary: somebody broke off the work."""
    async with desk(store, stub) as app:
        await app.execute("one", thread="t", create_thread=True)
        second = asyncio.create_task(app.execute("two", thread="t"))
        await stub.asked.wait()
        assert await app.cancel("t")
        await second
        stub.asked.clear()
        yield app


async def test_recover_leaves_a_thread_that_it_has_lost(stores: tuple[Store, Store]) -> None:
    store, other = stores
    stub = Stub("compaction")
    async with owing(store, stub) as app:
        recovering = asyncio.create_task(app.recover())
        await stub.asked.wait()
        async with taken_over(other, undone=False, attempts=2):
            stub.go.set()
            assert await recovering == ()


async def test_compact_says_that_it_has_lost_the_thread(stores: tuple[Store, Store]) -> None:
    store, other = stores
    stub = Stub("compaction")
    async with owing(store, stub) as app:
        compacting = asyncio.create_task(app.memory.compact("t"))
        await stub.asked.wait()
        async with taken_over(other, undone=True, attempts=2):
            stub.go.set()
            with pytest.raises(LeaseLostError, match="only its cost was stored"):
                await compacting


async def replace_file(folder: Path) -> None:
    """Another file, with a thread of another owner under the same numbers."""
    async with desk(f"sqlite:///{folder}/other.db", Stub()) as app:
        await app.execute("other", thread="victim", create_thread=True)
    (folder / "s.db").rename(folder / "away.db")
    (folder / "other.db").rename(folder / "s.db")


@pytest.mark.parametrize("again", [False, True], ids=["untouched", "in use"])
async def test_a_summary_of_a_file_that_was_replaced_goes_nowhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, again: bool
) -> None:
    stub = Stub("compaction")
    async with desk(f"sqlite:///{tmp_path}/s.db", stub, "background") as app:
        await app.execute("one", thread="mine", create_thread=True)
        await app.execute("two", thread="mine")
        await stub.asked.wait()
        await replace_file(tmp_path)
        with pytest.raises(StoreError) as caught:
            await app.threads.list()
        assert caught.value.code == "store.replaced"
        if again:
            await app.execute("more", thread="new", create_thread=True)
        before = await app.threads.export("victim")
        stub.go.set()
        await app.aclose()
    async with desk(f"sqlite:///{tmp_path}/s.db", Stub()) as app:
        after = await app.threads.export("victim")
        assert (after.copy, after.copy.summaries) == (before.copy, ())
        assert await app.threads.check() == ()
    lost = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert [one.getMessage() for one in lost] == [
        "2 calls (0 USD) of turn 2 could not be booked; the file of its thread is gone"
    ]


async def test_the_cost_of_a_turn_of_a_file_that_was_replaced_is_booked_to_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stub = Stub("answer")
    async with desk(f"sqlite:///{tmp_path}/s.db", stub) as app:
        first = asyncio.create_task(app.execute("one", thread="mine", create_thread=True))
        await stub.asked.wait()
        await replace_file(tmp_path)
        stub.go.set()
        with pytest.raises(StoreError) as caught:
            await first
        assert caught.value.code == "store.replaced"
        (before,) = (await app.threads.get("victim")).terns
        await app.execute("more", thread="new", create_thread=True)
        assert (await app.threads.get("victim")).terns == (before,)
        assert [one.getMessage() for one in caplog.records if one.levelno == logging.ERROR] == [
            "1 calls (0 USD) of turn 1 could not be booked; the file of its thread is gone"
        ]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_one_store_serves_two_apps_until_both_have_closed(tmp_path: Path, kind: str) -> None:
    store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "s.db", synchronous="NORMAL")
    stub = Stub("answer")
    one, two = desk(store, Stub()), desk(store, stub)
    await one.execute("one", thread="t", create_thread=True)
    second = asyncio.create_task(two.execute("two", thread="t"))
    await stub.asked.wait()
    await one.aclose()
    stub.go.set()
    assert (await second).tern == 2
    await two.aclose()
    if isinstance(store, SqliteStore):
        with pytest.raises(StoreError):
            await store.thread(ref(), WIDE)


async def test_an_app_that_fails_to_open_leaves_the_store_to_the_others(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db", synchronous="NORMAL")

    async with desk(store, Stub()) as app:
        await app.execute("one", thread="t", create_thread=True)
        failing = create_app(Unopenable, store=store, models={"ollama:stub": Stub()})
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                await failing.execute("two")
        await failing.aclose()
        assert (await app.execute("three", thread="t")).tern == 2
    with pytest.raises(StoreError):
        await store.thread(ref(), WIDE)
