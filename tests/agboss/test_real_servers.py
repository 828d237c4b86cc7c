"""Whole Terns over real servers on the loopback: a decision server, an OpenAI-compatible server, SQLite on disk."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from fake_openai import FakeOpenAI, Reply, fake_openai
from servers import process

from agboss import (
    AgbossError,
    AnswerFinish,
    Compaction,
    JevRouter,
    ModelSpec,
    Price,
    RouterError,
    TaskStart,
    TernStatus,
    agent,
    chain,
    create_app,
    from_,
    router,
    tool,
    workflow,
)

pytestmark = pytest.mark.agboss_models


@pytest.fixture
def fake() -> Iterator[FakeOpenAI]:
    with fake_openai() as server:
        yield server


@pytest.fixture(scope="module")
def sparrow() -> Iterator[str]:
    with process("sparrow-decider", "serve") as url:
        yield url


def help_desk(model: ModelSpec, decisions: str) -> type:
    @tool
    async def look_up(order: int) -> str:
        """Look an order up."""
        return f"order {order} was shipped on Tuesday"

    @agent(name="billing", description="Questions about invoices, payments and refunds", model=model, history_limit=4)
    class Billing:
        """Answer about money."""

    @agent(
        name="orders",
        description="Questions about parcels, orders and deliveries",
        model=model,
        history_limit=4,
        tools=[look_up],
    )
    class Orders:
        """Answer about parcels."""

    @router(name="desk", router=JevRouter(model="jev-latest", base_url=decisions, attempts=1))
    class Desk: ...

    @workflow(
        name="help-desk",
        flow=[chain(TaskStart, Desk), from_(Desk).routes(Billing, Orders, then=AnswerFinish)],
        compaction=Compaction(every=2, keep=2, model=model),
        defaults={"history": {"limit": 0, "summaries": 0}},  # a small decision model sees the task alone
    )
    class HelpDesk: ...

    return HelpDesk


async def test_two_turns_with_a_decision_a_tool_and_a_summary(fake: FakeOpenAI, sparrow: str, tmp_path: Path):
    model = ModelSpec(
        "openai-compatible:tiny", base_url=fake.base_url, price=Price(input=Decimal(1), output=Decimal(2))
    )
    fake.script(
        Reply(calls=(("c1", "look_up", '{"order": 7}'),), finish_reason="tool_calls"),
        "It was shipped on Tuesday.",
        "We refund it.",
        "Order 7 was shipped on Tuesday; a refund was promised.",
    )
    store = f"sqlite:///{tmp_path}/desk.db"
    async with create_app(help_desk(model, sparrow), store=store) as app:
        first = await app.execute("Where is my parcel, the delivery of order 7?")
        second = await app.execute("I want a refund of my invoice payment.", thread=first.thread)
        kept = await app.threads.get(first.thread)
    assert first.answer == "It was shipped on Tuesday."
    assert first.path == ("task-start", "desk", "orders", "answer-finish")
    assert [record.purpose for record in first.usage] == ["route", "answer", "answer"]
    assert second.path[2] == "billing"
    assert second.memory == "turns 1–2 → summary 1/2"
    assert [record.purpose for record in second.usage] == ["route", "answer", "compaction"]
    assert [tern.usage for tern in kept.terns] == [first.usage, second.usage]
    assert fake.requests[1]["messages"][-1]["content"] == "order 7 was shipped on Tuesday"
    assert "It was shipped on Tuesday." in str(fake.requests[2]["messages"])


@pytest.mark.parametrize("fault", ["wrong-route", "xssi-200", "choice-second"])
async def test_a_faulty_decision_server_fails_the_turn_and_no_more(fake: FakeOpenAI, fault: str):
    model = ModelSpec("openai-compatible:tiny", base_url=fake.base_url, price="free")
    fake.script("Fine.")
    with process("jevcompat", "mock", "--fault", fault) as url:
        async with create_app(help_desk(model, url), store="memory://") as app:
            with pytest.raises(AgbossError) as caught:
                await app.execute("Where is my parcel?", thread="t", create_thread=True)
            kept = await app.threads.get("t")
    assert isinstance(caught.value, RouterError)
    assert caught.value.run.status is TernStatus.FAILED
    assert [(tern.number, tern.status, tern.error_code) for tern in kept.terns] == [
        (1, TernStatus.FAILED, caught.value.code)
    ]


async def test_a_provider_error_keeps_the_task_and_a_stream_shows_pieces(fake: FakeOpenAI, sparrow: str):
    model = ModelSpec("openai-compatible:tiny", base_url=fake.base_url, price="free")
    fake.script(Reply(status=400, body={"error": {"message": "no such model"}}), Reply(text="Hello there."))
    async with create_app(help_desk(model, sparrow), store="memory://") as app:
        with pytest.raises(AgbossError) as caught:
            await app.execute("A refund of my payment, please.", thread="t", create_thread=True)
        async with app.stream("A refund of my payment, please?", thread="t") as run:
            pieces = [piece async for piece in run.text()]
    assert caught.value.run.tern == 1
    assert "".join(pieces) == "Hello there."
    assert "[failed]" in str(fake.requests[-1]["messages"])
