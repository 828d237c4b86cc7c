"""Make a thread, run Terns in it, watch and cancel them, delete it."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

from agboss.admin.page import Page, Visit, failed
from agboss.admin.sessions import Note
from agboss.admin.showing import url
from agboss.admin.threads import TERNS, Entered, owner_of_thread, running_in, thread_page
from agboss.app import App
from agboss.errors import AgbossError, InvalidInputError, ThreadBusyError
from agboss.server.endpoint import whole
from agboss.server.problems import ServerError, problem_of
from agboss.server.runs import Order
from agboss.server.served import Place
from agboss.server.sse import EventStream


async def make(visit: Visit) -> Response:
    """A new, empty thread."""
    try:
        place = await visit.served.new_place(visit.field("agent") or None)
        async with visit.served.app(place.workflow) as app:
            thread = await app.threads.create(owner=visit.owner)
    except AgbossError as error:
        return visit.redirect(url("threads", agent=visit.field("agent") or None), failed(error))
    return visit.redirect(url("threads", thread, agent=visit.field("agent") or None))


async def ask(visit: Visit) -> Response:
    """Run one Tern. It goes on when the browser leaves; the thread's page watches it."""
    thread, agent = visit.call.path("thread"), visit.field("agent") or None
    entered = Entered(task=visit.field("task"), start=visit.field("start"), key=visit.field("key"))
    place = await visit.served.place(thread, agent, visit.owner)
    try:
        if visit.admin.compactions.running(place, thread) is not None:
            raise ThreadBusyError(
                "run.thread-busy", "Compact is at work in this thread", "send the task when it has ended"
            )
        order = await _order(visit, place, thread, entered)
        log = await visit.admin.service.runs.start(order)
    except AgbossError as error:
        problem = problem_of(error)
        return await thread_page(visit, thread, agent, status=problem.status, entered=entered, refusal=problem)
    log.leave()
    while not (log.tern or log.ended):  # then the page finds it by its number
        await log.change()
    refused = None if log.error is None or log.tern else failed(log.error)
    return visit.redirect(url("threads", thread, agent=agent), refused)


async def _order(visit: Visit, place: Place, thread: str, entered: Entered) -> Order:
    served = visit.served
    async with served.app(place.workflow) as app:
        known = await app.threads.get(thread, TERNS, owner=visit.owner)
        if await running_in(visit, app, place.workflow, known) is not None:
            raise ThreadBusyError("run.thread-busy", "a Tern is running in this thread", "wait for it, or cancel it")
        start, value = _input(app, entered)
    return Order(
        opening=lambda: served.app(place.workflow),
        workflow=place.workflow,
        start=start,
        input=value,
        thread=thread,
        owner=owner_of_thread(visit, known),
        idempotency_key=f"admin-{entered.key}" if entered.key else None,  # sent twice, it runs once
        detached=True,
    )


def _input(app: App, entered: Entered) -> tuple[str | None, Any]:
    """The start and what it takes: text, or the JSON of its model's fields."""
    if not entered.task.strip():
        raise InvalidInputError("run.invalid-input", "the task is empty", "write what is to be done")
    starts = app.starts
    start = entered.start or (next(iter(starts)) if len(starts) == 1 else None)
    if start is None or starts.get(start) is None:
        return start, entered.task
    try:
        return start, json.loads(entered.task)
    except (ValueError, RecursionError) as error:
        text = f"start {start!r} takes fields, and this is no JSON: {error}"
        raise InvalidInputError("run.invalid-input", text, "write the fields as a JSON object") from error


async def events(visit: Visit) -> Response:
    """``/admin/threads/{thread}/terns/{tern}/events``: what happens in a Tern that this server runs."""
    thread = visit.call.path("thread")
    place = await visit.served.place(thread, visit.call.text("agent"), visit.owner)
    async with visit.served.app(place.workflow) as app:
        known = await app.threads.get(thread, 0, owner=visit.owner)
    number = whole("tern", visit.call.path("tern"), least=1) or 0
    after = whole("Last-Event-ID", visit.request.headers.get("last-event-id"), default=0) or 0
    log = visit.admin.service.runs.find(place.workflow, thread, number, owner_of_thread(visit, known))
    if log is None:
        text = f"no events of Tern {number} are kept"
        raise ServerError("server.no-events", text, "load the thread's page again", status=404)
    log.listeners += 1
    return EventStream(log, after)


async def cancel(visit: Visit) -> Response:
    """Cancel the Tern that runs, or those that are paused: only what the page of the form has shown."""
    thread, agent = visit.call.path("thread"), visit.field("agent") or None
    place = await visit.served.place(thread, agent, visit.owner)
    async with visit.served.app(place.workflow) as app:
        known = await app.threads.get(thread, TERNS, owner=visit.owner)
        running = await running_in(visit, app, place.workflow, known)
        open_ones = {one.tern for one in await app.threads.pauses(thread, owner=visit.owner)}
    meant, there = set(visit.field("terns").split()), open_ones if running is None else {running.number}
    text = "No Tern was running or paused any more."
    if there and not meant.issuperset(map(str, there)):
        text = "Nothing was cancelled: by now another Tern runs or is paused."
    elif there and await _cancelled(visit, place, thread):
        text = "The Tern was cancelled." if len(there) == 1 else f"{len(there)} Terns were cancelled."
    return visit.redirect(url("threads", thread, agent=agent), Note(text=text))


async def _cancelled(visit: Visit, place: Place, thread: str) -> bool:
    """Cancel what runs in a thread; of a Tern of this server, wait until it is stored."""
    runs = visit.admin.service.runs
    here = [log for log in runs.running if (log.workflow, log.thread) == (place.workflow, thread)]
    if runs.cancel(place.workflow, thread):
        for log in here:
            while not log.ended:
                await log.change()
        return True
    async with visit.served.app(place.workflow) as app:
        return await app.cancel(thread)


async def confirm(visit: Visit) -> Response:
    """``/admin/threads/{thread}/delete``: what would be gone."""
    thread, agent = visit.call.path("thread"), visit.call.text("agent")
    place = await visit.served.place(thread, agent, visit.owner)
    async with visit.served.app(place.workflow) as app:
        known = await app.threads.get(thread, TERNS, owner=visit.owner)
        running = await running_in(visit, app, place.workflow, known)
        waits = bool(await app.threads.pauses(thread, owner=visit.owner))
    newest = known.terns[-1] if known.terns else None
    return visit.render("delete_thread.html", thread=known, newest=newest, running=running, waits=waits, agent=agent)


async def delete(visit: Visit) -> Response:
    """Remove a thread; a Tern that runs in it is cancelled before."""
    thread, agent = visit.call.path("thread"), visit.field("agent") or None
    place = await visit.served.place(thread, agent, visit.owner)
    await _cancelled(visit, place, thread)
    async with visit.served.app(place.workflow) as app:
        await app.threads.delete(thread, owner=visit.owner)
    visit.admin.service.runs.forget(place.workflow, thread)
    several = len(visit.served.names()) > 1
    return visit.redirect(
        url("threads", agent=place.workflow if several else None), Note(text="The thread was deleted.")
    )


PAGES = (
    Page(path="/threads", handler=make, method="POST"),
    Page(path="/threads/{thread}/terns", handler=ask, method="POST"),
    Page(path="/threads/{thread}/terns/{tern}/events", handler=events),
    Page(path="/threads/{thread}/cancel", handler=cancel, method="POST"),
    Page(path="/threads/{thread}/delete", handler=confirm),
    Page(path="/threads/{thread}/delete", handler=delete, method="POST"),
)
