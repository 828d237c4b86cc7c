"""Memory work in the background: the result comes at the commit, the thread's next turn waits."""

from __future__ import annotations

import asyncio

from desks import Gate, Models, desk, sum_up, talk, yes

from agboss import ModelRequest, create_app


async def test_the_result_comes_at_the_commit_and_the_next_turn_waits() -> None:
    gate = Gate()
    seen: list[str] = []

    async def watch(request: ModelRequest) -> str:
        seen.append(request.messages[0].content)
        return "Yes."

    models = Models(watch, gate)
    workflow = desk(every=1, keep=3, limit=1)
    async with create_app(workflow, store="memory://", models=models, memory_work="background") as app:
        result = (await talk(app, 1))[0]
        assert (result.answer, result.memory, result.compaction) == ("Yes.", None, None)
        await gate.reached.wait()
        second = asyncio.create_task(app.execute("task 2.", thread="t"))
        other = await app.execute("another thread", thread="u", create_thread=True)
        assert other.answer == "Yes."
        assert len(seen) == 2
        assert not second.done()
        gate.open.set()
        assert (await second).tern == 2
        assert '<summary turns="1–1">' in seen[2]


async def test_closing_finishes_the_work() -> None:
    gate = Gate("In short.")
    from agboss_memory import MemoryStore

    store = MemoryStore()
    app = create_app(desk(every=1), store=store, models=Models(yes, gate), memory_work="background")
    await talk(app, 1)
    await gate.reached.wait()
    closing = asyncio.create_task(app.aclose())
    await asyncio.sleep(0)
    assert not closing.done()
    gate.open.set()
    await closing
    async with create_app(desk(every=1), store=store, models=Models(yes, sum_up)) as app:
        assert [item.text for item in await app.memory.summaries("t")] == ["In short."]
        assert [tern.usage[-1].purpose for tern in (await app.threads.get("t")).terns] == ["compaction"]


async def test_a_failing_strict_compaction_in_the_background_hurts_nobody() -> None:
    async def broken(_: ModelRequest) -> str:
        raise RuntimeError("down")

    workflow = desk(every=1, strict=True)
    async with create_app(workflow, store="memory://", models=Models(yes, broken), memory_work="background") as app:
        results = await talk(app, 3)
    assert [result.answer for result in results] == ["Yes."] * 3
