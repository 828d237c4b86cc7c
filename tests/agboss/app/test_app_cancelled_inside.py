"""A CancelledError that nobody asked for is a fault like any other: it is told, tried again, and given up."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from desks import desk, talk

from agboss import (
    ModelError,
    ModelReply,
    ModelRequest,
    ModelUsage,
    TernFailedError,
    TernStatus,
    ToolContext,
    agent,
    create_app,
    tool,
)
from agboss_memory import BaseMemoryStrategy, MemoryContext, MemoryTurn, MemoryUpdate, MemoryView, ToolCall


async def cancelled_job() -> None:
    """Waits for a job of its own that was cancelled."""
    job = asyncio.create_task(asyncio.Event().wait())
    await asyncio.sleep(0)
    job.cancel()
    await job


class Poison(BaseMemoryStrategy):
    """Its first Tern can never be learnt."""

    tried: list[int] = []

    def build_context(self, context: MemoryContext) -> MemoryView:
        return MemoryView(history=context.history[-2:])

    async def update_memory(self, turn: MemoryTurn) -> MemoryUpdate:
        self.tried.append(turn.tern.number)
        if turn.tern.number == 1:
            await cancelled_job()
        return MemoryUpdate()


@agent(model="ollama:stub", prompt="Answer.", memory_strategy=Poison)
class Learner: ...


@agent(model="ollama:stub", prompt="Answer.")
class Plain: ...


class Model:
    def __init__(self, reply: Any = None) -> None:
        self.reply: Any = reply
        self.wrong = True

    async def generate(self, request: ModelRequest) -> ModelReply:
        if request.purpose == "compaction" and self.wrong:
            await cancelled_job()
        if isinstance(self.reply, str) and self.wrong:
            await cancelled_job()
        given: Any = self.reply
        return ModelReply(text="done") if given is None else given


def url(kind: str, folder: Path) -> str:
    return "memory://" if kind == "memory" else f"sqlite:///{folder}/log.db"


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_strategy_whose_own_job_was_cancelled_is_given_up_and_poisons_nothing(kind: str, tmp_path: Path):
    Poison.tried.clear()
    async with create_app(Learner, store=url(kind, tmp_path), models={"ollama:stub": Model()}) as app:
        results = await talk(app, 6)
        assert [one.status for one in results] == [TernStatus.ANSWERED] * 6
        assert Poison.tried.count(1) == 4
        assert sorted(set(Poison.tried)) == [1, 2, 3, 4, 5, 6]
        assert any("CancelledError" in line for line in results[0].warnings)


class Hanging(Poison):
    """Its first Tern takes for ever."""

    async def update_memory(self, turn: MemoryTurn) -> MemoryUpdate:
        self.tried.append(turn.tern.number)
        if turn.tern.number == 1:
            await asyncio.Event().wait()
        return MemoryUpdate()


@agent(model="ollama:stub", prompt="Answer.", memory_strategy=Hanging)
class Waiter: ...


async def test_a_strategy_that_hangs_is_given_up():

    Poison.tried.clear()
    async with create_app(Waiter, store="memory://", models={"ollama:stub": Model()}, memory_timeout=0.01) as app:
        results = await talk(app, 6)
        assert [one.status for one in results] == [TernStatus.ANSWERED] * 6
        assert Poison.tried.count(1) == 4


async def test_a_summariser_that_cancels_itself_is_a_failed_compaction():
    model = Model()
    async with create_app(desk(every=2), store="memory://", models={"openai:gpt-5-mini": model}) as app:
        results = await talk(app, 3)
        assert [one.status for one in results] == [TernStatus.ANSWERED] * 3
        assert any("compaction of turns 1–2 failed" in line for one in results for line in one.warnings)
        model.wrong = False
        (again,) = await talk(app, 1, first=4)
        assert again.compaction is not None


async def test_a_model_that_cancels_itself_fails_the_tern_with_a_typed_error():
    model = Model("cancelled")
    async with create_app(Plain, store="memory://", models={"ollama:stub": model}) as app:
        with pytest.raises(TernFailedError) as failure:
            await app.execute("Go.", thread="t", create_thread=True)
        assert failure.value.code == "run.failed"
        assert failure.value.run is not None
        model.reply = None
        assert (await app.execute("Go.", thread="t")).answer == "done"


@pytest.mark.parametrize(
    "reply",
    [
        ModelReply(text={"a": 1}),  # type: ignore[arg-type]
        ModelReply(text=None),  # type: ignore[arg-type]
        ModelReply(text="x", usage=ModelUsage(output_tokens=2**70)),
        ModelReply(text="x", usage=ModelUsage(input_tokens=-1)),
    ],
    ids=["dict", "none", "huge", "negative"],
)
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_reply_that_no_store_takes_is_refused_at_the_border(reply: ModelReply, kind: str, tmp_path: Path):
    async with create_app(Plain, store=url(kind, tmp_path), models={"ollama:stub": Model(reply)}) as app:
        with pytest.raises(ModelError) as failure:
            await app.execute("Go.", thread="t", create_thread=True)
        assert failure.value.code == "model.bad-reply"
        (tern,) = (await app.threads.get("t")).terns
        assert tern.status is TernStatus.FAILED


@tool
async def pay(usd: str, context: ToolContext) -> str:
    """Pay."""
    context.report_cost(usd)
    return "paid"


@agent(model="ollama:stub", prompt="Answer.", tools=[pay])
class Payer: ...


@pytest.mark.parametrize("usd", ["nan", "inf", "-5", "1e400", "much"])
async def test_a_cost_that_is_none_is_told_to_the_model_and_not_booked(usd: str):
    class Paying:
        async def generate(self, request: ModelRequest) -> ModelReply:
            if request.messages[-1].role == "tool":
                return ModelReply(text=request.messages[-1].content)
            return ModelReply(tool_calls=(ToolCall(id="1", name="pay", arguments=f'{{"usd": "{usd}"}}'),))

    async with create_app(Payer, store="memory://", models={"ollama:stub": Paying()}) as app:
        result = await app.execute("Go.")
        assert "report US dollars" in result.answer or "report_cost" in result.answer
        assert result.spend == 0
