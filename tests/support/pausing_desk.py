"""A program whose Tern waits for approvals, and that is killed: ``python pausing_desk.py FOLDER STATEMENT``.

It asks with its key, decides about all that waits, and ends with the answer. At the SQL statement of that number it
kills itself (0 = never). Every call that begins, and every pause, is a line of ``calls.txt``.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from agboss import (
    App,
    Decision,
    ModelReply,
    ModelRequest,
    ModelSpec,
    ModelUsage,
    RunResult,
    ToolContext,
    agent,
    create_app,
    tool,
)
from agboss_memory import SqliteStore, ToolCall

PRICED = ModelSpec("ollama:stub", price={"input": 1, "output": 1})  # type: ignore[arg-type]
CALLS = (("look", "pay"), ("pay", "pay"), ("look",))
"""Tools that the model calls, message by message."""

PAUSED = "paused"
"""The line of a pause: what stands before it is stored."""

folder = Path()


def begin(what: str) -> None:
    with (folder / "calls.txt").open("a", encoding="utf-8") as file:
        file.write(f"{what}\n")


class Stub:
    """Calls tools as listed, then answers."""

    async def generate(self, request: ModelRequest) -> ModelReply:
        turn = sum(bool(message.tool_calls) for message in request.messages)
        begin(f"model.{turn}")
        usage = ModelUsage(input_tokens=10, output_tokens=1)
        if turn == len(CALLS):
            return ModelReply(text="done", usage=usage)
        calls = tuple(
            ToolCall(id=f"c{turn}-{place}", name=name, arguments=f'{{"amount": {turn * 10 + place}}}')
            for place, name in enumerate(CALLS[turn])
        )
        return ModelReply(tool_calls=calls, usage=usage)


@tool
def look(amount: int, ctx: ToolContext) -> str:
    """Look it up."""
    begin(f"tool.{ctx.call_id}")
    ctx.report_cost(2, "search")
    return f"looked {amount}"


@tool(needs_approval=True)
def pay(amount: int, ctx: ToolContext) -> str:
    """Pay it."""
    begin(f"tool.{ctx.call_id}")
    return f"paid {amount}"


@agent(name="clerk", model=PRICED, prompt="x", tools=[look, pay])
class Clerk: ...


def open_desk(place: Path, statement: int = 0) -> App:
    global folder
    folder, left = place, statement

    def trace(_: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    store = SqliteStore(place / "desk.db", synchronous="NORMAL", trace=trace)
    return create_app(Clerk, store=store, models={"ollama:stub": Stub()})


async def drive(app: App) -> RunResult:
    """The second payment is denied, the third one changed."""
    result = await app.execute("Go.", thread="t", create_thread=True, idempotency_key="k")
    while result.pause is not None:
        begin(PAUSED)
        pause = result.pauses[0]
        amount = pause.arguments["amount"]
        changed = {"amount": 99} if amount == 11 else None
        decision = Decision(approved=amount != 10, arguments=changed)
        result = await app.resume("t", decision, pause_id=pause.id)
    return result


async def main(place: Path, statement: int) -> None:
    async with open_desk(place, statement) as app:
        sys.stdout.write((await drive(app)).answer)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
