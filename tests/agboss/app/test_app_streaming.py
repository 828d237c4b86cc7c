"""Streams: what is heard, in which order, what never leaks, and what stays when the listener goes."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter

from agboss import (
    AnswerFinish,
    Compaction,
    ModelReply,
    ModelRequest,
    RulesRouter,
    RunEvent,
    TaskStart,
    UnknownThreadError,
    agent,
    chain,
    create_app,
    from_,
    router,
    tool,
    workflow,
)
from agboss.components.settings import Rule
from agboss.testing import MakeApp, MockCompaction, MockLlm, call_tool, reply
from agboss_memory.messages import ToolCall

MODEL = "openai:gpt-5-mini"
EVENT: TypeAdapter[Any] = TypeAdapter(RunEvent)


class Pieces:
    """A model that says its pieces and then waits to be let go."""

    def __init__(self, *pieces: str) -> None:
        self.pieces = pieces
        self.said = asyncio.Event()
        self.go = asyncio.Event()

    async def generate(self, request: ModelRequest) -> ModelReply:
        assert request.on_text is not None
        for piece in self.pieces:
            request.on_text(piece)
        self.said.set()
        await self.go.wait()
        return ModelReply(text="".join(self.pieces))


@agent(model=MODEL)
class Drafter:
    """Drafts."""


@agent(model=MODEL)
class Writer:
    """Writes."""


@workflow(name="two", flow=[chain(TaskStart, Drafter, Writer, AnswerFinish)])
class Two: ...


async def heard(events: AsyncIterator[Any]) -> list[str]:
    return [event.type if not event.node else f"{event.type} {event.node}" async for event in events]


async def test_events_of_a_chain_come_in_order(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Drafter).then_return(reply("draft"))
    mock_llm(Writer).then_return(reply("done"))
    async with agboss_app(Two) as app, app.stream("Go") as run:
        assert await heard(aiter(run)) == [
            "tern_started task-start",
            "node_started drafter",
            "text_delta drafter",
            "text_delta drafter",
            "node_finished drafter",
            "node_started writer",
            "text_delta writer",
            "text_delta writer",
            "node_finished writer",
            "answered",
            "ended",
        ]


async def test_text_yields_only_the_last_agents_text(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Drafter).then_return(reply("draft"))
    mock_llm(Writer).then_return(reply("done"))
    async with agboss_app(Two) as app, app.stream("Go") as run:
        assert [piece async for piece in run.text()] == ["do", "ne"]


async def test_events_of_a_router_flow(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    @router(router=RulesRouter(rules=(Rule(to=Drafter, words=("draft",)),), otherwise=Writer))
    class Desk: ...

    @workflow(name="routed", flow=[chain(TaskStart, Desk), from_(Desk).routes(Drafter, Writer, then=AnswerFinish)])
    class Routed: ...

    mock_llm(Drafter).then_return(reply("text"))
    async with agboss_app(Routed) as app, app.stream("a draft, please") as run:
        events: list[Any] = [event async for event in run]
    assert [event.type for event in events][:3] == ["tern_started", "route_chosen", "node_started"]
    assert (events[1].node, events[1].next, events[1].source) == ("desk", "drafter", "rules")


@tool
def look(word: str) -> str:
    """Look up."""
    return f"found {word}"


@agent(model=MODEL, tools=[look])
class Finder:
    """Finds."""


class Preamble:
    """Talks before it calls a tool."""

    def __init__(self) -> None:
        self.calls = 0

    async def generate(self, request: ModelRequest) -> ModelReply:
        self.calls += 1
        text = "Let me look." if self.calls == 1 else "It is 7."
        if request.on_text is not None:
            request.on_text(text)
        calls = (ToolCall(id="c", name="look", arguments='{"word": "x"}'),) if self.calls == 1 else ()
        return ModelReply(text=text, tool_calls=calls)


async def test_a_preamble_before_a_tool_call_never_reaches_text() -> None:
    async with create_app(Finder, store="memory://", models={MODEL: Preamble()}) as app, app.stream("Go") as run:
        assert "".join([piece async for piece in run.text()]) == "It is 7."


async def test_events_of_a_tool_loop(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Finder).then_return(call_tool(look, word="x"), reply("7"))
    async with agboss_app(Finder) as app, app.stream("Go") as run:
        events: list[Any] = [event async for event in run]
    started, finished = [event for event in events if event.type.startswith("tool_")]
    assert (started.tool, started.arguments) == ("look", '{"word":"x"}')
    assert (finished.call_id, finished.result, finished.ok) == (started.call_id, "found x", True)


class Report(BaseModel):
    title: str


async def test_structured_output_is_not_streamed_as_it_is_corrected(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    @agent(model=MODEL, output=Report)
    class Reporter:
        """Reports."""

    mock_llm(Reporter).then_return(reply("no JSON"), reply(Report(title="t")))
    async with agboss_app(Reporter) as app, app.stream("Go") as run:
        assert "".join([piece async for piece in run.text()]) == '{"title":"t"}'


async def test_summary_text_never_leaks(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    @workflow(name="c", flow=[chain(TaskStart, Writer, AnswerFinish)], compaction=Compaction(every=1, keep=2))
    class Compacting: ...

    mock_llm(Writer).then_return(reply("answer"))
    mock_compaction.then_return("SECRET")
    async with agboss_app(Compacting) as app, app.stream("Go") as run:
        events: list[Any] = [event async for event in run]
    assert "SECRET" not in "".join(event.model_dump_json() for event in events)
    assert [event.type for event in events][-3:] == ["answered", "compacted", "ended"]


async def test_events_survive_json(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Finder).then_return(call_tool(look, word="x"), reply("7"))
    async with agboss_app(Finder) as app, app.stream("Go") as run:
        events: list[Any] = [event async for event in run]
    assert [EVENT.validate_json(event.model_dump_json()) for event in events] == events


async def test_admission_errors_are_raised_on_entry(agboss_app: MakeApp) -> None:
    async with agboss_app(Writer) as app:
        with pytest.raises(UnknownThreadError):
            async with app.stream("Go", thread="nobody"):
                raise AssertionError("not reached")


async def test_result_and_iteration_raise_the_runs_error(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Writer).then_fail(RuntimeError("boom"))
    async with agboss_app(Writer) as app, app.stream("Go") as run:
        listening = aiter(run)
        event: Any = await anext(listening)
        while event.type != "failed":
            event = await anext(listening)
        assert event.code == "run.failed"
        with pytest.raises(Exception, match="RuntimeError"):
            await anext(listening)
        with pytest.raises(Exception, match="RuntimeError"):
            await run.result()


async def test_iterating_twice_ends_at_once(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Writer).then_return(reply("x"))
    async with agboss_app(Writer) as app, app.stream("Go") as run:
        assert len([event async for event in run]) > 3
        assert [event async for event in run] == []


async def test_two_listeners_share_the_events_and_both_end(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Writer).then_return(reply("x"))
    async with agboss_app(Writer) as app, app.stream("Go") as run:
        both = await asyncio.wait_for(asyncio.gather(heard(aiter(run)), heard(aiter(run))), 5)
    assert sorted([*both[0], *both[1]])[:2] == ["answered", "ended"]


async def test_a_consumer_that_never_reads(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Writer).then_return(reply("x"))
    async with agboss_app(Writer) as app, app.stream("Go") as run:
        assert (await run.result()).answer == "x"


async def test_a_stream_is_entered_once(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Writer).then_return(reply("x"))
    async with agboss_app(Writer) as app:
        run = app.stream("Go")
        with pytest.raises(Exception, match=r"stream\.not-entered"):
            await run.result()
        async with run:
            await run.result()
        with pytest.raises(Exception, match=r"stream\.entered"):
            await run.__aenter__()


async def test_a_repeat_streams_its_stored_answer(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Writer).then_return(reply("x"))
    async with agboss_app(Writer) as app:
        first = await app.execute("Go", idempotency_key="k")
        async with app.stream("Go", idempotency_key="k") as run:
            assert run.thread == first.thread
            assert [piece async for piece in run.text()] == ["x"]


async def test_warnings_are_events(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Writer).then_return(reply(""))
    async with agboss_app(Writer) as app, app.stream("Go") as run:
        events: list[Any] = [event async for event in run]
    assert "agent 'writer' answered nothing" in [event.text for event in events if event.type == "warned"]
