"""Terns: run one, listen to it, cancel it."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from starlette.responses import Response

from agboss.run import RunResult
from agboss.server.endpoint import Call, Endpoint, Query, some_task, whole
from agboss.server.problems import ServerError, json_response
from agboss.server.runs import Order, stored_log
from agboss.server.sse import STREAM, EventStream, unless_gone, until_ended
from agboss.server.threads import AGENT
from agboss_memory.attachments import Attachment
from agboss_memory.config import WireModel
from agboss_memory.messages import TernStatus
from agboss_memory.records import Record

GONE = 499
"""Status in logs and metrics of a request whose client has vanished."""


def _decoded(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(f"this is no base64: {error}") from error


class SentFile(WireModel):
    """A file that comes with a task; ``data`` is base64, ``mediaType`` null = guessed."""

    name: str
    media_type: str | None = None
    data: Annotated[bytes, BeforeValidator(_decoded)]


class NewTern(WireModel):
    """One task.

    Attributes:
        input: The task: text, or the fields of the start's model.
        start: Name of the start; may be left out when there is one.
        metadata: JSON values to keep with the Tern.
        timeout: Seconds from admission to answer; null = no bound.
        attachments: Files that come with the task.
        detach: Let the Tern end when the client vanishes; else it is cancelled then. A request with an
            ``Idempotency-Key`` that wants the whole result is detached anyway.
    """

    input: str | dict[str, Any]
    start: str | None = None
    metadata: dict[str, Any] | None = None
    timeout: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    attachments: tuple[SentFile, ...] = ()
    detach: bool = False


class Cancelled(Record, kw_only=True):
    """Whether a Tern was running, and is cancelled now."""

    cancelled: bool


async def run(call: Call) -> Response:
    """``POST /threads/{thread}/terns``: the result, or its events when the client accepts an event stream."""
    thread, served = call.path("thread"), call.service.served
    asked = await call.model(NewTern)
    place = await served.place(thread, call.text("agent"), call.owner)
    streams = STREAM in call.request.headers.get("accept", "")
    key = call.request.headers.get("idempotency-key")
    order = Order(
        opening=lambda: served.app(place.workflow),
        workflow=place.workflow,
        start=asked.start,
        input=some_task(asked.input, asked.attachments),
        thread=thread,
        owner=call.owner,
        idempotency_key=key,
        metadata=asked.metadata,
        timeout=asked.timeout,
        attachments=tuple(
            Attachment.from_bytes(one.data, name=one.name, media_type=one.media_type) for one in asked.attachments
        ),
        detached=asked.detach or (key is not None and not streams),  # who sends a key comes again for the result
    )
    log = await unless_gone(call.request.receive, call.service.runs.start(order))
    if log is None:
        return Response(status_code=GONE)
    if streams:
        return EventStream(log)
    if not await until_ended(log, call.request.receive):
        return Response(status_code=GONE)
    if log.error is not None:
        raise log.error
    return json_response(log.result)


async def events(call: Call) -> Response:
    """``GET /threads/{thread}/terns/{tern}/events``."""
    thread = call.path("thread")
    place = await call.service.served.place(thread, call.text("agent"), call.owner)
    number = whole("tern", call.path("tern"), least=1) or 0
    after = whole("Last-Event-ID", call.request.headers.get("last-event-id"), default=0) or 0
    log = call.service.runs.find(place.workflow, thread, number, call.owner)
    if log is None:
        async with call.service.served.app(place.workflow) as app:
            terns = await app.threads.terns(thread, before=number + 1, limit=1, owner=call.owner)
            pauses = await app.threads.pauses(thread, owner=call.owner)
        if terns and terns[0].number == number and terns[0].status != TernStatus.RUNNING:
            return EventStream(stored_log(place.workflow, thread, terns[0], pauses))
        text = f"no events of turn {number} are kept"
        raise ServerError("server.no-events", text, "GET /threads/{thread} tells the stored turns", status=404)
    log.listeners += 1
    return EventStream(log, after)


async def cancel(call: Call) -> Response:
    """``POST /threads/{thread}/cancel``."""
    thread = call.path("thread")
    place = await call.service.served.place(thread, call.text("agent"), call.owner)
    if call.service.runs.cancel(place.workflow, thread):
        return json_response(Cancelled(cancelled=True))
    async with call.service.served.app(place.workflow) as app:
        return json_response(Cancelled(cancelled=await app.cancel(thread)))


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/threads/{thread}/terns",
        name="runTern",
        about="Run one Tern. With `Accept: text/event-stream` its events come while it runs.",
        handler=run,
        query=(
            AGENT,
            Query(
                name="Idempotency-Key",
                about="Makes the Tern exactly-once: a repeat gives the stored result.",
                place="header",
            ),
        ),
        body=NewTern,
        gives=RunResult,
        many=(STREAM,),
        problems=(404, 409, 500, 502, 503, 504),
    ),
    Endpoint(
        method="GET",
        path="/threads/{thread}/terns/{tern}/events",
        name="ternEvents",
        about="Events of a Tern from any position. When they are not kept any more: how it ended, from the store.",
        handler=events,
        query=(
            AGENT,
            Query(name="Last-Event-ID", about="Number of the last event that is known.", kind="number", place="header"),
        ),
        media=STREAM,
        problems=(404,),
    ),
    Endpoint(
        method="POST",
        path="/threads/{thread}/cancel",
        name="cancelTern",
        about="Cancel the Tern that runs in a thread.",
        handler=cancel,
        query=(AGENT,),
        gives=Cancelled,
        problems=(404,),
    ),
)
