"""Endings that a fresh user met: closing while a Tern runs, a store locked at the end, errors of others, cut answers."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from agboss import (
    AgbossError,
    AnswerFinish,
    AppStateError,
    Compaction,
    FunctionRouter,
    LimitExceededError,
    Limits,
    ModelError,
    ModelReply,
    ModelRequest,
    ModelUsage,
    RouteRequest,
    RouterError,
    RunLimits,
    StoreLockedError,
    TaskStart,
    TernFailedError,
    TernStatus,
    agent,
    chain,
    create_app,
    from_,
    router,
    tool,
    workflow,
)
from agboss.testing import MakeApp, MockLlm, call_tool, reply

MODEL = "openrouter:a/b"


@agent(model=MODEL)
class Writer:
    """Writes."""


@agent(model=MODEL)
class Reader:
    """Reads."""


class Model:
    """Answers what it was given, after a gate if there is one."""

    def __init__(self, reply: Any = None, gate: asyncio.Event | None = None) -> None:
        self.reply = ModelReply(text="Yes.") if reply is None else reply
        self.gate = gate
        self.requests: list[ModelRequest] = []
        self.asked = asyncio.Event()

    async def generate(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        self.asked.set()
        if self.gate is not None:
            await self.gate.wait()
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply


@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_closing_lets_a_running_turn_end(store: str, tmp_path: Path) -> None:
    url = "memory://" if store == "memory" else f"sqlite:///{tmp_path}/a.db"
    model = Model(gate=asyncio.Event())
    app = create_app(Writer, store=url, models={MODEL: model})
    running = asyncio.create_task(app.execute("Go", thread="t", create_thread=True))
    await model.asked.wait()
    closing = asyncio.create_task(app.aclose())
    await asyncio.sleep(0)
    assert not closing.done()
    assert model.gate is not None
    model.gate.set()
    await closing
    assert (await running).answer == "Yes."


async def test_a_store_locked_at_the_end_does_not_lose_the_answer(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    model = Model(gate=asyncio.Event())
    async with create_app(Writer, store=f"sqlite:///{path}?timeout=0.05", models={MODEL: model}) as app:
        running = asyncio.create_task(app.execute("Go", thread="t", create_thread=True))
        await model.asked.wait()
        other = sqlite3.connect(path)
        other.execute("BEGIN EXCLUSIVE")
        assert model.gate is not None
        model.gate.set()
        with pytest.raises(StoreLockedError) as caught:
            await running
        other.rollback()
        other.close()
        assert (caught.value.run.answer, caught.value.run.status) == ("Yes.", TernStatus.ANSWERED)
        assert (await app.execute("Again", thread="t")).tern == 2
        kept = await app.threads.get("t")
    assert "could not store its end" in kept.terns[0].error


async def test_an_unentered_stream_says_so() -> None:
    async with create_app(Writer, store="memory://", models={MODEL: Model()}) as app:
        with pytest.raises(AppStateError, match="async with"):
            _ = [event async for event in app.stream("Go")]
        with pytest.raises(AppStateError, match="async with"):
            _ = [piece async for piece in app.stream("Go").text()]


async def test_an_error_of_others_names_the_node_and_keeps_its_text_from_models() -> None:
    model = Model(RuntimeError("secret detail"))
    async with create_app(Writer, store="memory://", models={MODEL: model}) as app:
        with pytest.raises(TernFailedError) as caught:
            await app.execute("Go", thread="t-1", create_thread=True)
        assert "'writer'" in caught.value.message
        assert "RuntimeError: secret detail" in caught.value.message
        model.reply = ModelReply(text="Fine.")
        await app.execute("And now?", thread="t-1")
    assert "A: [failed] writer failed (RuntimeError)." in model.requests[-1].text
    assert "secret" not in model.requests[-1].text
    assert "t-1" not in model.requests[-1].text


async def test_a_model_that_gives_no_reply_is_named() -> None:
    async with create_app(Writer, store="memory://", models={MODEL: Model("text")}) as app:
        with pytest.raises(ModelError, match="not a ModelReply"):
            await app.execute("Go")


async def test_a_router_function_that_gives_nothing_is_named() -> None:
    def undecided(request: RouteRequest) -> None:
        return None

    @router(router=FunctionRouter(undecided))
    class Pick: ...

    @workflow(flow=[chain(TaskStart, Pick), from_(Pick).routes(Writer, Reader, then=AnswerFinish)])
    class Picking: ...

    async with create_app(Picking, store="memory://", models={MODEL: Model()}) as app:
        with pytest.raises(RouterError, match="None"):
            await app.execute("Go")


async def test_a_limit_in_usd_stops_at_the_first_unknown_price() -> None:
    @workflow(flow=[chain(TaskStart, Writer, Reader, AnswerFinish)], limits=Limits(per_run=RunLimits(usd="0.1")))  # type: ignore[arg-type]
    class Bounded: ...

    model = Model(ModelReply(text="Yes.", usage=ModelUsage(input_tokens=10**6, output_tokens=10**6)))
    async with create_app(Bounded, store="memory://", models={MODEL: model}) as app:
        with pytest.raises(LimitExceededError) as caught:
            await app.execute("Go")
    assert caught.value.code == "limit.unknown-price"
    assert len(model.requests) == 1


async def test_a_summary_that_was_cut_off_is_refused() -> None:
    @workflow(flow=[chain(TaskStart, Writer, AnswerFinish)], compaction=Compaction(every=1, max_tokens=512))
    class Compacting: ...

    model = Model(ModelReply(text="The user is called Pav", finish_reason="length"))
    async with create_app(Compacting, store="memory://", models={MODEL: model}) as app:
        result = await app.execute("My name is Pavel.")
        assert result.memory is None
        assert await app.memory.summaries(result.thread) == ()
    assert any("cut off" in line and "turns 1–1" in line for line in result.warnings)
    assert any("answer" in line and "cut off" in line for line in result.warnings)
    assert [request.purpose for request in model.requests] == ["answer", "compaction", "compaction"]


async def test_a_shared_models_longest_answer_does_not_bound_summaries() -> None:
    @agent(model={"model": MODEL, "max_tokens": 55})
    class Short:
        """Short."""

    @workflow(flow=[chain(TaskStart, Short, AnswerFinish)], compaction=Compaction(every=1, max_tokens=512))
    class Compacting: ...

    model = Model()
    async with create_app(Compacting, store="memory://", models={MODEL: model}) as app:
        await app.execute("Go")
    assert [request.settings.max_tokens for request in model.requests] == [55, 1024]


async def test_a_tool_that_exits_is_an_error_text(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    @tool
    def leave() -> str:
        """Leaves."""
        raise SystemExit(3)

    @agent(model=MODEL, tools=[leave])
    class Leaver:
        """Leaves."""

    mock_llm(Leaver).then_return(call_tool(leave), reply("Still here."))
    async with agboss_app(Leaver) as app:
        assert (await app.execute("Go")).answer == "Still here."
    assert "SystemExit" in mock_llm(Leaver).requests[-1].messages[-1].content


async def test_every_stored_end_is_an_agboss_error(tmp_path: Path) -> None:
    async with create_app(Writer, store=f"sqlite:///{tmp_path}/a.db", models={MODEL: Model(ValueError("x"))}) as app:
        with pytest.raises(AgbossError) as caught:
            await app.execute("Go")
        assert (await app.threads.get(caught.value.run.thread)).terns[0].status is TernStatus.FAILED
