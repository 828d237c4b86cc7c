"""What a person does to memory: look, compact, undo; refused while a turn runs, wherever it runs."""

from __future__ import annotations

import asyncio

import pytest
from desks import MODEL, Gate, Models, desk, sum_up, talk, yes

from agboss import ThreadBusyError, agent, create_app
from agboss_memory import BaseMemoryStrategy, LeftOut, MemoryContext, MemoryStore, MemoryView


async def test_compact_and_undo_are_refused_while_another_app_runs_a_turn() -> None:
    store, gate = MemoryStore(), Gate()
    models = Models(yes, sum_up)
    async with (
        create_app(desk(every=2), store=store, models=models) as first,
        create_app(desk(every=2), store=store, models=Models(gate, sum_up)) as second,
    ):
        await talk(first, 2)
        running = asyncio.create_task(second.execute("task 3.", thread="t"))
        await gate.reached.wait()
        for app in (first, second):
            with pytest.raises(ThreadBusyError):
                await app.memory.compact("t")
            with pytest.raises(ThreadBusyError):
                await app.memory.undo("t")
        gate.open.set()
        await running
        undone = await first.memory.undo("t")
        assert undone is not None
        assert (await second.memory.compact("t")).summaries == ()


async def test_undo_goes_back_one_summary_at_a_time() -> None:
    async with create_app(desk(every=1, keep=3), store="memory://", models=Models(yes, sum_up)) as app:
        await talk(app, 3)
        undone = [await app.memory.undo("t") for _ in range(4)]
        assert [item.last if item else None for item in undone] == [3, 2, 1, None]
        assert (await talk(app, 1, first=4))[0].memory == "turns 4–4 → summary 1/3"


class Picky(BaseMemoryStrategy):
    """Leaves out what it does not like, and says so."""

    def build_context(self, context: MemoryContext) -> MemoryView:
        named = (LeftOut(first=2, last=3, reason="boring"),)
        return MemoryView(history=context.history[3:], left_out=named)


@agent(name="picky", model=MODEL, memory_strategy=Picky, history_limit=4)
class PickyAgent: ...


async def test_what_a_strategy_names_as_left_out_keeps_its_reason() -> None:
    async with create_app(desk(PickyAgent, every=None), store="memory://", models=Models(yes, sum_up)) as app:
        await talk(app, 4)
        view = await app.memory.view("t")
    assert view.left_out == (
        LeftOut(first=1, last=1, reason="beyond_reach"),
        LeftOut(first=2, last=3, reason="boring"),
    )
    assert [row.last_tern for row in view.messages if row.last_tern] == [4]
