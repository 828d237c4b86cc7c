"""The list of threads, a thread with its Terns, one Tern, and what a call of its model was shown."""

from __future__ import annotations

import secrets
from typing import Any

from starlette.responses import Response

from agboss.admin.editing import Refused
from agboss.admin.memory import memory_pane
from agboss.admin.page import Page, Visit
from agboss.admin.searching import GLANCE, LOOKED_THROUGH, Found, found
from agboss.admin.window import parts
from agboss.app import App, Thread
from agboss.errors import AgbossError
from agboss.server.endpoint import whole
from agboss.server.problems import Problem, problem_of
from agboss_memory.messages import Tern
from agboss_memory.records import Record

TERNS = 25
"""Terns of a page."""

PAUSES = 20
"""Calls of a page that wait for a decision; the others come when these are decided."""


class Entered(Record, kw_only=True):
    """What somebody wrote into the form of a new Tern.

    Attributes:
        task: The task.
        start: Name of the start, empty = the only one.
        key: Makes the Tern exactly-once, however often the form is sent.
    """

    task: str = ""
    start: str = ""
    key: str = ""


class Choice(Record, kw_only=True):
    """What somebody decided about a call, when it was refused.

    Attributes:
        pause: Id of the pause.
        what: ``approve``, ``deny`` or ``change``.
        reason: Why it is denied.
        arguments: Other arguments, as text.
        refused: Why nothing was decided.
    """

    pause: str = ""
    what: str = ""
    reason: str = ""
    arguments: str = ""
    refused: Refused | None = None


async def show_list(visit: Visit) -> Response:
    """``/admin/threads``."""
    names = visit.served.names()
    workflow = visit.call.text("agent") or (names[0] if names else "")
    asked, after = (visit.call.text("q") or "").strip(), visit.call.text("after")
    page = Found(rows=(), how="all")
    problem: Problem | None = None
    if workflow in names:
        try:
            async with visit.served.app(workflow) as app:
                page = await found(visit, app, asked, after, in_texts=visit.call.text("in") == "texts")
        except AgbossError as error:  # an agent that does not work hides no other
            problem = problem_of(error)
    return visit.render(
        "threads.html",
        200 if problem is None else problem.status,
        names=names,
        workflow=workflow,
        asked=asked,
        page=page,
        problem=problem,
        first=after is None,
        glance=GLANCE,
        looked_through=LOOKED_THROUGH,
    )


async def show(visit: Visit) -> Response:
    """``/admin/threads/{thread}``."""
    return await thread_page(visit, visit.call.path("thread"), visit.call.text("agent"))


async def thread_page(
    visit: Visit,
    thread: str,
    agent: str | None,
    *,
    status: int = 200,
    entered: Entered | None = None,
    refusal: Problem | None = None,
    choice: Choice | None = None,
) -> Response:
    """A thread: what waits, its form for a new Tern, the working memory, and a page of Terns, newest first."""
    before = visit.call.number("before", least=1)
    place = await visit.served.place(thread, agent, visit.owner)
    if (note := visit.admin.compactions.take_note(place, thread, visit.session)) is not None:
        visit.admin.sessions.tell(visit.session, note)
    async with visit.served.app(place.workflow) as app:
        known = await app.threads.get(thread, TERNS, owner=visit.owner)
        total = known.terns[-1].number if known.terns else 0
        before = None if before is not None and before > total else before
        terns = known.terns
        if before is not None:
            terns = await app.threads.terns(thread, before=before, limit=TERNS, owner=visit.owner)
        running = await running_in(visit, app, place.workflow, known)
        pauses = await app.threads.pauses(thread, owner=visit.owner)
        pane = await memory_pane(visit, app, thread, place.agent, visit.call.number("summaries", least=1))
        starts = app.starts
    return visit.render(
        "thread.html",
        status,
        thread=known,
        pauses=pauses[:PAUSES],
        more_pauses=len(pauses[PAUSES:]),
        paused=sorted({one.tern for one in pauses}),
        tasks={tern.number: tern.task for tern in known.terns},
        choice=choice or Choice(),
        terns=terns[::-1],
        total=total,
        older=terns[0].number if terns and terns[0].number > 1 else None,
        newer=None if before is None or before + TERNS > total else before + TERNS,
        first=before is None,
        running=running,
        events=None if running is None else _events(visit, place.workflow, known, running, place.agent),
        job=visit.admin.compactions.running(place, thread),
        starts={name: None if model is None else list(model.model_fields) for name, model in starts.items()},
        entered=entered or Entered(key=secrets.token_hex(16)),
        refusal=refusal,
        **pane,
    )


