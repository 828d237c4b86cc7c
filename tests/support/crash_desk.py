"""The workflow of the kill tests: two agents, tools, an action, both kinds of memory, and a note of every call.

What a call answers follows from the Tern's key alone (``t3/7``, or ``t8/a/7`` where every process has Terns of its own),
so that a driver knows what must have been stored.
"""

from __future__ import annotations

import asyncio
import os
import re
from decimal import Decimal
from pathlib import Path

from agboss import (
    ActionContext,
    AnswerFinish,
    App,
    Compaction,
    Defaults,
    History,
    ModelReply,
    ModelRequest,
    ModelSpec,
    ModelUsage,
    Price,
    TaskStart,
    ToolContext,
    action,
    agent,
    chain,
    create_app,
    tool,
    workflow,
)
from agboss_memory import AutoCompactConfig, Message, ToolCall

EVERY = 3
"""Terns of a block of turn memory."""

KEY = re.compile(r"\[(t\d+/[\w/]+)\]")

PRICED = ModelSpec("ollama:stub", price=Price(input=Decimal(1), output=Decimal(2)))
SMALL = ModelSpec("ollama:stub", price=Price(input=Decimal(1), output=Decimal(2)), context_window=500, max_tokens=60)

PAID = Decimal("0.000012")
"""US dollars of one model call."""


class Notes:
    """Lines of a file that are on the disk before the next thing happens; each one also wakes whoever waits for it.

    Args:
        file: The file.
        bell: A named pipe that gets one byte for a line, or None.
    """

    def __init__(self, file: Path, bell: Path | None = None) -> None:
        self._file = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._bell = None if bell is None else os.open(bell, os.O_RDWR)

    def write(self, line: str) -> None:
        os.write(self._file, f"{line}\n".encode())
        os.fdatasync(self._file)
        if self._bell is not None:
            os.write(self._bell, b".")


notes: Notes | None = None


def note(what: str, key: str, call: str) -> None:
    """One line about a call: ``begin t3/7 finder.model.0``."""
    if notes is not None:
        notes.write(f"{what} {key} {call}")


def key_in(text: str) -> str:
    """The key of the task that a text ends with."""
    return KEY.findall(text)[-1]


def rounds(key: str) -> int:
    """How often the first agent asks for tools."""
    return 1 + int(key.rpartition("/")[2]) % 3


def calls_of(key: str, index: int) -> tuple[ToolCall, ...]:
    """What it asks for in one round: two tools at the same time in the first."""
    names = ("a", "b") if index == 0 else ("a",)
    return tuple(ToolCall(id=f"c{index}{name}", name="find", arguments=f'{{"what": "[{key}]"}}') for name in names)


def answer_of(key: str) -> str:
    """What a Tern is answered."""
    return f"keeper kept [{key}]"


def booked_for(key: str) -> list[tuple[str, str, Decimal]]:
    """Caller, purpose and cost of everything that a Tern pays for, memory apart; sorted."""
    tools = sum(len(calls_of(key, index)) for index in range(rounds(key)))
    models = [("finder", "answer", PAID)] * (rounds(key) + 1) + [("keeper", "answer", PAID)]
    return sorted([*models, *[("find", "tool", Decimal(2))] * tools])


class Stub:
    """Answers at once, by the key of the task."""

    async def generate(self, request: ModelRequest) -> ModelReply:
        usage = ModelUsage(input_tokens=10, output_tokens=1)
        if request.purpose != "answer":
            note("begin", "-", request.caller)
            await asyncio.sleep(0)
            note("done", "-", request.caller)
            return ModelReply(text="They kept things.", usage=usage)
        place = max(n for n, message in enumerate(request.messages) if message.role == "user")
        key = key_in(request.messages[place].content)
        index = sum(message.role == "assistant" for message in request.messages[place:])
        call = f"{request.caller}.model.{index}"
        note("begin", key, call)
        await asyncio.sleep(0)
        reply = self._reply(request.caller, key, index, request.messages)
        note("done", key, call)
        return ModelReply(text=reply.text, tool_calls=reply.tool_calls, usage=usage)

    def _reply(self, caller: str, key: str, index: int, messages: tuple[Message, ...]) -> ModelReply:
        if caller == "keeper":
            return ModelReply(text=answer_of(key))
        if index < rounds(key):
            return ModelReply(tool_calls=calls_of(key, index))
        last = [message for message in messages if message.role == "tool"][-1]
        return ModelReply(text=f"{last.content} " + "and this and that " * 12 + f"for [{key}]")


@tool
async def find(what: str, ctx: ToolContext) -> str:
    """Find it."""
    key = key_in(what)
    note("begin", key, f"finder.tool.{ctx.call_id}")
    ctx.report_cost(2, "search")
    await asyncio.sleep(0)
    note("done", key, f"finder.tool.{ctx.call_id}")
    return f"found [{key}]"


@agent(name="finder", model=PRICED, prompt="Find what is asked for.", tools=[find])
class Finder: ...


@action(name="mark")
class Mark:
    """Marks what was found."""

    async def run(self, ctx: ActionContext) -> str:
        key = key_in(ctx.task)
        note("begin", key, "mark.action")
        await asyncio.sleep(0)
        note("done", key, "mark.action")
        return f"marked: {ctx.input}"


@agent(name="keeper", model=SMALL, prompt="Keep it.", memory_config=AutoCompactConfig(compact_at_ratio=Decimal("0.9")))
class Keeper: ...


@workflow(
    name="crash-desk",
    version="1.0.0",
    flow=[chain(TaskStart, Finder, Mark, Keeper, AnswerFinish)],
    defaults=Defaults(history=History(limit=2, summaries=2)),
    compaction=Compaction(every=EVERY, keep=4, model=PRICED),
)
class CrashDesk: ...


def open_desk(store: str) -> App:
    """The App over a store."""
    return create_app(CrashDesk, store=store, models={"ollama:stub": Stub()})
