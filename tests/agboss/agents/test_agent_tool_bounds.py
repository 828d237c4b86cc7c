"""Tools: how often they run, how much of a result is kept, and what stays when a Tern ends early."""

import asyncio
from typing import Any

import pytest

from agboss import (
    AnswerFinish,
    LimitExceededError,
    Limits,
    RunLimits,
    TaskStart,
    ToolContext,
    ToolRef,
    agent,
    chain,
    tool,
    workflow,
)
from agboss.testing import MakeApp, MockLlm, call_tool, reply
from agboss_memory.messages import Message

MODEL = "openai:gpt-5-mini"


def one(*tools: Any, **settings: Any) -> Any:
    @agent(name="worker", model=MODEL, tools=tools, **settings)
    class Worker:
        """Works."""

    return Worker


def results(messages: tuple[Message, ...]) -> list[str]:
    return [message.content for message in messages if message.role == "tool"]


async def call(make: MakeApp, llm: MockLlm, target: Any, *steps: Any, **settings: Any) -> list[str]:
    """Results of the steps, as the model reads them at its next call."""
    worker = one(target, **settings)
    llm(worker).then_return(*steps, reply("ok"))
    async with make(worker) as app:
        await app.execute("Go")
    return results(llm(worker).requests[-1].messages)


async def test_calls_past_the_bound_are_refused_and_one_last_call_is_made(
    agboss_app: MakeApp, mock_llm: MockLlm
) -> None:
    ran: list[int] = []

    def step(number: int) -> int:
        ran.append(number)
        return number

    worker = one(step)
    mock_llm(worker).then_return([call_tool(step, number=n) for n in range(10)], reply("ok"))
    async with agboss_app(worker) as app:
        result = await app.execute("Go")
    texts = results(mock_llm(worker).requests[-1].messages)
    assert sorted(ran) == list(range(8))
    assert texts[7] == "7"
    assert texts[8:] == ["Error: not run, the limit of 8 tool calls is reached."] * 2
    assert mock_llm(worker).requests[-1].tools == ()
    assert "max_tool_calls=8" in result.warnings[0]


async def test_no_tool_is_offered_when_none_may_be_called(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    def step() -> str:
        return "x"

    worker = one(step, max_tool_calls=0)
    mock_llm(worker).then_return(reply("ok"))
    async with agboss_app(worker) as app:
        assert (await app.execute("Go")).warnings == ()
    assert mock_llm(worker).requests[0].tools == ()


@pytest.mark.parametrize(
    ("on_tool", "on_ref", "size", "kept"),
    [
        (0, None, 100_000, 100_000),
        (0, None, 100_001, 100_000),
        (-1, None, 100_001, 100_000),
        (10, None, 10, 10),
        (10, None, 11, 10),
        (10, 0, 11, 10),
        (10, -3, 11, 10),
        (10, 5, 11, 5),
        (10, 20, 15, 15),
        (500_000, None, 100_001, 100_000),
    ],
)
async def test_caps(
    agboss_app: MakeApp, mock_llm: MockLlm, on_tool: int, on_ref: int | None, size: int, kept: int
) -> None:
    @tool(max_result_chars=on_tool)
    def long() -> str:
        return "x" * size

    target = long if on_ref is None else ToolRef(long, max_result_chars=on_ref)
    (text,) = await call(agboss_app, mock_llm, target, call_tool(long))
    if kept == size:
        assert text == "x" * size
    else:
        assert text == "x" * kept + f"\n[... output cut: only its first {kept} of {size} characters were kept]"


async def test_a_tool_reports_its_cost(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    def buy(ctx: ToolContext) -> str:
        ctx.report_cost(0.1, "maps")
        ctx.report_cost("0.2")
        return "bought"

    worker = one(buy)
    mock_llm(worker).then_return(call_tool(buy), reply("ok"))
    async with agboss_app(worker) as app:
        result = await app.execute("Go")
    assert str(result.spend) == "0.3"
    assert [(r.model, r.source) for r in result.usage if r.purpose == "tool"] == [("maps", "tool"), ("buy", "tool")]


async def test_a_tool_that_runs_the_app_synchronously_is_told_so(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    apps: list[Any] = []

    def nested() -> str:
        return apps[0].execute_sync("inner").answer

    worker = one(nested)
    mock_llm(worker).then_return(call_tool(nested), reply("ok"))
    async with agboss_app(worker) as app:
        apps.append(app)
        await asyncio.wait_for(app.execute("Go"), 10)
    (text,) = results(mock_llm(worker).requests[-1].messages)
    assert "NestedSyncError" in text


async def test_a_limit_in_the_middle_of_a_batch_lets_allowed_calls_finish(
    agboss_app: MakeApp, mock_llm: MockLlm
) -> None:
    async def step(number: int) -> int:
        await asyncio.sleep(0)
        return number

    worker = one(step)

    @workflow(
        name="w",
        flow=[chain(TaskStart, worker, AnswerFinish)],
        limits=Limits(per_run=RunLimits(tool_calls=2)),
    )
    class Work: ...

    mock_llm(worker).then_return([call_tool(step, number=n) for n in range(4)])
    async with agboss_app(Work) as app:
        with pytest.raises(LimitExceededError) as caught:
            await app.execute("Go", thread="t", create_thread=True)
        said = (await app.threads.export("t")).messages
    assert caught.value.code == "limit.run-tool-calls"
    assert caught.value.run.status == "failed"
    assert results(said)[:2] == ["0", "1"]
    assert all(text.startswith("Error: not finished") for text in results(said)[2:])


async def test_a_cancelled_batch_keeps_finished_results_in_order(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    hanging = asyncio.Event()

    async def step(number: int) -> int:
        if number == 0:
            hanging.set()
            await asyncio.Event().wait()
        return number

    worker = one(step)
    mock_llm(worker).then_return([call_tool(step, number=n) for n in range(2)])
    async with agboss_app(worker) as app:
        task = asyncio.create_task(app.execute("Go", thread="t", create_thread=True))
        await hanging.wait()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        said = (await app.threads.export("t")).messages
    assert results(said) == ["Error: not finished, the turn ended before the tool gave a result.", "1"]
    assert [m.tool_call_id for m in said if m.role == "tool"] == [c.id for m in said for c in m.tool_calls]


async def test_a_failing_tern_keeps_its_tool_results(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    def step() -> str:
        return "kept"

    worker = one(step)
    mock_llm(worker).then_return(call_tool(step)).then_fail(RuntimeError("down"))
    async with agboss_app(worker) as app:
        with pytest.raises(Exception, match="RuntimeError"):
            await app.execute("Go", thread="t", create_thread=True)
        export = await app.threads.export("t")
    assert results(export.messages) == ["kept"]
    assert export.thread.terns[0].status == "failed"
