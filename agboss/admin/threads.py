"""The list of threads, a thread with its Terns, and one Tern."""

from __future__ import annotations

from starlette.responses import Response

from agboss.admin.memory import memory_pane
from agboss.admin.page import Page, Visit
from agboss.app import App
from agboss.errors import AgbossError, InvalidInputError, UnknownThreadError
from agboss.server.endpoint import whole
from agboss.server.problems import Problem, ServerError, problem_of
from agboss_memory.messages import Tern, TernStatus
from agboss_memory.records import Record
from agboss_memory.stores.contract import ThreadInfo

THREADS = 25
"""Threads of a page."""

TERNS = 25
"""Terns of a page."""

GLANCE = 50
"""Newest Terns of which a list tells the cost."""


class Glance(Record):
    """A thread in the list.

    Attributes:
        info: The thread.
        newest: The newest Terns, oldest first.
    """

    info: ThreadInfo
    newest: tuple[Tern, ...]

    @property
    def status(self) -> str:
        """How the newest Tern ended, or that it runs."""
        if self.info.running:
            return "running"
        return str(self.newest[-1].status) if self.newest else "empty"


async def show_list(visit: Visit) -> Response:
    """``/admin/threads``."""
    names = visit.served.names()
    workflow = visit.call.text("agent") or (names[0] if names else "")
    asked, after = (visit.call.text("q") or "").strip(), visit.call.text("after")
    rows: list[Glance] = []
    following: str | None = None
    problem: Problem | None = None
    if workflow in names:
        try:
            async with visit.served.app(workflow) as app:
                found = await _found(visit, app, asked, after)
                rows = [Glance(info=info, newest=await _newest(app, info)) for info in found[:THREADS]]
            following = found[THREADS - 1].id if len(found) > THREADS else None
        except AgbossError as error:  # an agent that does not work hides no other
            problem = problem_of(error)
    return visit.render(
        "threads.html",
        200 if problem is None else problem.status,
        names=names,
        workflow=workflow,
        asked=asked,
        rows=rows,
        following=following,
        problem=problem,
        first=after is None,
        glance=GLANCE,
    )


async def _found(visit: Visit, app: App, asked: str, after: str | None) -> tuple[ThreadInfo, ...]:
    """A page and one more: all, the thread of that id, or the threads of that owner."""
    try:
        if after is not None:
            await app.threads.get(after, 0, owner=visit.owner)
        if asked:
            known = await _by_id(visit, app, asked)
            if known is not None:
                return (known,)
            if visit.owner not in (None, asked):
                return ()
        return await app.threads.list(owner=asked or visit.owner, after=after, limit=THREADS + 1)
    except (InvalidInputError, UnknownThreadError):
        return ()  # no thread or owner can be called so


async def _by_id(visit: Visit, app: App, asked: str) -> ThreadInfo | None:
    try:
        thread = await app.threads.get(asked, 1, owner=visit.owner)
    except UnknownThreadError:
        return None
    newest = thread.terns[-1] if thread.terns else None
    return ThreadInfo(
        id=thread.id,
        workflow=thread.workflow,
        owner=thread.owner,
        created_at=thread.created_at,
        updated_at=thread.created_at if newest is None else newest.finished_at or newest.started_at,
        terns=0 if newest is None else newest.number,
        running=newest is not None and newest.status is TernStatus.RUNNING,
    )


async def _newest(app: App, info: ThreadInfo) -> tuple[Tern, ...]:
    try:
        return await app.threads.terns(info.id, limit=GLANCE)
    except UnknownThreadError:  # deleted meanwhile
        return ()


async def show(visit: Visit) -> Response:
    """``/admin/threads/{thread}``."""
    thread, before = visit.call.path("thread"), visit.call.number("before", least=1)
    place = await visit.served.place(thread, visit.call.text("agent"), visit.owner)
    async with visit.served.app(place.workflow) as app:
        known = await app.threads.get(thread, 1, owner=visit.owner)
        total = known.terns[-1].number if known.terns else 0
        before = None if before is not None and before > total else before
        terns = await app.threads.terns(thread, before=before, limit=TERNS, owner=visit.owner)
        pane = await memory_pane(visit, app, thread, place.agent)
    newer = None if before is None or before + TERNS > total else before + TERNS
    return visit.render(
        "thread.html",
        thread=known,
        terns=terns,
        total=total,
        older=terns[0].number if terns and terns[0].number > 1 else None,
        newer=newer,
        newest=before is None,
        running=bool(known.terns) and known.terns[-1].status == "running",
        **pane,
    )


async def show_tern(visit: Visit) -> Response:
    """``/admin/threads/{thread}/terns/{tern}``."""
    thread = visit.call.path("thread")
    number = whole("tern", visit.call.path("tern"), least=1) or 1
    place = await visit.served.place(thread, visit.call.text("agent"), visit.owner)
    async with visit.served.app(place.workflow) as app:
        found = await app.threads.terns(thread, before=number + 1, limit=1, owner=visit.owner)
    if not found or found[0].number != number:
        text = f"there is no turn {number}"
        raise ServerError("memory.no-such-tern", text, "choose one from the thread's page", status=404)
    return visit.render("tern.html", thread=thread, tern=found[0], agent=visit.call.text("agent"))


PAGES = (
    Page(path="/threads", handler=show_list),
    Page(path="/threads/{thread}", handler=show),
    Page(path="/threads/{thread}/terns/{tern}", handler=show_tern),
)
