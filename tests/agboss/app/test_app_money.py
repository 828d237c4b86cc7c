"""Prices and limits: what a Tern may spend and what it says that it spent."""

import logging
from decimal import Decimal
from typing import Any

import pytest

from agboss import (
    AnswerFinish,
    AssemblyError,
    Compaction,
    LimitExceededError,
    Limits,
    LlmRouter,
    ModelReply,
    ModelRequest,
    ModelSpec,
    ModelUsage,
    Price,
    RunLimits,
    TaskStart,
    ToolContext,
    agent,
    chain,
    create_app,
    from_,
    router,
    tool,
    workflow,
)
from agboss.testing import MakeApp, MockLlm, call_tool, reply

MODEL = "openai:gpt-5-mini"
UNKNOWN = "openai-compatible:mine"


class Counted:
    """A model that uses 10 tokens in and 10 out."""

    def __init__(self, usd: str | None = None) -> None:
        self.usd = None if usd is None else Decimal(usd)
        self.calls = 0

    async def generate(self, request: ModelRequest) -> ModelReply:
        self.calls += 1
        return ModelReply(text="x", usage=ModelUsage(input_tokens=10, output_tokens=10, usd=self.usd))


def work(spec: ModelSpec | str = MODEL, tools: Any = (), **settings: Any) -> type[Any]:
    @agent(name="worker", model=spec, tools=tools)
    class Worker:
        """Works."""

    @workflow(name="w", flow=[chain(TaskStart, Worker, AnswerFinish)], **settings)
    class Work: ...

    return Work


async def test_a_price_of_ones_own() -> None:
    spec = ModelSpec(MODEL, price=Price(input=Decimal(1), output=Decimal("2.5")))
    async with create_app(work(spec), store="memory://", models={MODEL: Counted()}) as app:
        result = await app.execute("Go")
    assert result.spend == Decimal("0.000035")
    assert result.usage[0].source == "price-table"


async def test_the_providers_figure_and_a_free_model() -> None:
    async with create_app(work(), store="memory://", models={MODEL: Counted("0.5")}) as app:
        result = await app.execute("Go")
        assert (result.spend, result.usage[0].source) == (Decimal("0.5"), "api")
    spec = ModelSpec(MODEL, price="free")
    async with create_app(work(spec), store="memory://", models={MODEL: Counted("0.5")}) as app:
        result = await app.execute("Go")
        assert (result.spend, result.usage[0].source) == (Decimal(0), "free")


async def test_an_unknown_price_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    spec = ModelSpec(UNKNOWN, base_url="http://localhost:1")
    flow = work(spec, compaction=Compaction(every=1, keep=2))
    with caplog.at_level(logging.WARNING, "agboss"):
        async with create_app(flow, store="memory://", models={UNKNOWN: Counted()}) as app:
            result = await app.execute("Go")
    assert result.spend is None
    assert [record.usd for record in result.usage] == [None, None]
    (warning,) = result.warnings
    assert "price of model 'openai-compatible:mine' is unknown" in warning
    assert len([record for record in caplog.records if "is unknown" in record.getMessage()]) == 1


def test_a_limit_in_usd_needs_prices_of_agents_and_routers() -> None:
    @router(router=LlmRouter(model=ModelSpec("openai-compatible:router", base_url="http://localhost:1")))
    class Desk: ...

    @agent(model=ModelSpec(UNKNOWN, base_url="http://localhost:1"))
    class Worker:
        """Works."""

    @workflow(
        name="w",
        flow=[chain(TaskStart, Desk), from_(Desk).routes(Worker, AnswerFinish, then=AnswerFinish)],
        limits=Limits(per_day=RunLimits(usd=Decimal(1))),
    )
    class Work: ...

    with pytest.raises(AssemblyError) as caught:
        create_app(Work, store="memory://")
    assert caught.value.codes == ("limits.no-price", "limits.no-price")


@tool
def step(ctx: ToolContext) -> str:
    ctx.report_cost("0.1")
    return "x"


PER_RUN = [
    ({"model_calls": 1}, "limit.run-model-calls", 1),
    ({"model_calls": 0}, "limit.run-model-calls", 0),
    ({"tokens": 1}, "limit.run-tokens", 1),
    ({"usd": Decimal("0.1")}, "limit.run-usd", 1),
    ({"tool_calls": 0}, "limit.run-tool-calls", 1),
    ({"steps": 1}, "limit.run-steps", 2),
]


@pytest.mark.parametrize(("bounds", "code", "calls"), PER_RUN)
async def test_limits_of_one_tern(
    agboss_app: MakeApp, mock_llm: MockLlm, bounds: dict[str, Any], code: str, calls: int
) -> None:
    flow = work(tools=[step], limits=Limits(per_run=RunLimits(**bounds)))
    worker: Any = flow.__dict__["__agboss__"].component.flow[0].nodes[1]
    script = mock_llm(worker)
    if calls:
        script.then_return(call_tool(step))
    if calls > 1:
        script.then_return(reply("x"))
    async with agboss_app(flow) as app:
        with pytest.raises(LimitExceededError) as caught:
            await app.execute("Go")
    assert caught.value.code == code
    assert caught.value.run.status == "failed"
    assert len(script.requests) == calls


PER_DAY = [
    ({"model_calls": 2}, "limit.day-model-calls"),
    ({"tokens": 40}, "limit.day-tokens"),
    ({"usd": Decimal("0.2")}, "limit.day-usd"),
    ({"steps": 4}, "limit.day-steps"),
]


@pytest.mark.parametrize(("bounds", "code"), PER_DAY)
async def test_limits_of_one_day_hold_across_terns(bounds: dict[str, Any], code: str) -> None:
    model = Counted("0.1")
    flow = work(limits=Limits(per_day=RunLimits(**bounds)))
    async with create_app(flow, store="memory://", models={MODEL: model}) as app:
        await app.execute("1")
        await app.execute("2")
        with pytest.raises(LimitExceededError) as caught:
            await app.execute("3")
    assert caught.value.code == code
    assert "next UTC day" in caught.value.hint
    assert model.calls == 2


async def test_a_daily_limit_of_tool_calls(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    flow = work(tools=[step], limits=Limits(per_day=RunLimits(tool_calls=1)))
    worker: Any = flow.__dict__["__agboss__"].component.flow[0].nodes[1]
    mock_llm(worker).then_return(call_tool(step), reply("x"), call_tool(step))
    async with agboss_app(flow) as app:
        await app.execute("1")
        with pytest.raises(LimitExceededError) as caught:
            await app.execute("2")
    assert caught.value.code == "limit.day-tool-calls"
