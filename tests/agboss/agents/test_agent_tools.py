"""Tools: what a model is told of them, what reaches them, and that their result is always text."""

import asyncio
import threading
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from agboss import (
    AnswerFinish,
    InjectionToken,
    TaskStart,
    ToolContext,
    agent,
    chain,
    provide,
    tool,
    workflow,
)
from agboss.testing import Call, MakeApp, MockLlm, call_tool, reply
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


class Colour(StrEnum):
    RED = "red"


class Size(BaseModel):
    width: int


async def test_the_schema_says_all_that_the_signature_says(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    @tool
    async def paint(
        colour: Colour,
        size: Size,
        coats: Annotated[int, Field(ge=1, description="How many coats.")] = 2,
        note: str | None = None,
    ) -> str:
        """Paint a wall.

        Args:
            colour: The paint's colour.
            size: How large
            note: Anything else.
        """
        assert isinstance(size, Size)
        return f"{colour!r} {size.width} {coats} {note}"

    worker = one(paint)
    mock_llm(worker).then_return(call_tool(paint, colour="red", size={"width": 3}), reply("ok"))
    async with agboss_app(worker) as app:
        await app.execute("Go")
    (schema,) = mock_llm(worker).requests[0].tools
    fields = schema.parameters["properties"]
    assert schema.description == "Paint a wall."
    assert fields["coats"]["description"] == "How many coats."
    assert fields["coats"]["minimum"] == 1
    assert fields["note"]["description"] == "Anything else."
    assert schema.parameters["required"] == ["colour", "size"]
    assert "The paint's colour." in str(fields["colour"])
    assert results(mock_llm(worker).requests[-1].messages) == ["<Colour.RED: 'red'> 3 2 None"]


async def test_a_sync_function_runs_in_a_thread(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    @tool
    def where() -> str:
        return str(threading.current_thread() is threading.main_thread())

    assert await call(agboss_app, mock_llm, where, call_tool(where)) == ["False"]


class Query(BaseModel):
    text: str


async def test_a_class_tool_gets_its_model_and_context(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    @tool
    class SearchDocs:
        """Search."""

        async def run(self, args: Query, ctx: ToolContext) -> str:
            return f"{args.text} {ctx.agent} {ctx.tern} {ctx.call_id}"

    assert await call(agboss_app, mock_llm, SearchDocs, call_tool(SearchDocs, text="x")) == [
        "x worker 1 call-worker-1-1"
    ]


async def test_injected_parameters_are_not_the_models(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    rate = InjectionToken[int]("RATE")

    @tool
    def convert(amount: int, factor: Annotated[int, rate], ctx: ToolContext) -> int:
        return amount * factor

    @workflow(name="w", flow=[chain(TaskStart, one(convert), AnswerFinish)], providers=[provide(rate, 3)])
    class Work: ...

    worker: Any = Work.__dict__["__agboss__"].component.flow[0].nodes[1]
    mock_llm(worker).then_return(call_tool(convert, amount=2), call_tool(convert, amount=2, factor=9), reply("ok"))
    async with agboss_app(Work) as app:
        await app.execute("Go")
    first, second = results(mock_llm(worker).requests[-1].messages)
    assert first == "6"
    assert second.startswith("Error: tool convert failed: invalid arguments: factor")
    assert list(mock_llm(worker).requests[0].tools[0].parameters["properties"]) == ["amount"]


@dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("", "(empty)"),
        (None, "done"),
        (Query(text="é"), '{"text":"é"}'),
        ([1, {"a": None}], '[1,{"a":null}]'),
        (Point(x=1), '{"x":1}'),
        (Colour.RED, "red"),
        (b"bytes", '"bytes"'),
        (object, "\"<class 'object'>\""),
    ],
)
async def test_results_of_any_type(agboss_app: MakeApp, mock_llm: MockLlm, value: Any, text: str) -> None:
    async def give() -> Any:
        return value

    assert await call(agboss_app, mock_llm, give, call_tool(give)) == [text]


async def test_faults_are_told_to_the_model(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    @tool(timeout=0.05)
    async def shaky(mode: str) -> str:
        if mode == "late":
            await asyncio.Event().wait()
        if mode == "self":
            raise asyncio.CancelledError
        raise ValueError("no such thing")

    worker = one(shaky)
    mock_llm(worker).then_return(
        [call_tool(shaky, mode=mode) for mode in ("late", "raise", "self")],
        [Call(tool="unknown", arguments="{}"), call_tool(shaky), call_tool(shaky, mode="x", more=1)],
        reply("ok"),
    )
    async with agboss_app(worker) as app:
        result = await app.execute("Go")
    assert result.answer == "ok"
    late, raised, itself, unknown, missing, extra = results(mock_llm(worker).requests[-1].messages)
    assert late == "Error: tool shaky failed: no result within 0.05 s"
    assert raised == "Error: tool shaky failed: ValueError: no such thing"
    assert itself == "Error: tool shaky failed: it cancelled itself"
    assert unknown == "Error: there is no tool 'unknown'; the tools are: shaky"
    assert "mode: Field required" in missing
    assert "more" in extra


async def test_bad_json_is_told_to_the_model(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    def noop() -> str:
        return "x"

    texts = await call(agboss_app, mock_llm, noop, [Call(tool="noop", arguments="{"), Call(tool="noop", arguments="")])
    assert "Invalid JSON" in texts[0]
    assert texts[1] == "x"


async def test_parallel_calls_run_at_once_and_keep_their_order(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    second = asyncio.Event()

    async def step(number: int) -> int:
        if number == 1:
            await second.wait()
        second.set()
        return number

    assert await call(agboss_app, mock_llm, step, [call_tool(step, number=n) for n in (1, 2)]) == ["1", "2"]
