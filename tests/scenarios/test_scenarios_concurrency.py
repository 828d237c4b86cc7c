"""Faults of classes J and K: two at once, deletion, cancellation, and work that is overtaken."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from desks import MODEL, FaultyStore, Gate, Models, desk, raw_turns, shown_summaries, sum_up, talk, yes

from agboss import (
    AnswerFinish,
    App,
    ModelRequest,
    TaskStart,
    ThreadBusyError,
    ThreadDeletedError,
    UnknownThreadError,
    agent,
    chain,
    create_app,
    tool,
    workflow,
)
from agboss.testing import ScriptedModels, call_tool
from agboss_memory import MemoryStore


async def test_b061_two_turns_of_one_thread_come_one_after_the_other(tmp_path: Path) -> None:
    """Two execute() at once on one thread: both stored, in order, the second sees the first."""
    gate = Gate("First.")
    seen: list[ModelRequest] = []

    async def answer(request: ModelRequest) -> str:
        seen.append(request)
        return await gate(request) if len(seen) == 1 else "Second."

    async with create_app(desk(), store=f"sqlite:///{tmp_path}/a.db", models=Models(answer, sum_up)) as app:
        first = asyncio.create_task(app.execute("task 1.", thread="t", create_thread=True))
        await gate.reached.wait()
        second = asyncio.create_task(app.execute("task 2.", thread="t"))
        gate.open.set()
        results = [await first, await second]
        terns = (await app.threads.get("t")).terns
    assert [result.tern for result in results] == [1, 2]
    assert [(tern.task, tern.answer) for tern in terns] == [("task 1.", "First."), ("task 2.", "Second.")]
    assert raw_turns(seen[1]) == [1]


async def test_b061_a_busy_thread_is_refused_when_the_policy_says_so() -> None:
    """Policy reject: the second caller gets ThreadBusyError and nothing is stored for it."""
    gate = Gate()
    app = create_app(desk(), store="memory://", models=Models(gate, sum_up), thread_policy="reject")
    async with app:
        first = asyncio.create_task(app.execute("task 1.", thread="t", create_thread=True))
        await gate.reached.wait()
        with pytest.raises(ThreadBusyError):
            await app.execute("task 2.", thread="t")
        gate.open.set()
        await first
        assert len((await app.threads.get("t")).terns) == 1


async def test_b061_the_queue_time_out_holds_for_all_who_wait() -> None:
    """Two wait for a held thread; the time-out of the second runs although the first waiter gets the thread."""
    gates = [Gate(), Gate()]
    order = iter(gates)
    app = create_app(desk(), store="memory://", models=Models(lambda r: next(order)(r), sum_up), queue_timeout=0.2)
    async with app:
        first = asyncio.create_task(app.execute("1", thread="t", create_thread=True))
        await gates[0].reached.wait()
        second = asyncio.create_task(app.execute("2", thread="t"))
        await asyncio.sleep(0)
        gates[0].open.set()
        await first
        third = asyncio.create_task(app.execute("3", thread="t"))
        with pytest.raises(ThreadBusyError):
            await third
        gates[1].open.set()
        assert (await second).tern == 2


async def test_b063_two_first_uses_open_the_app_once() -> None:
    """Two first operations of a new App at once: one opening, both threads in the same store."""

    class Slow(MemoryStore):
        opened = 0

        async def open(self) -> None:
            self.opened += 1
            await asyncio.sleep(0)

    store = Slow()
    app = create_app(desk(), store=store, models=Models(yes, sum_up))
    await asyncio.gather(
        app.execute("a", thread="t", create_thread=True), app.execute("b", thread="t", create_thread=True)
    )
    assert store.opened == 1
    assert sorted(tern.task for tern in (await app.threads.get("t")).terns) == ["a", "b"]
    await app.aclose()


async def test_b064_several_apps_on_one_file_do_not_hurt_each_other(tmp_path: Path) -> None:
    """Three Apps on one SQLite file, 20 turns on 5 threads at once: no lock error, no hole, no torn turn."""
    apps = [
        create_app(desk(every=2, keep=3), store=f"sqlite:///{tmp_path}/a.db", models=Models(yes, sum_up))
        for _ in range(3)
    ]
    await apps[0].execute("open")

    async def one(number: int) -> int:
        app: App = apps[number % 3]
        return (await app.execute(f"task {number}.", thread=f"t{number % 5}", create_thread=True)).tern

    numbers = await asyncio.gather(*[one(number) for number in range(20)])
    assert sorted(numbers) == sorted([1, 2, 3, 4] * 5)
    for number in range(5):
        terns = (await apps[0].threads.get(f"t{number}")).terns
        assert [tern.number for tern in terns] == [1, 2, 3, 4]
        assert {tern.task for tern in terns} == {f"task {n}." for n in range(number, 20, 5)}
        summaries = await apps[0].memory.summaries(f"t{number}")
        assert [(item.first, item.last) for item in summaries] == [(1, 2), (3, 4)]
    for app in apps:
        await app.aclose()


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_b065_a_deleted_thread_stays_deleted(kind: str, tmp_path: Path) -> None:
    """Delete while a turn runs: the late turn is refused, the thread does not come back, a new one is empty."""
    gate = Gate()
    url = "memory://" if kind == "memory" else f"sqlite:///{tmp_path}/a.db"
    models = Models(yes, sum_up)
    async with create_app(desk(), store=url, models=models) as app:
        await talk(app, 1)
        models.answer = gate
        running = asyncio.create_task(app.execute("task 2.", thread="t", idempotency_key="k"))
        await gate.reached.wait()
        await app.threads.delete("t")
        gate.open.set()
        with pytest.raises(ThreadDeletedError):
            await running
        with pytest.raises(UnknownThreadError):
            await app.threads.get("t")
        models.answer = yes
        again = await app.execute("task 2.", thread="t", create_thread=True, idempotency_key="k")
        assert again.tern == 1
        assert models.calls.count("compaction") == 0


async def test_b065_a_thread_deleted_during_memory_work_stays_deleted() -> None:
    """Delete while the summary is written: the turn was answered, no summary and no thread come back."""
    gate = Gate()
    async with create_app(desk(every=1), store="memory://", models=Models(yes, gate)) as app:
        running = asyncio.create_task(app.execute("task 1.", thread="t", create_thread=True))
        await gate.reached.wait()
        await app.threads.delete("t")
        gate.open.set()
        result = await running
        assert (result.answer, result.memory) == ("Yes.", None)
        assert await app.threads.list() == ()


async def test_b067_a_summary_covers_its_range_and_nothing_that_came_later() -> None:
    """A slow compaction of turns 1–2 in the background; turn 3 of the same thread waits and stays raw."""
    gate = Gate()
    seen: list[ModelRequest] = []

    async def answer(request: ModelRequest) -> str:
        seen.append(request)
        return "Yes."

    app = create_app(desk(every=2, limit=1), store="memory://", models=Models(answer, gate), memory_work="background")
    async with app:
        await talk(app, 2)
        await gate.reached.wait()
        waiting = asyncio.create_task(talk(app, 2, first=3))
        gate.open.set()
        await waiting
    assert shown_summaries(seen[3]) == ["1–2"]
    assert raw_turns(seen[3]) == [3]


@pytest.mark.parametrize("when", ["before", "during", "after"])
async def test_b068_cancelling_around_the_commit_leaves_no_half_state(when: str) -> None:
    """Cancel before, in the middle of and after the write of a summary: all or nothing, the thread works on."""
    reached, go = asyncio.Event(), asyncio.Event()

    class Stopping(FaultyStore):
        async def write_summary(self, request: Any) -> Any:
            if when == "during":
                done = await super().write_summary(request)
                await self._stop()
                return done
            if when == "before":
                await self._stop()
            return await super().write_summary(request)

        async def _stop(self) -> None:
            if not go.is_set():
                reached.set()
                await go.wait()

    models = Models(yes, sum_up)
    async with create_app(desk(every=1, keep=3), store=Stopping(), models=models) as app:
        running = asyncio.create_task(app.execute("task 1.", thread="t", create_thread=True))
        if when == "after":
            await running
        else:
            await reached.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        go.set()
        result = (await talk(app, 1, first=2))[0]
        assert [(item.first, item.last) for item in await app.memory.summaries("t")] == [(1, 1), (2, 2)]
        assert result.memory is not None
        assert result.memory.endswith("turns 2–2 → summary 2/3")
        booked = [record.purpose for tern in (await app.threads.get("t")).terns for record in tern.usage]
        assert booked.count("compaction") == models.calls.count("compaction")


async def test_b071_cancelling_really_cancels_the_summariser() -> None:
    """The caller is cancelled while the compaction model works: the model sees it, the thread is free."""
    gate = Gate()
    models = Models(yes, gate)
    async with create_app(desk(every=1), store="memory://", models=models) as app:
        running = asyncio.create_task(app.execute("task 1.", thread="t", create_thread=True))
        await gate.reached.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert gate.cancelled
        models.summary = sum_up
        assert (await talk(app, 1, first=2))[0].tern == 2


async def test_b101_no_thread_id_meets_the_line_of_an_idempotency_key() -> None:
    """A thread is named like the inner name of a key's line; the run does not wait for itself."""
    app = create_app(desk(), store="memory://", models=Models(yes, sum_up), queue_timeout=0.2)
    async with app:
        for thread in ("(None, 'k')", "key", "thread", "('key', None, 'k')"):
            result = await app.execute("hi", thread=thread, create_thread=True, idempotency_key=f"k-{thread}")
            assert result.tern == 1
        assert (await app.execute("hi", thread="(None, 'x')", create_thread=True, idempotency_key="x")).tern == 1


@tool
async def ask_again(text: str) -> str:
    """Runs a turn of the thread that is running."""
    return (await APPS[0].execute(text, thread="t")).answer


APPS: list[App] = []


@agent(name="nesting", model=MODEL, tools=[ask_again])
class Nesting: ...


@workflow(name="nesting-desk", flow=[chain(TaskStart, Nesting, AnswerFinish)])
class NestingDesk: ...


async def test_b137_a_turn_that_asks_for_its_own_thread_is_told_at_once() -> None:
    """A tool awaits a turn of its own thread: a clear error at once, no hang until the queue time-out."""
    models = ScriptedModels()
    models.llm(Nesting).then_return(call_tool(ask_again, text="again"), "done")
    async with create_app(NestingDesk, store="memory://", models=models) as app:
        APPS[:] = [app]
        result = await asyncio.wait_for(app.execute("go", thread="t", create_thread=True), 5)
        messages = (await app.threads.export("t")).messages
    assert result.answer == "done"
    assert "NestedRunError" in messages[2].content
    models.verify()
