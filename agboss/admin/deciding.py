"""Decide about a call that waits for a person, and let its Tern go on."""

from __future__ import annotations

import json
from typing import Any, cast

from starlette.responses import Response

from agboss.admin.editing import Refused
from agboss.admin.marking import Mark, marks
from agboss.admin.page import Page, Visit, failed
from agboss.admin.sessions import Note
from agboss.admin.showing import exact, pretty, url
from agboss.admin.threads import TERNS, Choice, owner_of_thread, running_in, thread_page
from agboss.errors import AgbossError, InvalidInputError, ThreadBusyError, UnknownThreadError
from agboss.pauses import Decision, PauseAnswer
from agboss.server.endpoint import whole
from agboss.server.problems import ServerError, problem_of
from agboss.server.runs import Order
from agboss.server.served import Place
from agboss_memory.records import replace

APPROVE, DENY, CHANGE = "approve", "deny", "change"


async def decide(visit: Visit) -> Response:
    """Take a decision. The Tern goes on when the browser leaves; the thread's page watches it."""
    thread, agent = visit.call.path("thread"), visit.field("agent") or None
    pause, what, reason, arguments = map(visit.field, ("pause", "decision", "reason", "arguments"))
    choice = Choice(pause=pause, what=what, reason=reason, arguments=arguments)
    place = await visit.served.place(thread, agent, visit.owner)
    try:
        note = await _go_on(visit, place, thread, choice)
    except UnknownThreadError:
        raise
    except AgbossError as error:
        choice = replace(choice, refused=_refused(error, choice))
        status = problem_of(error).status
        return await thread_page(visit, thread, agent, status=status, choice=choice)
    return visit.redirect(url("threads", thread, agent=agent), note)


async def _go_on(visit: Visit, place: Place, thread: str, choice: Choice) -> Note | None:
    """Take the decision, and wait until the Tern can be found; gives what is to be told."""
    served = visit.served
    async with served.app(place.workflow) as app:
        known = await app.threads.get(thread, TERNS, owner=visit.owner)
        number = whole("tern", visit.field("tern"), least=1) or 0
        answers = await app.threads.decisions(thread, number, owner=visit.owner)
        asked = next((one for one in answers if one.pause.id == choice.pause), None)
        decision = _decision(choice, asked)
        if asked is not None and asked.decision == decision:  # sent twice: it counts already, and its Tern goes on
            return Note(text="This was decided before.")
        if visit.admin.compactions.running(place, thread) is not None:
            raise ThreadBusyError("run.thread-busy", "Compact is at work in this thread", "decide when it has ended")
        if (running := await running_in(visit, app, place.workflow, known)) is not None:
            text = f"Tern {running.number} is running in this thread"
            raise ThreadBusyError("run.thread-busy", text, "decide when it has ended, or cancel it")
    order = Order(
        opening=lambda: served.app(place.workflow),
        workflow=place.workflow,
        thread=thread,
        owner=owner_of_thread(visit, known),
        decision=decision,
        pause_id=choice.pause,
        detached=True,
    )
    log = await visit.admin.service.runs.start(order)
    log.leave()
    while not (log.tern or log.ended):  # then the page finds it by its number
        await log.change()
    return None if log.error is None or log.tern else failed(log.error)


def _decision(choice: Choice, asked: PauseAnswer | None) -> Decision:
    if choice.what == DENY:
        return Decision(approved=False, reason=choice.reason)
    if choice.what == APPROVE:
        return Decision(approved=True)
    if choice.what != CHANGE:
        text = "the form says neither to approve nor to deny"
        raise InvalidInputError("pause.bad-decision", text, "load the thread's page again")
    arguments = _arguments(choice.arguments)
    if asked is not None and pretty(arguments) == pretty(asked.pause.arguments):  # as text: 1 is not 1.0
        return Decision(approved=True)
    return Decision(approved=True, arguments=arguments)


def _arguments(text: str) -> dict[str, Any]:
    problem = "the arguments are no JSON object"
    try:
        given: Any = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError("pause.bad-arguments", f"{problem}: {error}", "correct them") from error
    if not isinstance(given, dict):
        raise InvalidInputError("pause.bad-arguments", problem, 'write them as {"name": value}')
    return cast("dict[str, Any]", given)


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _refused(error: AgbossError, choice: Choice) -> Refused:
    """Why nothing was decided, at the field that is meant."""
    problem = problem_of(error)
    if error.code == "pause.bad-arguments":
        return Refused(problem=problem, fields={f"arguments-{choice.pause}": marks(error, choice.arguments)})
    if error.code == "pause.bad-decision" and choice.what == DENY:
        return Refused(problem=problem, fields={f"reason-{choice.pause}": (Mark(message=problem.detail),)})
    return Refused(problem=problem, rest=(Mark(message=f"{problem.detail}. {problem.hint}".rstrip(" .") + "."),))


async def download(visit: Visit) -> Response:
    """``/admin/threads/{thread}/terns/{tern}/arguments?pause=``: all arguments of a call that was asked about."""
    thread, asked = visit.call.path("thread"), visit.call.text("pause")
    place = await visit.served.place(thread, visit.call.text("agent"), visit.owner)
    number = whole("tern", visit.call.path("tern"), least=1) or 0
    async with visit.served.app(place.workflow) as app:
        answers = await app.threads.decisions(thread, number, owner=visit.owner)
    found = next((one.pause for one in answers if one.pause.id == asked), None)
    if found is None:
        text = f"Tern {number} was never asked this"
        raise ServerError("pause.unknown", text, "choose one from the thread's page", status=404)
    return Response(
        exact(found.arguments),
        media_type="text/plain; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="arguments.json"'},
    )


PAGES = (
    Page(path="/threads/{thread}/decide", handler=decide, method="POST"),
    Page(path="/threads/{thread}/terns/{tern}/arguments", handler=download),
)
