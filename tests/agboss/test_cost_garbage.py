"""A Tern goes when its last reference goes: nothing that it made waits for the garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from fault_desk import open_desk

from agboss import (
    AnswerFinish,
    App,
    Defaults,
    History,
    ModelReply,
    ModelRequest,
    TaskStart,
    agent,
    chain,
    create_app,
    workflow,
)
from agboss_memory import MemoryStore, SqliteStore

TERNS = 12


class Parrot:
    """A model without latency."""

    async def generate(self, request: ModelRequest) -> ModelReply:
        return ModelReply(text="an answer")


@agent(model="ollama:parrot", prompt="Answer.")
class Talker: ...


@workflow(name="talk", flow=[chain(TaskStart, Talker, AnswerFinish)], defaults=Defaults(history=History(limit=4)))
class Talk: ...


async def execute(app: App) -> None:
    await app.execute("What about it?", thread="t", create_thread=True)


async def stream(app: App) -> None:
    async with app.stream("What about it?", thread="t", create_thread=True) as run:
        async for _ in run:
            pass


async def left(app: App, turn: Callable[[App], Awaitable[None]]) -> list[str]:
    """Types of what the collector finds after many Terns that nobody holds."""
    async with app:
        for _ in range(TERNS):  # caches are full
            await turn(app)
        gc.collect()
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            for _ in range(TERNS):
                await turn(app)
            gc.collect()
            return [type(one).__name__ for one in gc.garbage]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()


@pytest.mark.parametrize("turn", [execute, stream])
@pytest.mark.parametrize("store", ["memory", "sqlite"])
@pytest.mark.parametrize("flow", ["plain", "everything"])
async def test_a_tern_leaves_nothing_for_the_collector(
    turn: Callable[[App], Awaitable[None]], store: str, flow: str, tmp_path: Path
):
    opened: Any = MemoryStore() if store == "memory" else SqliteStore(tmp_path / "log.db", synchronous="NORMAL")
    if flow == "plain":
        app = create_app(Talk, store=opened, models={"ollama:parrot": Parrot()})
    else:
        app = open_desk(opened, record_views=True)
    assert await left(app, turn) == []
