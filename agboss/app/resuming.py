"""Deciding about a paused Tern: finding what it waits for, going on with it, or ending it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from agboss.agents.tools import ArgumentsError
from agboss.app.recovery import request_of
from agboss.app.request import check_id, check_timeout
from agboss.errors import InvalidInputError, PauseError, ThreadBusyError
from agboss.pauses import Decision, Pause, Question, answer, questions, said, tern_of
from agboss.runtime import RunRequest, Runtime, enter
from agboss.tern.record import closed
from agboss_memory.contract import utc_now
from agboss_memory.messages import TernStatus
from agboss_memory.records import Record, replace
from agboss_memory.stores.admissions import Resumable, WindowSpec
from agboss_memory.stores.contract import Commit, TernPage, ThreadRef
from agboss_memory.stores.pauses import Resumption
from agboss_memory.wording import quoted

LONGEST_REASON = 10_000
"""Characters of a reason."""


class ResumeArguments(Record, kw_only=True):
    """The arguments of ``resume`` and ``stream_resume``."""

    thread: str
    decision: Any
    pause_id: str | None = None
    owner: str | None = None
    timeout: float | None = None


class _Found(Record, kw_only=True):
    """A question with its Tern."""

    tern: Resumable
    question: Question


async def resume_request(runtime: Runtime, given: ResumeArguments) -> RunRequest:
    """The checked request to go on with a paused Tern. Nothing is written yet.

    Raises:
        InvalidInputError: An argument is not acceptable; other arguments that the tool does not take among them.
        PauseError: Nothing waits, or not this, or what it needs is gone from the workflow.
        UnknownThreadError: No such thread, or (ThreadOwnerError) one of another owner.
    """
    check_id("thread", given.thread)
    check_id("owner", given.owner)
    check_id("pause_id", given.pause_id)
    check_timeout(given.timeout)
    decision = _decision(given.decision)
    ref = ThreadRef(workflow=runtime.plan.name, thread=given.thread, owner=given.owner)
    key = (await runtime.store.thread(ref, WindowSpec())).key
    if given.pause_id is None:
        found = await _only(runtime, key, given.thread)
    else:
        found = await _named(runtime, key, given)
    pause = found.question.pause
    if found.question.stored is None and decision.approved and not found.tern.tern.status.finished:
        decision = _checked(runtime, pause, decision)
    request = request_of(runtime, found.tern)
    if request is None:
        raise PauseError(
            "pause.start-gone",
            f"turn {pause.tern} of thread {given.thread!r} began at {found.tern.tern.start!r}, which the workflow has no more",
            "run it with the workflow that began it, or cancel the thread",
            pause_id=pause.id,
        )
    return replace(request, answers=(answer(found.question.answer_step, decision),), timeout=given.timeout)


async def open_pauses_of(runtime: Runtime, key: int, thread: str) -> tuple[Pause, ...]:
    """All that paused Terns of a thread wait for, oldest Tern first."""
    found: list[Pause] = []
    for one in await runtime.store.paused(key):
        if one.tern.status is TernStatus.PAUSED:
            asked = questions(await runtime.store.steps(key, one.tern.number), thread, one.tern.number)
            found += [question.pause for question in asked if question.stored is None]
    return tuple(found)


async def cancel_paused(runtime: Runtime, thread: str) -> bool:
    """End every paused Tern of a thread as cancelled, with what was said in it; False when there is none."""
    ref = ThreadRef(workflow=runtime.plan.name, thread=thread, any_owner=True)
    key = (await runtime.store.thread(ref, WindowSpec())).key
    ended = False
    for found in await runtime.store.paused(key):
        if found.tern.status is TernStatus.PAUSED:
            ended = await _end(runtime, found) or ended
    return ended


async def _end(runtime: Runtime, found: Resumable) -> bool:
    tern, now = found.tern, utc_now()
    request = RunRequest(
        thread=found.thread,
        create=False,
        first_contact=False,
        owner=found.owner,
        idempotency_key=found.idempotency_key,
        start=tern.start,
        value=None,
        task=tern.task,
    )
    place = await enter(runtime, request)
    with closing(place):
        admitted = await runtime.store.resume(
            Resumption(
                key=found.key,
                number=tern.number,
                holder=runtime.holder,
                now=now,
                thread=found.thread,
                workflow=runtime.plan.name,
                ticket=place.ticket,
            )
        )
        if admitted.kind == "busy":
            await place.give_back(runtime.store)
            raise ThreadBusyError(
                "run.thread-busy",
                f"thread {found.thread!r} is busy in another process, so that turn {tern.number}, which is paused, goes on waiting",
                "cancel it again when the thread is free",
                thread=found.thread,
            )
        if admitted.kind != "admitted":  # it has ended in another process
            return False
        kept = await runtime.store.steps(found.key, tern.number)
        ended = replace(
            tern,
            status=TernStatus.CANCELLED,
            error="The turn was cancelled.",
            error_code="run.cancelled",
            finished_at=now,
            usage=(),
        )
        messages = closed(said(kept))
        await runtime.store.commit(Commit(key=found.key, fence=admitted.fence, tern=ended, now=now, messages=messages))
        runtime.windows.drop(found.thread)
    return True


def _decision(given: Any) -> Decision:
    decision = Decision(approved=given) if isinstance(given, bool) else given
    if not isinstance(decision, Decision):
        what = f"decision={quoted(given)} is none"
        raise InvalidInputError("pause.bad-decision", what, "pass True, False or a Decision(approved=...)")
    problem = ""
    if not isinstance(decision.approved, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        problem = f"approved={quoted(decision.approved)} is neither True nor False"
    elif not isinstance(decision.reason, str) or len(decision.reason) > LONGEST_REASON:  # pyright: ignore[reportUnnecessaryIsInstance]
        problem = f"reason is no text of at most {LONGEST_REASON} characters"
    elif decision.arguments is not None and not isinstance(decision.arguments, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        problem = f"arguments is a {type(decision.arguments).__name__}, not a dict"
    elif decision.arguments is not None and not decision.approved:
        problem = "a call that is denied takes no arguments"
    if problem:
        raise InvalidInputError("pause.bad-decision", problem, "see Decision: approved, reason, arguments")
    return decision


def _checked(runtime: Runtime, pause: Pause, decision: Decision) -> Decision:
    """The decision, once it is sure that the tool is there and takes the arguments."""
    agent = runtime.plan.agents.get(pause.agent)
    tool = None if agent is None else agent.tools.get(pause.tool)
    if tool is None:
        raise PauseError(
            "pause.no-tool",
            f"agent {pause.agent!r} has no tool {pause.tool!r} any more, so the call {pause.id!r} cannot run",
            "run it with the workflow that asked, deny it, or cancel the thread",
            pause_id=pause.id,
        )
    if decision.arguments is None:
        return decision
    problems = ""
    marked: list[tuple[str, str]] = []
    try:
        tool.read(json.dumps(decision.arguments))
    except ArgumentsError as error:
        found = error.places[:5]
        marked = [(_pointer(where), text) for where, text in found]
        places = [(".".join(map(str, where)), text) for where, text in found]
        problems = "; ".join(f"{place}: {text}".removeprefix(": ") for place, text in places)
    except (TypeError, ValueError) as error:  # no JSON
        problems = str(error)
    if problems:
        raise InvalidInputError(
            "pause.bad-arguments",
            f"tool {pause.tool!r} does not take these arguments: {problems}",
            "correct them; the turn still waits",
            pause_id=pause.id,
            problems=tuple(marked),
        )
    return decision


def _pointer(place: tuple[int | str, ...]) -> str:
    """A place in JSON as RFC 6901 has it."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in place)


