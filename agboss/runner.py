"""Runs one Tern through its seven stages, in the order of ``agboss.tern``."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from datetime import datetime
from typing import Any

import agboss.events as events
from agboss.agents import NodeAnswer
from agboss.container import CURRENT, TernScope
from agboss.errors import AgbossError, StoreLockedError, TernFailedError
from agboss.flow.graph import Node
from agboss.hearing import Hearing
from agboss.journal import Journal
from agboss.models.meter import Meter
from agboss.outcome import (
    Outcome,
    answered,
    conclude,
    failed,
    keep_questions,
    paused,
    result_of,
    stored_result,
)
from agboss.pauses import Pause, PauseRequired, open_pauses
from agboss.run import LiveTern, RunResult, Warnings, one_line
from agboss.runtime import (
    Interrupt,
    Place,
    RunRequest,
    Runtime,
    enter,
    make_room,
    running_task,
    spent_today,
)
from agboss.tern import (
    AdmitRequest,
    ChooseRequest,
    DispatchRequest,
    Finished,
    FinishRequest,
    MemoryReport,
    MemoryRequest,
    Recorded,
    admit,
    book_rest,
    choose,
    dispatch,
    finish,
    record,
    update_memory,
)
from agboss.viewing import Viewing
from agboss_memory.contract import utc_now
from agboss_memory.messages import TernStatus
from agboss_memory.records import replace
from agboss_memory.stores.admissions import Claim, Resumable
from agboss_memory.stores.contract import Admission, PendingWork, ThreadRef
from agboss_memory.stores.files import FileWrite
from agboss_memory.stores.pauses import DECISION, Resumption
from agboss_memory.stores.views import ViewRecord

logger = logging.getLogger("agboss")

MOST_STALLS = 5
"""How often a Tern is taken over without a new step in between; it may be the Tern that ends its processes."""

_NOTHING_DONE = MemoryReport()

RECORD_TRIES = 3
"""How often the final transaction is tried while the store is locked; each try waits for the store's own time-out."""


async def run_tern(runtime: Runtime, request: RunRequest) -> RunResult:
    """Run one Tern. Raises typed errors that carry the stored run as ``.run``."""
    if runtime.policy == "interrupt":
        await make_room(runtime, request)
    place = await enter(runtime, request)
    task = running_task()
    try:
        if runtime.unbooked:
            await runtime.unbooked.book(runtime.store)
        live = await _admit(runtime, request, place.ticket)
        if isinstance(live, RunResult):
            return live
        scope, around = TernScope(thread_id=live.thread, meter=live.meter), CURRENT.get()
        CURRENT.set(scope)
        try:
            outcome = await _to_answer(runtime, request, live, scope, task)
            outcome, recorded = await _record(runtime, live, outcome, place)
            if live.views:
                await _record_views(live, live.views)
            _tell_end(live, outcome)
            if outcome.status is TernStatus.PAUSED:  # memory works on Terns that have ended
                return conclude(live, outcome, MemoryReport())
            if runtime.background or isinstance(outcome.error, asyncio.CancelledError):
                runtime.spawn(_release_after(_remember(runtime, live, recorded), place.hand_over()))
                return conclude(live, outcome, MemoryReport())
            return conclude(live, outcome, await _remember(runtime, live, recorded))
        finally:
            scope.ended = True
            CURRENT.set(around)
    finally:
        if place.held is None:
            place.close()
        else:
            await _leave(place)
        if task.cancelling():  # a store that was writing held it back
            await asyncio.sleep(0)  # it reaches the caller here, not at some later await of its own


def _tell_end(live: LiveTern, outcome: Outcome) -> None:
    """The Tern is stored: its answer, or what it waits for."""
    if live.emit is None:
        return
    for pause in outcome.pauses:
        live.emit(events.Paused.of(pause))
    if not outcome.pauses:
        live.emit(events.Answered(answer=outcome.answer, status=outcome.status))


