"""Reports about work that stays open, is interrupted, or is done twice: what an approval, a pinned text and a retry survive."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from desks import MODEL, FaultyStore, Models, desk, sum_up, talk, yes

from agboss import (
    AnswerFinish,
    Compaction,
    ModelReply,
    ModelRequest,
    ModelSpec,
    TaskStart,
    TernStatus,
    agent,
    chain,
    create_app,
    tool,
    workflow,
)
from agboss.errors import StoreError
from agboss_memory import AutoCompactConfig, ToolCall

ran: list[str] = []


@tool(needs_approval=True)
def pay(to: str) -> str:
    """Pay somebody."""
    ran.append(to)
    return f"paid {to}"


@agent(name="payer", model=MODEL, prompt="Pay.", tools=[pay])
class Payer: ...


@agent(
    name="keeper",
    model=ModelSpec(MODEL, context_window=400, max_tokens=60),
    prompt="Answer in French.",
    tools=[pay],
    memory_config=AutoCompactConfig(compact_at_ratio=Decimal("0.2")),
)
class Keeper: ...


def paying(component: type) -> type:
    @workflow(
        name="paying",
        version="1.0.0",
        flow=[chain(TaskStart, component, AnswerFinish)],
        compaction=Compaction(every=3, keep=9, model=MODEL),
    )
    class Paying: ...

    return Paying


class Clerk:
    """Asks for a payment when it is told to; says what it has seen."""

    def __init__(self) -> None:
        self.seen: list[ModelRequest] = []

    async def generate(self, request: ModelRequest) -> ModelReply:
        self.seen.append(request)
        newest = request.messages[-1]
        if request.purpose == "answer" and newest.role == "user" and newest.content.endswith("pay Ada"):
            return ModelReply(tool_calls=(ToolCall(id="c1", name="pay", arguments='{"to": "Ada"}'),))
        return ModelReply(text=newest.content if newest.role == "tool" else "Bien sûr. " * 12)


@pytest.mark.parametrize("component", [Payer, Keeper])
async def test_b010_an_approval_that_comes_after_compactions_runs_its_call_once(
    component: type, tmp_path: Path
) -> None:
    """Turn 1 waits for it, turns 2 to 6 go on and are compacted; in turn 7 it is still addressable."""
    ran.clear()
    clerk = Clerk()
    url = f"sqlite:///{tmp_path}/desk.db"
    async with create_app(paying(component), store=url, models={MODEL: clerk}) as app:
        first = await app.execute("Please pay Ada", thread="t", create_thread=True)
        assert (first.status, ran) == (TernStatus.PAUSED, [])
        assert first.pause is not None
        for number in range(2, 8):
            assert (await app.execute(f"And now {number}.", thread="t")).status is TernStatus.ANSWERED
        assert [(one.first, one.last) for one in await app.memory.summaries("t") if not one.agent] in ([(4, 6)], [])
    async with create_app(paying(component), store=url, models={MODEL: clerk}) as app:
        done = await app.resume("t", True, pause_id=first.pause.id)
        again = await app.resume("t", True, pause_id=first.pause.id)
        assert (done.tern, done.answer, again.answer, ran) == (1, "paid Ada", "paid Ada", ["Ada"])
        await app.execute("The last.", thread="t")
        copy = (await app.threads.export("t")).copy
        results = [item.message for item in copy.messages if item.message.role == "tool"]
        assert [(one.tool_call_id, one.content) for one in results] == [("c1", "paid Ada")]
        assert await app.threads.check() == ()


async def test_b038_pinned_text_is_sent_as_it_is_after_three_compactions() -> None:
    """What is pinned is the agent's prompt: never summarised, in every request of the turns after them, byte by byte."""
    clerk = Clerk()
    async with create_app(paying(Keeper), store="memory://", models={MODEL: clerk}) as app:
        compactions = 0
        for number in range(1, 12):
            await app.execute(f"And now {number}.", thread="t", create_thread=True)
            compactions = sum(
                one.agent == "keeper" for one in await app.memory.summaries("t", "keeper", all_states=True)
            )
        assert compactions >= 3
    answers = [request for request in clerk.seen if request.purpose == "answer"]
    assert all(request.system == "Answer in French." for request in answers)
    asked = [request for request in clerk.seen if request.purpose == "compaction"]
    assert not any("Answer in French." in message.content for request in asked for message in request.messages)


@pytest.mark.parametrize("fault", ["settle", "write_summary"])
async def test_b170_a_retry_after_the_summary_writes_no_second_one(fault: str) -> None:
    """The work fails around its summary and is retried: one summary of the range; what was paid is booked once."""
    store, models = FaultyStore(), Models(yes, sum_up)
    async with create_app(desk(every=2, keep=3), store=store, models=models) as app:
        await talk(app, 1)
        store.faults[fault] = StoreError("store.failed", "It failed.", "")
        await talk(app, 3, first=2)
        copy = (await app.threads.export("t")).copy
    ranges = [(item.summary.first, item.summary.last) for item in copy.summaries]
    assert ranges == [(1, 2), (3, 4)]
    paid = [one.record for tern in copy.terns for one in tern.usage if one.record.purpose == "compaction"]
    assert len(paid) == models.calls.count("compaction")
