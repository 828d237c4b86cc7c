"""Pauses: what waits for a decision, and deciding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, StrictBool
from starlette.responses import Response

from agboss.pauses import Decision, Pause
from agboss.run import RunResult
from agboss.server.endpoint import Call, Endpoint
from agboss.server.log import TernLog
from agboss.server.problems import json_response
from agboss.server.runs import Order
from agboss.server.sse import STREAM, EventStream, unless_gone, until_ended
from agboss.server.terns import GONE
from agboss.server.threads import AGENT
from agboss_memory.config import WireModel
from agboss_memory.records import Record


class NewDecision(WireModel):
    """What is decided about a call. It counts even when the client vanishes; the same one again gives its result.

    Attributes:
        pause_id: Which call: ``id`` of the pause.
        approved: Whether it may run.
        reason: Why not; told to the model.
        arguments: Run it with these instead; null = as the model gave them.
        timeout: Seconds from here to the answer; null = no bound.
    """

    pause_id: str = Field(min_length=1, max_length=512)
    approved: StrictBool
    reason: str = Field(default="", max_length=10_000)
    arguments: dict[str, Any] | None = None
    timeout: float | None = Field(default=None, gt=0, allow_inf_nan=False)


class PauseList(Record, kw_only=True):
    """Calls that wait for a decision, oldest first."""

    pauses: tuple[Pause, ...]


async def show(call: Call) -> Response:
    """``GET /threads/{thread}/pauses``."""
    thread = call.path("thread")
    place = await call.service.served.place(thread, call.text("agent"), call.owner)
    async with call.service.served.app(place.workflow) as app:
        return json_response(PauseList(pauses=await app.threads.pauses(thread, owner=call.owner)))


async def resume(call: Call) -> Response:
    """``POST /threads/{thread}/resume``: the result, or its events when the client accepts an event stream."""
    asked = await call.model(NewDecision)
    decision = Decision(approved=asked.approved, reason=asked.reason, arguments=asked.arguments)
    decisions = {asked.pause_id: decision}
    log = await decide(call, call.path("thread"), call.text("agent"), decisions, timeout=asked.timeout)
    if log is None:
        return Response(status_code=GONE)
    if STREAM in call.request.headers.get("accept", ""):
        return EventStream(log)
    if not await until_ended(log, call.request.receive):
        return Response(status_code=GONE)
    if log.error is not None:
        raise log.error
    return json_response(log.result)


async def decide(
    call: Call, thread: str, agent: str | None, decisions: Mapping[str, Decision], *, timeout: float | None = None
) -> TernLog | None:
    """Take decisions by pause, one after the other; gives the events that follow the last. None = the client is gone.

    A decision counts whether or not somebody listens: the Tern goes on when the client vanishes.
    """
    service = call.service
    place = await service.served.place(thread, agent, call.owner)
    log: TernLog | None = None
    for pause_id, decision in decisions.items():
        if log is not None and not await until_ended(log, call.request.receive):
            return None
        if log is not None and log.error is not None:
            raise log.error
        order = Order(
            opening=lambda: service.served.app(place.workflow),
            workflow=place.workflow,
            thread=thread,
            owner=call.owner,
            decision=decision,
            pause_id=pause_id,
            timeout=timeout,
            detached=True,
        )
        log = await unless_gone(call.request.receive, service.runs.start(order))
        if log is None:
            return None
    return log


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/threads/{thread}/pauses",
        name="listPauses",
        about="Calls of a thread that wait for a decision.",
        handler=show,
        query=(AGENT,),
        gives=PauseList,
        problems=(404,),
    ),
    Endpoint(
        method="POST",
        path="/threads/{thread}/resume",
        name="resumeTern",
        about="Decide about a call that waits, and go on. With `Accept: text/event-stream` events come meanwhile.",
        handler=resume,
        query=(AGENT,),
        body=NewDecision,
        gives=RunResult,
        many=(STREAM,),
        problems=(404, 409, 500, 502, 503, 504),
    ),
)
