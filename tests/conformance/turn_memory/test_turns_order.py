"""Commit, then the stream's answer, then every strategy once, then compaction, then the result."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from desks import MODEL, FaultyStore, Gate, Models, desk, sum_up, talk, yes

from agboss import (
    AnswerFinish,
    Compaction,
    FunctionRouter,
    ModelError,
    ModelRequest,
    ModelSpec,
    StrategyError,
    TaskStart,
    agent,
    chain,
    create_app,
    from_,
    router,
    workflow,
)
from agboss_memory import BaseMemoryStrategy, MemoryContext, MemoryTurn, MemoryUpdate, MemoryView


class Watching(BaseMemoryStrategy):
    """Says what it is told; fails as often as it is told."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.turns: list[MemoryTurn] = []
        self.failures = 0

    def build_context(self, context: MemoryContext) -> MemoryView:
        if context.task == "break":
            raise RuntimeError("no view today")
        return MemoryView(history=context.history[-2:])

    async def update_memory(self, turn: MemoryTurn) -> MemoryUpdate:
        self.log.append(f"update {turn.tern.number}")
        self.turns.append(turn)
        if self.failures:
            self.failures -= 1
            raise RuntimeError("the fact store is down")
        return MemoryUpdate()


class Other(Watching): ...


def two_strategies(every: int | None = 2) -> tuple[type[Any], Watching, Other]:
    mine, other = Watching(), Other()

    @agent(name="one", model=MODEL, memory_strategy=mine)
    class One: ...

    @agent(name="two", model=MODEL, memory_strategy=mine)
    class Two: ...

    @agent(name="three", model=MODEL, memory_strategy=other)
    class Three: ...

    def pick(context: Any) -> str:
        return next((name for name in ("two", "three") if name in context.task), "one")

    @router(name="door", router=FunctionRouter(pick))
    class Door: ...

    @workflow(
        name="desk",
        flow=[chain(TaskStart, Door), from_(Door).routes(One, Two, Three, then=AnswerFinish)],
        compaction=None if every is None else Compaction(every=every, keep=3, model=ModelSpec(MODEL)),
    )
    class Desk: ...

    return Desk, mine, other


class Recording(FaultyStore):
    def __init__(self, log: list[str]) -> None:
        super().__init__()
        self.log = log

    async def commit(self, request: Any) -> Any:
        done = await super().commit(request)
        self.log.append("commit")
        return done

    async def write_summary(self, request: Any) -> Any:
        self.log.append("summary")
        return await super().write_summary(request)


async def test_the_order_after_an_answer() -> None:
    workflow_, mine, other = two_strategies(every=1)
    other.log = mine.log
    models = Models(yes, sum_up)
    async with create_app(workflow_, store=Recording(mine.log), models=models) as app:
        async with app.stream("task") as run:
            async for event in run:
                if event.type in ("answered", "compacted", "ended"):
                    mine.log.append(event.type)
                    await asyncio.sleep(0)
            result = await run.result()
        mine.log.append("returned")
    assert result.memory == "turns 1–1 → summary 1/3"
    assert [line for line in mine.log if line not in ("answered", "compacted", "ended")] == [
        "commit",
        "update 1",
        "update 1",
        "summary",
        "returned",
    ]
    assert [line for line in mine.log if line in ("answered", "compacted", "ended")] == [
        "answered",
        "compacted",
        "ended",
    ]


async def test_the_answer_is_streamed_before_memory_work_ends() -> None:
    gate = Gate()
    async with create_app(desk(every=1), store="memory://", models=Models(yes, gate)) as app:
        async with app.stream("task") as run:
            events = aiter(run)
            async for event in events:
                if event.type == "answered":
                    break
            await gate.reached.wait()
            assert (await app.threads.get(run.thread)).terns[0].answer == "Yes."
            gate.open.set()
            assert (await run.result()).memory == "turns 1–1 → summary 1/10"


