"""Faults of classes I, M and N: nothing stored twice, nothing lost, every cost booked once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from desks import MODEL, FaultyStore, Gate, Models, desk, sum_up, talk, yes

from agboss import (
    ActionContext,
    AgbossError,
    AnswerFinish,
    LimitExceededError,
    Limits,
    ModelError,
    ModelRequest,
    RunLimits,
    StoreError,
    TaskStart,
    action,
    agent,
    chain,
    create_app,
    tool,
    workflow,
)
from agboss.testing import ScriptedModels, call_tool, reply
from agboss_memory import BaseMemoryStrategy, MemoryContext, MemoryTurn, MemoryUpdate, MemoryView

NO = ModelError("model.http", "the provider said 400", "")


async def test_b054_n_turns_are_n_turns(tmp_path: Path) -> None:
    """Several turns of one thread: exactly task and answer of each are stored, no history a second time."""
    async with create_app(desk(every=2), store=f"sqlite:///{tmp_path}/a.db", models=Models(yes, sum_up)) as app:
        await talk(app, 5)
        stored = await app.threads.export("t")
    assert len(stored.thread.terns) == 5
    assert [message.content for message in stored.messages] == [
        text for number in range(1, 6) for text in (f"task {number}.", "Yes.")
    ]


FAILS: list[Exception] = []


@action(name="polish")
class Polish:
    async def run(self, context: ActionContext) -> str:
        if FAILS:
            raise FAILS.pop()
        return context.answers[-1][1].upper()


@agent(name="writer", model=MODEL)
class Writer: ...


@workflow(name="polish-desk", flow=[chain(TaskStart, Writer, Polish, AnswerFinish)])
class PolishDesk: ...


async def test_b056_a_failing_step_after_the_answer_leaves_no_answer_behind() -> None:
    """The agent answered, the step after it failed, the caller tries again: one answer in history."""
    FAILS[:] = [RuntimeError("once")]
    models = ScriptedModels()
    models.llm(Writer).then_return("yes", "yes")
    async with create_app(PolishDesk, store="memory://", models=models) as app:
        with pytest.raises(AgbossError):
            await app.execute("q", thread="t", create_thread=True)
        result = await app.execute("q", thread="t")
        terns = (await app.threads.get("t")).terns
    assert [(tern.status, tern.answer) for tern in terns] == [("failed", ""), ("answered", "YES")]
    assert result.answer == "YES"
    text = models.llm(Writer).requests[1].messages[0].content
    assert "Q: q\nA: [failed]" in text
    assert "yes" not in text


async def test_b057_a_failed_task_that_comes_again_is_asked_once() -> None:
    """The model failed, the caller repeats the task: it is the task once, the failed turn is told as failed."""
    models = ScriptedModels()
    models.llm(Writer).then_fail(NO).then_return("yes")

    @workflow(name="plain-desk", flow=[chain(TaskStart, Writer, AnswerFinish)])
    class PlainDesk: ...

    async with create_app(PlainDesk, store="memory://", models=models) as app:
        with pytest.raises(ModelError):
            await app.execute("the question", thread="t", create_thread=True)
        await app.execute("the question", thread="t")
        assert [tern.status for tern in (await app.threads.get("t")).terns] == ["failed", "answered"]
    request = models.llm(Writer).requests[1]
    assert len(request.messages) == 1
    assert request.messages[0].content == (
        "Previous turns:\nQ: the question\nA: [failed] the provider said 400\n\nTask:\nthe question"
    )


async def test_b083_the_cost_of_compaction_is_in_the_usage_of_the_run() -> None:
    """Twelve turns with one compaction: its call is listed under its own purpose, the counts agree."""
    models = Models(yes, sum_up)
    async with create_app(desk(every=12), store="memory://", models=models) as app:
        results = await talk(app, 12)
    assert [record.purpose for record in results[-1].usage] == ["answer", "compaction"]
    assert results[-1].usage[1].caller == "compaction"
    assert sum(len(result.usage) for result in results) == len(models.calls) == 13


async def test_b085_spending_of_a_failed_compaction_counts_before_the_next_call() -> None:
    """Compaction spends 90 tokens and gives nothing usable: they are booked, and the daily bound stops the next call."""
    models = ScriptedModels()
    from desks import Helper

    models.llm(Helper).then_return(reply("a", input_tokens=5, output_tokens=0))
    models.compaction.then_return(reply(" ", input_tokens=90, output_tokens=5))

    bounded = desk(every=1)
    from agboss.components.metadata import attach_component, component_of
    from agboss_memory.records import replace

    spec: Any = component_of(bounded)

    class Bounded: ...

    attach_component(Bounded, replace(spec, target=Bounded, limits=Limits(per_day=RunLimits(tokens=100))))
    async with create_app(Bounded, store="memory://", models=models) as app:
        first = (await talk(app, 1))[0]
        assert sum(record.input_tokens + record.output_tokens for record in first.usage) == 100
        with pytest.raises(LimitExceededError) as raised:
            await talk(app, 1, first=2)
        assert raised.value.code == "limit.day-tokens"
        terns = (await app.threads.get("t")).terns
        assert sum(record.input_tokens + record.output_tokens for tern in terns for record in tern.usage) == 100
        with pytest.raises(AgbossError):
            await app.memory.compact("t")
    models.verify()


async def test_b086_the_thread_costs_what_its_turns_cost() -> None:
    """Three turns with history: the sum over the thread is the sum over the runs; history costs nothing again."""
    models = Models(yes, sum_up)
    async with create_app(desk(every=2), store="memory://", models=models) as app:
        results = await talk(app, 3)
        terns = (await app.threads.get("t")).terns
    assert [record for tern in terns for record in tern.usage] == [record for run in results for record in run.usage]


RAN: list[str] = []


@tool
def act(what: str) -> str:
    """Does something."""
    RAN.append(what)
    return f"did {what}"


@agent(name="actor", model=MODEL, tools=[act], max_tool_calls=20)
class Actor: ...


@workflow(name="actor-desk", flow=[chain(TaskStart, Actor, AnswerFinish)])
class ActorDesk: ...


@pytest.mark.parametrize("calls", [2, 11])
async def test_b087_b093_a_turn_that_fails_after_tools_keeps_task_and_results(tmp_path: Path, calls: int) -> None:
    """The provider fails after tool calls: task, results and cause are stored, and the next turn is told."""
    models = ScriptedModels()
    models.llm(Actor).then_return(*[call_tool(act, what=f"step {number}") for number in range(calls)]).then_fail(NO)
    async with create_app(ActorDesk, store=f"sqlite:///{tmp_path}/a.db", models=models) as app:
        with pytest.raises(ModelError):
            await app.execute("do it", thread="t", create_thread=True)
    models.llm(Actor).then_return("The provider failed.")
    async with create_app(ActorDesk, store=f"sqlite:///{tmp_path}/a.db", models=models) as app:
        stored = await app.threads.export("t")
        await app.execute("what happened?", thread="t")
    (tern,) = stored.thread.terns
    assert (tern.status, tern.answer, tern.error, tern.error_code) == (
        "failed",
        "",
        "the provider said 400",
        "model.http",
    )
    results = [message.content for message in stored.messages if message.role == "tool"]
    assert results == [f"did step {number}" for number in range(calls)]
    told = models.llm(Actor).requests[-1].messages[0].content
    assert "Q: do it\nA: [failed] the provider said 400\n" in told
    models.verify()


class Broken(BaseMemoryStrategy):
    def build_context(self, context: MemoryContext) -> MemoryView:
        return MemoryView()

    async def update_memory(self, turn: MemoryTurn) -> MemoryUpdate:
        raise OSError("disk full")


@agent(name="unlucky", model=MODEL, memory_strategy=Broken)
class Unlucky: ...


async def test_b089_failing_memory_writes_are_told_every_time(caplog: pytest.LogCaptureFixture) -> None:
    """update_memory raises in each of five turns: all are answered, each says so in its result, stream and log."""
    async with create_app(desk(Unlucky, every=None), store="memory://", models=Models(yes, sum_up)) as app:
        for number in range(1, 6):
            async with app.stream(f"task {number}.", thread="t", create_thread=True) as run:
                warned = [event async for event in run if event.type == "warned"]
                result = await run.result()
            assert result.status == "answered"
            assert any(f"turn {number} (attempt 1 of 4" in line for line in result.warnings)
            assert len(warned) == len(result.warnings) == min(number, 4)
    assert any("given up" in record.message for record in caplog.records)


async def test_b091_a_reader_that_goes_away_leaves_one_cancelled_turn() -> None:
    """The stream is left after its first piece: the turn is stored once, as cancelled, with its task."""
    gate = Gate()

    class Streaming:
        async def generate(self, request: ModelRequest) -> Any:
            assert request.on_text is not None
            request.on_text("The first ")
            await gate(request)

    models = Models(yes, sum_up)
    models.model_for = lambda caller, spec: Streaming()  # type: ignore[method-assign,assignment,return-value]
    async with create_app(desk(every=None), store="memory://", models=models) as app:
        async with app.stream("task 1.", thread="t", create_thread=True) as run:
            async for piece in run.text():
                assert piece == "The first "
                break
        assert gate.cancelled
        (tern,) = (await app.threads.get("t")).terns
    assert (tern.task, tern.status, tern.number) == ("task 1.", "cancelled", 1)


async def test_b092_the_task_is_stored_when_it_is_admitted() -> None:
    """The model never answers and the client goes: the task is there while it runs and after."""
    gate = Gate()
    async with create_app(desk(every=None), store="memory://", models=Models(gate, sum_up)) as app:
        running = asyncio.create_task(app.execute("task 1.", thread="t", create_thread=True))
        await gate.reached.wait()
        (tern,) = (await app.threads.get("t")).terns
        assert (tern.task, tern.status) == ("task 1.", "running")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        (tern,) = (await app.threads.get("t")).terns
        assert (tern.task, tern.status, tern.error_code) == ("task 1.", "cancelled", "run.cancelled")


async def test_b119_a_commit_that_fails_leaves_the_old_state_and_the_thread_works() -> None:
    """The final write fails: the caller is told, the next turn sees the state from before, numbers go on."""
    store = FaultyStore()
    seen: list[str] = []

    async def answer(request: ModelRequest) -> str:
        seen.append(request.messages[0].content)
        return "Yes."

    async with create_app(desk(every=2), store=store, models=Models(answer, sum_up)) as app:
        await talk(app, 1)
        store.faults["commit"] = StoreError("store.full", "disk full", "make room")
        with pytest.raises(StoreError):
            await talk(app, 1, first=2)
        result = (await talk(app, 1, first=3))[0]
        terns = (await app.threads.get("t")).terns
    assert result.tern == 3
    assert [tern.status for tern in terns] == ["answered", "cancelled", "answered"]
    assert "Q: task 1.\nA: Yes.\n" in seen[-1]
    assert "Q: task 2.\nA: [cancelled]" in seen[-1]


class Opening:
    """A resource of one turn that does not open, or does not close."""

    def __init__(self, *, opens: bool) -> None:
        self.opens = opens

    async def __aenter__(self) -> Opening:
        if not self.opens:
            raise OSError("no connection")
        return self

    async def __aexit__(self, *_: object) -> None:
        raise OSError("connection lost")


@pytest.mark.parametrize("opens", [True, False])
async def test_b119_a_resource_of_the_turn_that_breaks_does_not_break_the_thread(opens: bool) -> None:
    """What a turn needs cannot be opened or closed: a failed turn or a warning, never a thread that stays busy."""
    from agboss import provide_factory

    broken = True

    def make() -> Any:
        return Opening(opens=opens) if broken else object()

    @workflow(
        name="opening-desk",
        flow=[chain(TaskStart, Writer, AnswerFinish)],
        providers=[provide_factory(Opening, make, deps=[], scope="tern")],
    )
    class OpeningDesk: ...

    async with create_app(OpeningDesk, store="memory://", models=Models(yes, sum_up)) as app:
        if opens:
            result = await app.execute("go", thread="t", create_thread=True)
            assert result.answer == "Yes."
            assert "connection lost" in result.warnings[0]
        else:
            with pytest.raises(AgbossError) as raised:
                await app.execute("go", thread="t", create_thread=True)
            assert raised.value.run.status == "failed"
        broken = False
        assert (await app.execute("again", thread="t")).tern == 2