async def running_in(visit: Visit, app: App, workflow: str, thread: Thread) -> Tern | None:
    """The Tern that runs in a thread which was read with its newest Terns; one that was paused may be an older one."""
    newest = next((tern for tern in reversed(thread.terns) if tern.status == "running"), None)
    logs = visit.admin.service.runs.running
    number = next((log.tern for log in logs if log.tern and (log.workflow, log.thread) == (workflow, thread.id)), 0)
    if newest is not None or not number:
        return newest
    found = await app.threads.terns(thread.id, before=number + 1, limit=1, owner=visit.owner)
    return found[0] if found and (found[0].number, found[0].status) == (number, "running") else None


def owner_of_thread(visit: Visit, thread: Thread) -> str | None:
    """Who a Tern is run for: where nobody logs in, whoever sees a thread acts for its owner."""
    return thread.owner if visit.owner is None else visit.owner


def _events(visit: Visit, workflow: str, thread: Thread, running: Tern, agent: str | None) -> dict[str, Any] | None:
    """Where its events come from, when this server runs the Tern."""
    log = visit.admin.service.runs.find(workflow, thread.id, running.number, owner_of_thread(visit, thread))
    return None if log is None else {"tern": running.number, "agent": agent}


async def show_tern(visit: Visit) -> Response:
    """``/admin/threads/{thread}/terns/{tern}``."""
    thread, agent = visit.call.path("thread"), visit.call.text("agent")
    place = await visit.served.place(thread, agent, visit.owner)
    number = whole("tern", visit.call.path("tern"), least=1) or 1
    async with visit.served.app(place.workflow) as app:
        terns = await app.threads.terns(thread, before=number + 1, limit=1, owner=visit.owner)
        own = {one.name: one.memory_config is not None for one in await app.agents()}
        answers = await app.threads.decisions(thread, number, owner=visit.owner)
    calls, failing = _calls(terns[0], own)
    return visit.render(
        "tern.html", thread=thread, tern=terns[0], calls=calls, failing=failing, answers=answers, agent=agent
    )


def _calls(tern: Tern, own: dict[str, bool]) -> tuple[list[int | None], tuple[str, int] | None]:
    """For each booked call the number by which its view can be made anew, None = it cannot; and the call that failed.

    ``own`` tells of each agent whether it keeps a conversation of its own; of others only what the first call was shown
    is known.
    """
    seen: dict[str, int] = {}
    found: list[int | None] = []
    for one in tern.usage:
        number = None
        if one.purpose == "answer" and one.caller in own and tern.status.finished:
            number = seen.get(one.caller, 0)
            seen[one.caller] = number + 1
        found.append(None if number and not own[one.caller] else number)
    last = next((name for name in reversed(tern.path) if name in own), None)
    if tern.status != "failed" or last is None or not (own[last] or last not in seen):
        return found, None
    return found, (last, seen.get(last, 0))


async def show_call(visit: Visit) -> Response:
    """``/admin/threads/{thread}/terns/{tern}/calls/{call}``: what an agent's model was shown, made anew from the log."""
    thread, agent = visit.call.path("thread"), visit.call.text("agent")
    tern = whole("tern", visit.call.path("tern"), least=1) or 1
    number = whole("call", visit.call.path("call")) or 0
    place = await visit.served.place(thread, None if visit.served.runtime is None else agent, visit.owner)
    async with visit.served.app(place.workflow) as app:
        memory = await app.memory.explain(thread, agent, tern=tern, call=number, owner=visit.owner)
    return visit.render(
        "call.html", thread=thread, tern=tern, call=number, agent=memory.agent, memory=memory, window=parts(memory)
    )


PAGES = (
    Page(path="/threads", handler=show_list),
    Page(path="/threads/{thread}", handler=show),
    Page(path="/threads/{thread}/terns/{tern}", handler=show_tern),
    Page(path="/threads/{thread}/terns/{tern}/calls/{call}", handler=show_call),
)
