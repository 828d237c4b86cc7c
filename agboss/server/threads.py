"""Threads: make, list, show, export, delete."""

from __future__ import annotations

from starlette.responses import Response, StreamingResponse

from agboss.app import Thread
from agboss.errors import UnknownThreadError
from agboss.server.endpoint import Call, Endpoint, Query
from agboss.server.problems import ServerError, json_response
from agboss_memory.config import WireModel
from agboss_memory.records import Record
from agboss_memory.stores.contract import ThreadInfo

AGENT = Query(name="agent", about="Name of the agent; may be left out when there is one.")
LONGEST_PAGE = 500
"""Threads or Terns of one answer."""


class NewThread(WireModel):
    """What a new thread needs: the agent, where each has threads of its own."""

    agent: str | None = None


class ThreadMade(Record, kw_only=True):
    """Id of a new thread."""

    id: str


class ThreadList(Record, kw_only=True):
    """Threads, newest first.

    Attributes:
        threads: One page.
        next: Cursor of the next page, None = there is none.
    """

    threads: tuple[ThreadInfo, ...]
    next: str | None = None


async def make(call: Call) -> Response:
    """``POST /threads``."""
    asked = await call.model(NewThread)
    place = await call.service.served.new_place(asked.agent)
    async with call.service.served.app(place.workflow) as app:
        thread = await app.threads.create(owner=call.owner)
    return json_response(ThreadMade(id=thread), 201, {"Location": f"/threads/{thread}"})


async def show_list(call: Call) -> Response:
    """``GET /threads``."""
    limit = _page(call, "limit", 100)
    cursor = call.text("cursor")
    place = await call.service.served.new_place(call.text("agent"))
    async with call.service.served.app(place.workflow) as app:
        if cursor is not None:
            try:  # one of another owner would tell that it exists
                await app.threads.get(cursor, 0, owner=call.owner)
            except UnknownThreadError as error:
                what = "the cursor names no thread"
                raise ServerError("server.bad-query", what, "begin without one", status=400) from error
        found = await app.threads.list(owner=call.owner, after=cursor, limit=limit + 1)
    following = found[limit - 1].id if len(found) > limit else None
    return json_response(ThreadList(threads=found[:limit], next=following))


async def show(call: Call) -> Response:
    """``GET /threads/{thread}``."""
    thread, last = call.path("thread"), _page(call, "last", 100)
    place = await call.service.served.place(thread, call.text("agent"), call.owner)
    async with call.service.served.app(place.workflow) as app:
        return json_response(await app.threads.get(thread, last, owner=call.owner))


async def export(call: Call) -> Response:
    """``GET /threads/{thread}/export``."""
    thread = call.path("thread")
    place = await call.service.served.place(thread, call.text("agent"), call.owner)
    async with call.service.served.app(place.workflow) as app:
        whole = await app.threads.export(thread, owner=call.owner)
    return StreamingResponse(whole.lines(), media_type="application/jsonl")


async def delete(call: Call) -> Response:
    """``DELETE /threads/{thread}``."""
    thread = call.path("thread")
    place = await call.service.served.place(thread, call.text("agent"), call.owner)
    async with call.service.served.app(place.workflow) as app:
        await app.threads.delete(thread, owner=call.owner)
    call.service.runs.forget(place.workflow, thread)
    return Response(status_code=204)


def _page(call: Call, name: str, default: int) -> int:
    number = call.number(name, least=1, default=default)
    return min(default if number is None else number, LONGEST_PAGE)


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/threads",
        name="makeThread",
        about="Make an empty thread.",
        handler=make,
        body=NewThread,
        gives=ThreadMade,
        status=201,
        problems=(404,),
    ),
    Endpoint(
        method="GET",
        path="/threads",
        name="listThreads",
        about="Threads, newest first.",
        handler=show_list,
        query=(
            AGENT,
            Query(name="cursor", about="`next` of the page before."),
            Query(name="limit", about="Threads of a page, at most 500; default 100.", kind="number", least=1),
        ),
        gives=ThreadList,
        problems=(404,),
    ),
    Endpoint(
        method="GET",
        path="/threads/{thread}",
        name="showThread",
        about="A thread with its newest Terns, oldest first.",
        handler=show,
        query=(AGENT, Query(name="last", about="Terns, at most 500; default 100.", kind="number", least=1)),
        gives=Thread,
        problems=(404,),
    ),
    Endpoint(
        method="GET",
        path="/threads/{thread}/export",
        name="exportThread",
        about="Everything stored of a thread, one JSON object per line, without loss: for `agboss threads import`.",
        handler=export,
        query=(AGENT,),
        media="application/jsonl",
        problems=(404,),
    ),
    Endpoint(
        method="DELETE",
        path="/threads/{thread}",
        name="deleteThread",
        about="Remove a thread with all that belongs to it.",
        handler=delete,
        query=(AGENT,),
        status=204,
        media="",
        problems=(404,),
    ),
)
