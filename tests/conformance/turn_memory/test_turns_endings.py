"""Turns that end without an answer: they complete blocks, are compacted and are shown with their status."""

from __future__ import annotations

import asyncio

import pytest
from desks import Gate, Models, desk, sum_up, talk, yes

from agboss import ModelError, ModelRequest, TernCancelledError, TernTimeoutError, create_app
from agboss.testing import ScriptedModels


async def test_a_failed_turn_completes_a_block() -> None:
    async def broken(request: ModelRequest) -> str:
        if "task 2." in request.messages[0].content.rpartition("Task:")[2]:
            raise ModelError("model.http", "no luck", "")
        return "Yes."

    models = Models(broken, sum_up)
    async with create_app(desk(every=2, keep=3), store="memory://", models=models) as app:
        await talk(app, 1)
        with pytest.raises(ModelError) as raised:
            await talk(app, 1, first=2)
        assert raised.value.run.memory == "turns 1–2 → summary 1/3"
        assert raised.value.run.status == "failed"
        assert [tern.status for tern in (await app.threads.get("t")).terns] == ["answered", "failed"]


async def test_a_turn_cancelled_through_the_app_completes_a_block() -> None:
    gate = Gate()
    models = Models(yes, sum_up)
    async with create_app(desk(every=2, keep=3), store="memory://", models=models) as app:
        await talk(app, 1)
        models.answer = gate
        running = asyncio.create_task(app.execute("task 2.", thread="t"))
        await gate.reached.wait()
        assert await app.cancel("t")
        with pytest.raises(TernCancelledError) as raised:
            await running
        assert gate.cancelled
        assert raised.value.run.memory == "turns 1–2 → summary 1/3"
        assert not await app.cancel("t")


async def test_a_timeout_completes_a_block() -> None:
    gate = Gate()
    models = Models(yes, sum_up)
    async with create_app(desk(every=2, keep=3), store="memory://", models=models) as app:
        await talk(app, 1)
        models.answer = gate
        with pytest.raises(TernTimeoutError) as raised:
            await app.execute("task 2.", thread="t", timeout=0.01)
        assert raised.value.run.memory == "turns 1–2 → summary 1/3"
        assert (await app.threads.get("t")).terns[-1].status == "cancelled"


async def test_a_cancelled_task_is_stored_and_its_block_compacted_before_the_next_turn() -> None:
    gate = Gate()
    seen: list[str] = []

    async def watch(request: ModelRequest) -> str:
        seen.append(request.messages[0].content)
        return "Yes."

    models = Models(yes, sum_up)
    async with create_app(desk(every=2, keep=3, limit=1), store="memory://", models=models) as app:
        await talk(app, 1)
        models.answer = gate
        running = asyncio.create_task(app.execute("task 2.", thread="t"))
        await gate.reached.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        models.answer = watch
        await talk(app, 1, first=3)
        assert [item.last for item in await app.memory.summaries("t")] == [2]
    assert '<summary turns="1–2">' in seen[0]
    assert "Q: task 2.\nA: [cancelled] The turn was cancelled.\n" in seen[0]


async def test_a_turn_that_is_cancelled_while_it_waits_leaves_nothing() -> None:
    gate = Gate()
    async with create_app(desk(), store="memory://", models=Models(gate, sum_up)) as app:
        first = asyncio.create_task(app.execute("task 1.", thread="t", create_thread=True))
        await gate.reached.wait()
        second = asyncio.create_task(app.execute("task 2.", thread="t"))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        gate.open.set()
        await first
        assert [tern.task for tern in (await app.threads.get("t")).terns] == ["task 1."]


async def test_cancelling_the_summariser_leaves_the_block_due_and_books_what_was_paid() -> None:
    gate = Gate()
    replies = ["word " * 100]

    async def long_then_stuck(request: ModelRequest) -> str:
        return replies.pop() if replies else await gate(request)

    models = Models(yes, long_then_stuck)
    async with create_app(desk(every=1, keep=3, max_tokens=10), store="memory://", models=models) as app:
        running = asyncio.create_task(app.execute("task 1.", thread="t", create_thread=True))
        await gate.reached.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert gate.cancelled
        terns = (await app.threads.get("t")).terns
        assert terns[0].status == "answered"
        assert [record.purpose for record in terns[0].usage] == ["answer", "compaction"]
        models.summary = sum_up
        result = (await talk(app, 1, first=2))[0]
        assert result.memory == "turns 1–1 → summary 1/3; turns 2–2 → summary 2/3"


async def test_a_repeat_of_a_cancelled_key_raises_the_same_kind() -> None:
    gate = Gate()
    async with create_app(desk(), store="memory://", models=Models(gate, sum_up)) as app:
        with pytest.raises(TernTimeoutError):
            await app.execute("task", idempotency_key="k", timeout=0.01)
        with pytest.raises(TernTimeoutError):
            await app.execute("task", idempotency_key="k")


async def test_a_script_can_fail_every_way() -> None:
    models = ScriptedModels()
    models.compaction.then_fail(RuntimeError("several\nlines " + "x" * 5000))
    from desks import Helper

    models.llm(Helper).then_return("answer 1.")
    async with create_app(desk(every=1, keep=3), store="memory://", models=models) as app:
        result = (await talk(app, 1))[0]
    assert "\n" not in result.warnings[0]
    assert len(result.warnings[0]) < 1000