async def test_every_strategy_learns_of_every_turn_once_whoever_answered() -> None:
    workflow_, mine, other = two_strategies()
    async with create_app(workflow_, store="memory://", models=Models(yes, sum_up)) as app:
        first = await app.execute("one")
        await app.execute("two", thread=first.thread)
        await app.execute("three", thread=first.thread)
    assert [turn.tern.number for turn in mine.turns] == [1, 2, 3]
    assert [turn.tern.number for turn in other.turns] == [1, 2, 3]
    assert [turn.agent for turn in mine.turns] == ["one", "two", "three"]
    assert [[message.content for message in turn.messages] for turn in mine.turns] == [
        ["one", "Yes."],
        ["two", "Yes."],
        [],
    ]
    assert [[message.content for message in turn.messages] for turn in other.turns] == [[], [], ["three", "Yes."]]
    keys = [turn.idempotency_key for turn in (*mine.turns, *other.turns)]
    assert len(set(keys)) == 6
    assert all(turn.tern.answer == "Yes." for turn in mine.turns)


async def test_failed_turns_are_learned_from_and_cancelled_ones_are_not() -> None:
    workflow_, mine, _ = two_strategies(every=None)
    gate = Gate()

    async def broken(_: ModelRequest) -> str:
        raise ModelError("model.http", "no luck", "")

    models = Models(broken, sum_up)
    async with create_app(workflow_, store="memory://", models=models) as app:
        with pytest.raises(ModelError):
            await app.execute("one", thread="t", create_thread=True)
        models.answer = gate
        running = asyncio.create_task(app.execute("one", thread="t"))
        await gate.reached.wait()
        await app.cancel("t")
        await asyncio.gather(running, return_exceptions=True)
        models.answer = yes
        await app.execute("one", thread="t")
    assert [(turn.tern.number, turn.tern.status) for turn in mine.turns] == [(1, "failed"), (3, "answered")]


async def test_a_failing_update_is_tried_at_the_next_three_turns_with_the_same_key() -> None:
    workflow_, mine, _ = two_strategies(every=None)
    async with create_app(workflow_, store="memory://", models=Models(yes, sum_up)) as app:
        mine.failures = 1
        results = await talk(app, 2)
        assert mine.log == ["update 1", "update 1", "update 2"]
        assert mine.turns[0].idempotency_key == mine.turns[1].idempotency_key
        assert mine.turns[0].messages[0].content == mine.turns[1].messages[0].content
        assert mine.turns[0].tern.task == mine.turns[1].tern.task == "task 1."
        assert results[0].status == "answered"
        assert "'Watching'" in results[0].warnings[0]
        assert "attempt 1 of 4" in results[0].warnings[0]
        assert results[1].warnings == ()
        mine.log.clear()
        mine.failures = 100
        results = await talk(app, 5, first=3)
    tries = [int(line.removeprefix("update ")) for line in mine.log]
    assert tries.count(3) == 4
    assert tries.count(4) == 4
    assert tries.count(7) == 1
    assert "given up" in "".join(results[3].warnings)


async def test_an_update_in_the_work_of_a_crash_is_repaired_once() -> None:
    workflow_, mine, other = two_strategies(every=None)
    store = FaultyStore()
    async with create_app(workflow_, store=store, models=Models(yes, sum_up)) as app:
        store.faults["settle"] = ModelError("store.locked", "locked", "")
        result = (await talk(app, 1))[0]
        assert "left to the next turn" in result.warnings[0]
        assert len(mine.turns) == 1
        assert other.turns == []
        await talk(app, 2, first=2)
    assert mine.log == ["update 1", "update 1", "update 2", "update 3"]
    assert mine.turns[0].idempotency_key == mine.turns[1].idempotency_key
    assert other.log == ["update 1", "update 2", "update 3"]


async def test_a_strategy_that_gives_no_view_fails_the_turn_by_name() -> None:
    workflow_, _, _ = two_strategies(every=None)
    async with create_app(workflow_, store="memory://", models=Models(yes, sum_up)) as app:
        with pytest.raises(StrategyError) as raised:
            await app.execute("break", thread="t", create_thread=True)
        assert "'Watching'" in raised.value.message
        assert raised.value.code == "memory.build-context"
        assert raised.value.run.status == "failed"
        assert (await app.execute("go on", thread="t")).answer == "Yes."
