"""Memory of a thread: what an agent sees next, why, and what a person may do about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field
from starlette.responses import Response

from agboss.app import WorkingMemory
from agboss.errors import CompactionError
from agboss.server.endpoint import Call, Endpoint, Query
from agboss.server.problems import ServerError, json_response, problem_of
from agboss.server.threads import AGENT
from agboss_memory.config import WireModel
from agboss_memory.messages import Summary
from agboss_memory.records import Record
from agboss_memory.replay import WhatIf

MOST_IDS = 20
"""Summaries that are named when another one was asked for."""


class Stopped(Record, kw_only=True):
    """Why a Compact stopped: stable code and message."""

    code: str
    message: str


class Compacted(Record, kw_only=True):
    """What Compact did.

    Attributes:
        thread_id: The thread.
        compressed_messages: Messages (window memory) or Terns (turn memory) that summaries now cover in addition.
        summaries: The summaries that were written.
    """

    thread_id: str
    compressed_messages: int
    summaries: tuple[Summary, ...]


class CompactStopped(Compacted, kw_only=True):
    """What Compact did before it ended early. What was written stays.

    Attributes:
        stopped: Why it ended.
    """

    stopped: Stopped


class Undone(Record, kw_only=True):
    """The summary that was retired, None when there was none."""

    summary: Summary | None


class ToolResult(Record, kw_only=True):
    """The full text of a tool result."""

    id: str
    content: str


class WhichSummary(WireModel):
    """The summary to undo; null = the newest."""

    summary: int | None = Field(default=None, ge=0, le=2**62)


class WhatIfInput(WireModel):
    """A memoryConfig to replay the conversation under; ``last`` = newest messages that are replayed."""

    config: dict[str, Any]
    last: int = Field(default=1000, ge=1, le=100_000)


async def view(call: Call) -> Response:
    """``GET /threads/{thread}/memory``."""
    thread = call.path("thread")
    place = await call.service.served.place(thread, call.text("agent"), call.owner)
    async with call.service.served.app(place.workflow) as app:
        return json_response(await app.memory.view(thread, place.agent, owner=call.owner))


async def explain(call: Call) -> Response:
    """``GET /threads/{thread}/memory/explain``."""
    thread = call.path("thread")
    tern, model_call = call.number("tern", least=1), call.number("call", default=0) or 0
    place = await call.service.served.place(thread, call.text("agent"), call.owner)
    async with call.service.served.app(place.workflow) as app:
        found = await app.memory.explain(thread, place.agent, tern=tern, call=model_call, owner=call.owner)
    return json_response(found)


async def compact(call: Call) -> Response:
    """``POST /threads/{thread}/memory/compact``."""
    thread = call.path("thread")
    place = await call.service.served.place(thread, call.text("agent"), call.owner)
    async with call.service.served.app(place.workflow) as app:
        before = await app.memory.summaries(thread, place.agent, owner=call.owner)
        try:
            report = await app.memory.compact(thread, place.agent, owner=call.owner)
        except CompactionError as error:
            after = await app.memory.summaries(thread, place.agent, owner=call.owner)
            return json_response(_stopped(thread, before, after, error))
    done = Compacted(thread_id=thread, compressed_messages=report.compressed_messages, summaries=report.summaries)
    return json_response(done)


def _stopped(
    thread: str, before: Sequence[Summary], after: Sequence[Summary], error: CompactionError
) -> CompactStopped:
    """What was made, and paid for, before a Compact stopped. Raises its error when that is nothing and no fact."""
    made = tuple(one for one in after if one.id not in {known.id for known in before})
    if not made and not _no_gain(error):
        raise error
    covered = sum(one.last - one.first + 1 for one in after) - sum(one.last - one.first + 1 for one in before)
    told = problem_of(error)
    return CompactStopped(
        thread_id=thread,
        compressed_messages=max(0, covered),
        summaries=made,
        stopped=Stopped(code=told.code, message=told.detail),
    )


def _no_gain(error: CompactionError) -> bool:
    """Whether the summary was fine and would only be no shorter than what it stands for."""
    cause = error.__cause__
    return any(isinstance(one, CompactionError) and "before" in one.data for one in (error, cause))


async def undo(call: Call) -> Response:
    """``POST /threads/{thread}/memory/undo``."""
    thread = call.path("thread")
    asked = await call.model(WhichSummary)
    place = await call.service.served.place(thread, call.text("agent"), call.owner)
    async with call.service.served.app(place.workflow) as app:
        retired = await app.memory.undo(thread, place.agent, summary=asked.summary, owner=call.owner)
        if retired is None and asked.summary is not None:
            known = await app.memory.summaries(thread, place.agent, owner=call.owner)
            ids = ", ".join(str(one.id) for one in known[-MOST_IDS:])
            text = f"there is no active summary {asked.summary}"
            hint = f"those that can be undone: {ids}" if ids else "no summary counts in this thread"
            raise ServerError("memory.no-such-summary", text, hint, status=404)
    return json_response(Undone(summary=retired))


async def what_if(call: Call) -> Response:
    """``POST /threads/{thread}/memory/what-if``."""
    thread = call.path("thread")
    asked = await call.model(WhatIfInput)
    place = await call.service.served.place(thread, call.text("agent"), call.owner)
    async with call.service.served.app(place.workflow) as app:
        found = await app.memory.what_if(thread, asked.config, place.agent, last=asked.last, owner=call.owner)
    return json_response(found)


async def tool_result(call: Call) -> Response:
    """``GET /threads/{thread}/tool-results/{message}``."""
    thread, message = call.path("thread"), call.path("message")
    place = await call.service.served.place(thread, call.text("agent"), call.owner)
    async with call.service.served.app(place.workflow) as app:
        content = await app.memory.tool_result(thread, message, place.agent, owner=call.owner)
    return json_response(ToolResult(id=message, content=content))


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/threads/{thread}/memory",
        name="showMemory",
        about="What an agent will see next, piece by piece with its tokens.",
        handler=view,
        query=(AGENT,),
        gives=WorkingMemory,
        problems=(404, 500),
    ),
    Endpoint(
        method="GET",
        path="/threads/{thread}/memory/explain",
        name="explainMemory",
        about="The same with reasons, also of an earlier Tern and call.",
        handler=explain,
        query=(
            AGENT,
            Query(name="tern", about="Number of a Tern; left out = the next one.", kind="number", least=1),
            Query(name="call", about="Which call of the model within it, from 0.", kind="number"),
        ),
        gives=WorkingMemory,
        problems=(404, 500),
    ),
    Endpoint(
        method="POST",
        path="/threads/{thread}/memory/compact",
        name="compactMemory",
        about="Summarise now.",
        handler=compact,
        query=(AGENT,),
        gives=Compacted,
        or_gives=CompactStopped,
        problems=(404, 409, 502),
    ),
    Endpoint(
        method="POST",
        path="/threads/{thread}/memory/undo",
        name="undoSummary",
        about="Retire a summary: what it stood for is seen again.",
        handler=undo,
        query=(AGENT,),
        body=WhichSummary,
        gives=Undone,
        problems=(404, 409),
    ),
    Endpoint(
        method="POST",
        path="/threads/{thread}/memory/what-if",
        name="whatIf",
        about="What the model would have read under another memoryConfig. No model is called.",
        handler=what_if,
        query=(AGENT,),
        body=WhatIfInput,
        gives=WhatIf,
        problems=(404, 500),
    ),
    Endpoint(
        method="GET",
        path="/threads/{thread}/tool-results/{message}",
        name="showToolResult",
        about="The full text of a tool result by its message id, such as m-7.",
        handler=tool_result,
        query=(AGENT,),
        gives=ToolResult,
        problems=(404,),
    ),
)
