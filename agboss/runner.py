"""Runs one Tern through its seven stages, in the order of ``agboss.tern``."""

from __future__ import annotations

import asyncio
from typing import Any

import agboss.events as events
from agboss.admitting import admit_tern, write_files
from agboss.agents import NodeAnswer
from agboss.closing import leave, record_tern, record_views, release_after, remember
from agboss.container import CURRENT, TernScope
from agboss.errors import TernFailedError
from agboss.flow.graph import Node
from agboss.hearing import Hearing
from agboss.outcome import Outcome, answered, conclude, failed, paused
from agboss.pauses import PauseRequired, said
from agboss.run import LiveTern, RunResult, one_line
from agboss.runtime import Interrupt, RunRequest, Runtime, enter, make_room, running_task, spent_today
from agboss.tern import (
    ChooseRequest,
    DispatchRequest,
    Finished,
    FinishRequest,
    MemoryReport,
    MemoryRequest,
    choose,
    dispatch,
    finish,
    update_memory,
)
from agboss.units import cancelled_from_outside
from agboss.viewing import Viewing
from agboss_memory.contract import utc_now
from agboss_memory.messages import TernStatus
from agboss_memory.wording import told

MOST_STALLS = 5
"""How often a Tern is taken over without a new step in between; it may be the Tern that ends its processes."""


async def run_tern(runtime: Runtime, request: RunRequest) -> RunResult:
    """Run one Tern. Raises typed errors that carry the stored run as ``.run``."""
    if runtime.policy == "interrupt":
        await make_room(runtime, request)
    place = await enter(runtime, request)
    task = running_task()
    try:
        live = await admit_tern(runtime, request, place.ticket)
        if request.resume is None or request.answers is not None:
            place.ticket = 0  # the admission took it; what nobody runs is taken over without one
        if isinstance(live, RunResult):
            return live
        scope, around = TernScope(thread_id=live.thread, meter=live.meter), CURRENT.get()
        CURRENT.set(scope)
        try:
            outcome = await _to_answer(runtime, request, live, scope, task)
            outcome, recorded = await record_tern(runtime, live, outcome, place)
            if live.views:
                await record_views(live, live.views)
            _tell_end(live, outcome)
            if outcome.status is TernStatus.PAUSED:  # memory works on Terns that have ended
                return conclude(live, outcome, MemoryReport())
            if runtime.background or isinstance(outcome.error, asyncio.CancelledError):
                runtime.spawn(release_after(remember(runtime, live, recorded), place.hand_over()))
                return conclude(live, outcome, MemoryReport())
            return conclude(live, outcome, await remember(runtime, live, recorded))
        finally:
            scope.ended = True
            CURRENT.set(around)
    finally:
        if place.held is None:
            place.close()
        else:
            await leave(place)
        if place.ticket:
            await place.give_back(runtime.store)
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


async def _to_answer(
    runtime: Runtime, request: RunRequest, live: LiveTern, scope: TernScope, task: asyncio.Task[Any]
) -> Outcome:
    """Walk the flow; whatever happens becomes an outcome that can be stored."""
    interrupt = runtime.running[live.thread] = Interrupt(live, task, request.timeout, request.idempotency_key)
    if runtime.ending:
        interrupt.cancel_soon()
    try:
        if live.stop:  # its process was gone before it could end it
            live.messages = said(live.journal.steps)
            interrupt.end()
            return failed(live, asyncio.CancelledError(), stopped="asked", timeout=None)
        if live.stalled > MOST_STALLS:
            raise TernFailedError(
                "run.gave-up",
                f"turn {live.number} of thread {live.thread!r} was taken over {live.stalled} times and got no further",
                "find out what ends its processes",
            )
        if live.resumes or request.attachments or runtime.plan.limits is not None:
            await _prepare(runtime, request, live)
        if runtime.plan.container.opens_in_terns:
            finished = await _in_scope(runtime, live, scope)
        else:
            finished = await _work(runtime, live)
    except BaseException as error:  # also cancellation: the Tern is stored first, then it is raised again
        interrupt.end()
        if isinstance(error, asyncio.CancelledError) and not interrupt.reason and not cancelled_from_outside():
            error = _cancelled_inside(live, error)
        return failed(live, error, stopped=interrupt.reason, timeout=request.timeout)
    else:
        interrupt.end()
        return paused(live, finished.asks) if isinstance(finished, PauseRequired) else answered(finished, live)
    finally:
        runtime.running.pop(live.thread, None)


def _cancelled_inside(live: LiveTern, error: asyncio.CancelledError) -> TernFailedError:
    """Nobody cancelled the Tern: something that one of its nodes waited for was cancelled."""
    node = live.path[-1] if live.path else live.start
    failure = TernFailedError(
        "run.failed",
        f"turn {live.number} of thread {live.thread!r} failed in {node!r}: what it waited for was cancelled",
        f"mend what {node!r} calls: it must not raise CancelledError by itself",
        node=node,
    )
    failure.__cause__ = error
    return failure


async def _prepare(runtime: Runtime, request: RunRequest, live: LiveTern) -> None:
    """What few Terns need before their first node."""
    if live.resumes:
        await live.journal.write_refused()
    if request.attachments:  # until the log named them, the deletion of another thread could remove them
        await write_files(live.store, request.attachments)
    if runtime.plan.limits is None:
        return
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
        live.warn(f"a resource of the turn could not be closed: {one_line(told(error))}")
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