async def _named(runtime: Runtime, key: int, given: ResumeArguments) -> _Found:
    """The question with that id, whatever has become of its Tern."""
    pause_id = given.pause_id or ""
    number = tern_of(pause_id)
    page = TernPage(after=number - 1, before=number + 1, limit=1)
    for tern in await runtime.store.terns(key, page) if number else ():
        for question in questions(await runtime.store.steps(key, number), given.thread, number):
            if question.pause.id == pause_id:
                found = Resumable(key=key, thread=given.thread, owner=given.owner, tern=tern)
                return _Found(tern=found, question=question)
    raise PauseError(
        "pause.unknown",
        f"thread {given.thread!r} was never asked {quoted(pause_id)}",
        "take the id from result.pause, or from app.threads.pauses(thread)",
        thread=given.thread,
        pause_id=pause_id,
    )


async def _only(runtime: Runtime, key: int, thread: str) -> _Found:
    """The one question that waits, or that was answered last in a Tern that goes on."""
    found: list[_Found] = []
    for one in await runtime.store.paused(key):
        asked = questions(await runtime.store.steps(key, one.tern.number), thread, one.tern.number)
        if one.tern.status is TernStatus.PAUSED:
            found += [_Found(tern=one, question=question) for question in asked if question.stored is None]
        else:
            found += [_Found(tern=one, question=question) for question in asked if question.stored is not None][-1:]
    if len(found) == 1:
        return found[0]
    if not found:
        raise PauseError(
            "pause.none",
            f"thread {thread!r} waits for no decision",
            "read the thread; to repeat a decision that was taken, name its pause_id",
            thread=thread,
        )
    ids = [one.question.pause.id for one in found]
    raise InvalidInputError(
        "pause.which",
        f"thread {thread!r} waits for {len(ids)} decisions",
        f"name one with pause_id=: {', '.join(ids)}",
        thread=thread,
        pause_ids=tuple(ids),
    )
