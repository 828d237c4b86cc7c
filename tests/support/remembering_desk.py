"""A program whose memory work takes as long as it is told: ``python remembering_desk.py FOLDER WORK``.

It runs one Tern, says ``working`` when memory is at work, and goes on when a line comes in. Every call of memory that begins
is a line of ``calls.txt``.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from agboss import (
    AnswerFinish,
    App,
    Compaction,
    ModelReply,
    ModelRequest,
    TaskStart,
    agent,
    chain,
    create_app,
    workflow,
)
from agboss_memory import (
    BaseMemoryStrategy,
    MemoryContext,
    MemoryModel,
    MemoryTurn,
    MemoryUpdate,
    MemoryView,
    SqliteStore,
)


class Facts(BaseMemoryStrategy):
    """Learns with a model of its own."""

    def __init__(self, model: MemoryModel) -> None:
        self._model = model

    def build_context(self, context: MemoryContext) -> MemoryView:
        return MemoryView(history=context.history)

    async def update_memory(self, turn: MemoryTurn) -> MemoryUpdate:
        await self._model.generate(f"What is to be kept of {turn.tern.number}?")
        return MemoryUpdate()


@agent(name="writer", model="ollama:stub", prompt="Write.", memory_strategy=Facts)
class Writer: ...


@workflow(
    name="remembering",
    version="1.0.0",
    flow=[chain(TaskStart, Writer, AnswerFinish)],
    compaction=Compaction(every=1, keep=9, model="ollama:stub"),
)
class Remembering: ...


class Stub:
    """Answers at once; memory's calls are noted and wait.

    Args:
        folder: Where they are noted.
        name: Who notes them.
        wait: What they wait for.
    """

    def __init__(self, folder: Path, name: str, wait: Callable[[ModelRequest], Awaitable[None]]) -> None:
        self._file = folder / "calls.txt"
        self._name = name
        self._wait = wait

    async def generate(self, request: ModelRequest) -> ModelReply:
        if request.purpose != "answer":
            with self._file.open("a", encoding="utf-8") as file:
                file.write(f"{self._name}:{request.purpose}\n")
            await self._wait(request)
        return ModelReply(text="Noted.")


def open_desk(folder: Path, name: str, wait: Callable[[ModelRequest], Awaitable[None]], **settings: Any) -> App:
    """The App over the folder's file."""
    given = settings.pop("store", None) or SqliteStore(folder / "desk.db", synchronous="NORMAL")
    return create_app(Remembering, store=given, models={"ollama:stub": Stub(folder, name, wait)}, **settings)


async def main(folder: Path, purpose: str, work: Any) -> None:
    async def wait(request: ModelRequest) -> None:
        if request.purpose == purpose:
            sys.stdout.write("working\n")
            sys.stdout.flush()
            await asyncio.to_thread(sys.stdin.readline)

    async with open_desk(folder, "a", wait, memory_work=work) as app:
        await app.execute("One.", thread="t", create_thread=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