async def _admit(runtime: Runtime, request: RunRequest, ticket: int) -> LiveTern | RunResult:
    """The admitted Tern, or the stored result when its key was used before."""
    plan, held, resume = runtime.plan, runtime.windows.held(request.thread), request.resume
    now = utc_now()
    wait = 0 if runtime.policy == "reject" else runtime.queue_timeout
    claim, resumption = (None, None) if resume is None else _going_on(runtime, request, resume, now, ticket, wait)
    admission = Admission(
        workflow=plan.name,
        thread=request.thread,
        create=request.create,
        owner=request.owner,
        idempotency_key=request.idempotency_key,
        task=request.task,
        start=request.start,
        version=plan.version,
        config_hash=plan.config_hash,
        metadata=request.metadata,
        holder=runtime.holder,
        now=now,
        window=plan.window,
        known=None if held is None else held.version,
        queue=wait > 0,
    )
    if ticket or request.first_contact or request.attachments:
        attachments = tuple(item.record() for item in request.attachments)
        admission = replace(admission, ticket=ticket, first_contact=request.first_contact, attachments=attachments)
    result = await admit(
        AdmitRequest(
            admission=admission,
            store=runtime.store,
            windows=runtime.windows,
            held=held,
            wait=wait,
            claim=claim,
            resumption=resumption,
        )
    )
    admitted = result.admitted
    if admitted.tern is not None:
        pauses: tuple[Pause, ...] = ()
        if admitted.tern.status is TernStatus.PAUSED:
            kept = await runtime.store.steps(admitted.key, admitted.number)
            pauses = open_pauses(kept, admitted.thread, admitted.number)
        return stored_result(plan, admitted.thread, admitted.tern, pauses)
    steps, decided = (), 0
    if admitted.resumed:
        steps = await runtime.store.steps(admitted.key, admitted.number)
        decided = sum(step.kind == DECISION for step in steps)
    warnings = Warnings(admitted.thread, admitted.number, request.emit)
    meter = Meter(plan.limits, plan.cost_of, warnings, resumes=admitted.resumes, decided=decided)
    live = LiveTern(
        plan=plan,
        store=runtime.store,
        thread=admitted.thread,
        key=admitted.key,
        number=admitted.number,
        fence=admitted.fence,
        owner=request.owner,
        task=request.task,
        start=request.start,
        value=request.value,
        started_at=now if resume is None else resume.tern.started_at,
        window=result.window,
        meter=meter,
        journal=Journal(runtime.store, admitted.key, admitted.number, admitted.fence, meter, steps),
        warnings=warnings,
    )
    live.metadata = request.metadata
    live.emit = request.emit
    live.attachments = admission.attachments if resume is None else resume.tern.attachments
    live.pending = admitted.pending
    live.resumes, live.stalled = admitted.resumes, admitted.stalled
    live.views = [] if runtime.record_views else None
    _note(live)
    return live


def _going_on(
    runtime: Runtime, request: RunRequest, resume: Resumable, now: datetime, ticket: int, wait: float
) -> tuple[Claim | None, Resumption | None]:
    """What is asked of the store instead of a new Tern: one that nobody runs, or one that paused and has its answers."""
    plan, number = runtime.plan, resume.tern.number
    if request.answers is None:
        return Claim(key=resume.key, number=number, holder=runtime.holder, now=now, window=plan.window), None
    return None, Resumption(
        key=resume.key,
        number=number,
        holder=runtime.holder,
        now=now,
        thread=request.thread,
        workflow=plan.name,
        steps=request.answers,
        window=plan.window,
        queue=wait > 0,
        ticket=ticket,
    )


def _note(live: LiveTern) -> None:
    """The first event, and warnings that hold before anything has run."""
    if live.emit is not None:
        live.emit(events.TernStarted(node=live.start, thread=live.thread, tern=live.number))
    if live.resumes:
        live.warn(f"the turn goes on after its process stopped (for the {live.resumes}. time)")
    for line in live.plan.offline:
        live.warn(line)
    before = live.window.terns[-1] if live.window.terns else None
    if before is not None and before.version == live.plan.version and before.config_hash != live.plan.config_hash:
        live.warn(f"workflow {live.plan.name!r} changed but still calls itself version {live.plan.version!r}")


