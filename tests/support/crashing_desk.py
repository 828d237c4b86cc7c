"""A program that dies at a named point of its Tern: ``python crashing_desk.py FOLDER POINT [KEY]``.

Every call that begins, and every one that has finished, is a line of ``calls.txt``. The points are the numbers of calls
that never return, from 1; 0 = none.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from agboss import (
    ActionContext,
    AnswerFinish,
    App,
    ModelReply,
    ModelRequest,
    ModelSpec,
    ModelUsage,
    TaskStart,
    ToolContext,
    action,
    agent,
    chain,
    create_app,
    tool,
    workflow,
)
from agboss.runtime import ThreadPolicy
from agboss_memory import ToolCall

PRICED = ModelSpec("ollama:stub", price={"input": 1, "output": 1})  # type: ignore[arg-type]


class Calls:
    """Counts calls over all runs of the program, and ends it at the right one."""

    def __init__(self, folder: Path, point: int) -> None:
        self.path = folder / "calls.txt"
        self.point = point

    def begin(self, what: str) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{what}\n")
        if self.point and len(self.lines()) == self.point:
            os._exit(9)

    def lines(self) -> list[str]:
        return self.path.read_text(encoding="utf-8").split() if self.path.exists() else []


calls = Calls(Path(), 0)


class Stub:
    """Finds twice, then answers; a second agent answers with what it got."""

    async def generate(self, request: ModelRequest) -> ModelReply:
        done = sum(message.role == "tool" for message in request.messages)
        calls.begin(f"{request.caller}-{done}")
        usage = ModelUsage(input_tokens=10, output_tokens=1)
        if request.caller == "finder" and done < 2:
            call = ToolCall(id=f"c{done}", name="find", arguments='{"what": "x"}')
            return ModelReply(tool_calls=(call,), usage=usage)
        return ModelReply(text=f"{request.caller} is done", usage=usage)


@tool
def find(what: str, ctx: ToolContext) -> str:
    """Find it."""
    calls.begin(f"tool-{ctx.call_id}")
    ctx.report_cost(2, "search")
    return f"found {what}"


@agent(name="finder", model=PRICED, prompt="x", tools=[find])
class Finder: ...


@action(name="note")
class Note:
    """Notes it."""

    async def run(self, ctx: ActionContext) -> str:
        calls.begin("action")
        return f"noted: {ctx.input}"


@agent(name="writer", model=PRICED, prompt="x")
class Writer: ...


@workflow(name="desk", version="1.0.0", flow=[chain(TaskStart, Finder, Note, Writer, AnswerFinish)])
class Desk: ...


def open_desk(folder: Path, point: int = 0, policy: ThreadPolicy = "enqueue") -> App:
    global calls
    calls = Calls(folder, point)
    url = f"sqlite:///{folder}/desk.db"
    return create_app(Desk, store=url, models={"ollama:stub": Stub()}, thread_policy=policy)


async def main(folder: Path, point: int, key: str | None) -> None:
    async with open_desk(folder, point) as app:
        result = await app.execute(TaskStart, "Find x.", thread="t", create_thread=True, idempotency_key=key)
        sys.stdout.write(result.answer)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None))
