"""A workflow whose model does what the task says; served by real processes and asked by real clients.

``look up X`` calls a tool, ``recall`` tells what was said before, ``fail`` fails, ``stream N TEXT`` answers in N pieces
``TEXT-0 TEXT-1 ...``, ``hang TEXT`` writes one piece and never ends, ``do A, then B`` calls another tool twice.
``Desk`` has tools, so that its text is told when it is whole; ``Teller`` has none, its pieces are told at once.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from uuid import uuid4

from agboss import (
    AnswerFinish,
    ChatModel,
    ModelReply,
    ModelRequest,
    ModelSpec,
    ModelUsage,
    TaskStart,
    ToolContext,
    agent,
    chain,
    model_provider,
    tool,
    workflow,
)
from agboss_memory import ToolCall

NOTES = os.environ.get("DESK_NOTES", "")
"""File that gets a line for each thing that is done; empty = none."""

HOLD = os.environ.get("DESK_HOLD", "")
"""What is begun and never finished."""

USAGE = ModelUsage(input_tokens=10, output_tokens=2, free=True)


@tool
def look_up(topic: str) -> str:
    """Look something up."""
    if topic == "nothing":
        raise LookupError(topic)
    return f"{topic} is blue."


@tool
async def do(what: str, ctx: ToolContext) -> str:
    """Do something that must not be done twice."""
    note(f"begin {what}")
    if what == HOLD:
        await asyncio.Event().wait()  # until this process is killed
    note(f"done {what}")
    return f"{what} is done."


def note(line: str) -> None:
    """A line that is on the disk before the next thing happens."""
    if NOTES:
        with Path(NOTES).open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")


def say(request: ModelRequest, text: str) -> None:
    if request.on_text is not None:
        request.on_text(text)


def call(name: str, **arguments: str) -> ModelReply:
    made = ToolCall(id=f"call-{uuid4().hex}", name=name, arguments=json.dumps(arguments))
    return ModelReply(tool_calls=(made,), usage=USAGE)


class Scripted:
    """Reads the newest task and what tools have answered since."""

    async def generate(self, request: ModelRequest) -> ModelReply:
        at = max(number for number, message in enumerate(request.messages) if message.role == "user")
        before, _, task = request.messages[at].content.rpartition("Task:\n")
        results = [message.content for message in request.messages[at:] if message.role == "tool"]
        word, _, rest = task.partition(" ")
        if word == "look" and not results:
            return call("look_up", topic=rest.removeprefix("up "))
        if word == "do" and len(wanted := rest.split(", then ")) > len(results):
            return call("do", what=wanted[len(results)])
        if results:
            return self._tell(request, " ".join(results))
        if word == "stream":
            return await self._stream(request, *rest.split(" ", 1))
        if word == "fail":
            raise RuntimeError("key sk-very-secret was refused")
        if word == "hang":
            say(request, f"{rest}-0 ")
            await asyncio.Event().wait()
        said = [line.removeprefix("Q: ") for line in before.splitlines() if line.startswith("Q: ")]
        return self._tell(request, f"You said: {'; '.join(said)}.")

    def _tell(self, request: ModelRequest, text: str) -> ModelReply:
        say(request, text)
        return ModelReply(text=text, usage=USAGE)

    async def _stream(self, request: ModelRequest, pieces: str, secret: str) -> ModelReply:
        told: list[str] = []
        for number in range(int(pieces)):
            told.append(f"{secret}-{number} ")
            say(request, told[-1])
            await asyncio.sleep(0)
        return ModelReply(text="".join(told), usage=USAGE)


@model_provider(name="scripted")
class Provider:
    """Models that are called ``scripted:...``."""

    def model(self, spec: ModelSpec) -> ChatModel:
        return Scripted()


@agent(name="clerk", model="scripted:clerk", prompt="Do what the task says.", tools=[look_up, do])
class Clerk: ...


@agent(name="speaker", model="scripted:speaker", prompt="Tell what the task says.")
class Speaker: ...


@workflow(name="desk", version="1.0.0", flow=chain(TaskStart, Clerk, AnswerFinish), providers=[Provider])
class Desk: ...


@workflow(name="teller", version="1.0.0", flow=chain(TaskStart, Speaker, AnswerFinish), providers=[Provider])
class Teller: ...