async def _to_answer(
    runtime: Runtime, request: RunRequest, live: LiveTern, scope: TernScope, task: asyncio.Task[Any]
) -> Outcome:
    """Walk the flow; whatever happens becomes an outcome that can be stored."""
    interrupt = runtime.running[live.thread] = Interrupt(live, request, task)
    try:
        if live.stalled > MOST_STALLS:
            raise TernFailedError(
                "run.gave-up",
                f"turn {live.number} of thread {live.thread!r} was taken over {live.stalled} times and got no further",
                "find out what ends its processes",
            )
        for item in request.attachments:  # the log names them by now, so that nobody removes them
            await live.store.files.write(FileWrite(data=item.data))
        if runtime.plan.limits is not None:
            await _bound_by_day(runtime, live)
        if runtime.plan.container.opens_in_terns:
            finished = await _in_scope(runtime, live, scope)
        else:
            finished = await _work(runtime, live)
    except BaseException as error:  # also cancellation: the Tern is stored first, then it is raised again
        interrupt.end()
        return failed(live, error, stopped=interrupt.reason, timeout=request.timeout)
    else:
        interrupt.end()
        return paused(live, finished.asks) if isinstance(finished, PauseRequired) else answered(finished, live)
    finally:
        runtime.running.pop(live.thread, None)


async def _bound_by_day(runtime: Runtime, live: LiveTern) -> None:
    day = await spent_today(runtime, utc_now().date().isoformat())
    if day is not None:
        live.meter.bound_by(day)


async def _in_scope(runtime: Runtime, live: LiveTern, scope: TernScope) -> Finished | PauseRequired:
    """The work, with what lives for one Tern open."""
    finished: Finished | PauseRequired | None = None
    try:
        async with runtime.plan.container.tern(scope):
            finished = await _work(runtime, live)
    except Exception as error:
        if finished is None:
            raise
        # The answer is there; only a resource of the Tern could not be closed.
        live.warn(f"a resource of the turn could not be closed: {one_line(f'{type(error).__name__}: {error}')}")
    return finished


async def _work(runtime: Runtime, live: LiveTern) -> Finished | PauseRequired:
    """Memory work that a crash left, then choose -> build_context -> dispatch, again and again, then finish.

    It ends early where a tool may not run without a person's decision.
    """
    if live.pending:
        crashed = tuple(work for work in live.pending if work.attempts == 0)
        if crashed:
            await update_memory(MemoryRequest(live=live, windows=runtime.windows, work=crashed))
    nodes = live.plan.graph.nodes
    node = nodes[live.start]
    live.path.append(live.start)
    while True:
        node = nodes[node.next] if node.next is not None else await _routed(live, node)
        name, kind = node.spec.name, node.spec.kind
        live.meter.step(name)
        live.path.append(name)
        if kind == "finish":
            answer = live.answers[-1][1] if live.answers else ""
            return await finish(FinishRequest(finish=live.plan.finishes[name], value=live.value, answer=answer))
        if kind != "router":
            try:
                done = await dispatch(_order(live, node))
            except PauseRequired as stop:
                return stop
            _visited(live, node, done)


async def _routed(live: LiveTern, router: Node) -> Node:
    choice = await choose(ChooseRequest(live=live, router=router))
    route = choice.route
    if live.emit is not None:
        live.emit(
            events.RouteChosen(node=router.spec.name, next=route.next, confidence=route.confidence, source=route.source)
        )
    return choice.node


def _order(live: LiveTern, node: Node) -> DispatchRequest:
    """What an agent or action is run with."""
    name = node.spec.name
    goes_on = not _ends_after(live, node)
    listener = None
    if live.emit is not None:
        listener = Hearing(live.emit, None if goes_on else live.hear)
        live.emit(events.NodeStarted(node=name))
    build_view = Viewing(live, name).build if node.spec.kind == "agent" else None
    return DispatchRequest(live=live, node=node, build_view=build_view, listener=listener, goes_on=goes_on)


def _visited(live: LiveTern, node: Node, done: NodeAnswer) -> None:
    """The node's answer becomes what the next one gets."""
    name = node.spec.name
    live.value = done.value
    live.answers += ((name, done.text),)
    if node.spec.kind == "agent":
        live.agent = name
    if live.emit is not None:
        live.emit(events.NodeFinished(node=name, answer=done.text))


def _ends_after(live: LiveTern, node: Node) -> bool:
    """Whether a finish follows, so that what the node says is the Tern's answer."""
    return node.next is not None and live.plan.graph.nodes[node.next].spec.kind == "finish"


async def _record(runtime: Runtime, live: LiveTern, outcome: Outcome, place: Place) -> tuple[Outcome, Recorded]:
    """The final transaction. A locked store is tried again; an answer that cannot be stored is not lost on the way.

    A cancellation that comes before it ends the Tern as cancelled.
    """
    tries = RECORD_TRIES
    place.held = live  # until the store says that the lease has ended
    while True:
        tries -= 1
        try:
            if outcome.asks:
                await keep_questions(live, outcome)
            recorded = await record(outcome.to_record(live, runtime.windows))
        except asyncio.CancelledError as error:
            if isinstance(outcome.error, asyncio.CancelledError):
                runtime.unbooked.keep(live)
                raise
            outcome = failed(live, error, stopped="", timeout=None)
        except AgbossError as error:
            if isinstance(error, StoreLockedError) and tries > 0:
                continue
            runtime.unbooked.keep(live)
            if isinstance(outcome.error, asyncio.CancelledError):  # that is what the caller waits for
                live.warn(f"the cancelled turn could not be stored: {one_line(error.message)}")
                raise outcome.error from error
            error.run = result_of(live, outcome, MemoryReport())
            raise
        else:
            if not recorded.held:
                place.held = None
            return outcome, recorded


async def _record_views(live: LiveTern, views: list[ViewRecord]) -> None:
    """Keep what was shown. The Tern is stored: a fault is told, not raised."""
    try:
        await live.store.write_views(live.key, tuple(views))
    except AgbossError as error:
        live.warn(f"what the models were shown could not be recorded: {one_line(error.message)}")


async def _remember(runtime: Runtime, live: LiveTern, recorded: Recorded) -> MemoryReport:
    """Memory work after the commit. A fault of the store, or a cancellation, leaves the rest to the next Tern."""
    if not (recorded.strategies or live.pending or recorded.due or live.compacted):
        return _NOTHING_DONE
    fresh = tuple(PendingWork(tern=live.number, strategy=name) for name in recorded.strategies)
    retried = tuple(work for work in live.pending if work.attempts > 0)
    if not (fresh or retried or recorded.due or live.compacted):
        return _NOTHING_DONE
    if live.journal.asked:  # later Terns may have passed it while it waited
        ref = ThreadRef(workflow=live.plan.name, thread=live.thread, any_owner=True)
        live.window = (await live.store.thread(ref, live.plan.window)).window
    complete = False
    try:
        report = await update_memory(
            MemoryRequest(
                live=live,
                windows=runtime.windows,
                work=(*retried, *fresh),
                due=recorded.due,
                tern=recorded.tern,
                messages=recorded.messages,
            )
        )
        complete = True
        return report
    except AgbossError as error:
        live.warn(f"memory work is left to the next turn: {one_line(error.message)}")
        return MemoryReport()
    finally:
        if not complete:
            await _book_rest(runtime, live)


async def _book_rest(runtime: Runtime, live: LiveTern) -> None:
    """Book what broken-off memory work has spent. The Tern is stored: a fault is told, not raised."""
    try:
        await book_rest(live)
    except AgbossError as error:
        runtime.unbooked.keep(live)
        live.warn(f"the cost of memory work is stored later: {one_line(error.message)}")


async def _leave(place: Place) -> None:
    """Let the next ones in: those of other processes too, whatever became of the Tern or of its memory work."""
    live, place.held = place.held, None
    try:
        if live is not None:
            await live.store.release(live.key, live.fence, live.number)
    except AgbossError as error:
        logger.warning("other processes have to wait for the end of a lease: %s", error.message)
    finally:
        place.close()


async def _release_after(work: Coroutine[Any, Any, MemoryReport], place: Place) -> None:
    """Finish memory work of a run that has returned, then let the thread's next Tern in."""
    try:
        await work
    finally:
        await _leave(place)
