"""Runs one Tern through its seven stages, in the order of ``agboss.tern``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Literal

from agboss.agents import AgentView, ViewBuilder
from agboss.components.settings import RunLimits
from agboss.container import CURRENT, TernScope
from agboss.errors import AgbossError
from agboss.events import Answered, NodeFinished, NodeStarted, RouteChosen, RunEvent, TernStarted
from agboss.flow.graph import Node
from agboss.hearing import Hearing
from agboss.models.meter import Meter
from agboss.outcome import Outcome, answered, conclude, failed, stored_result
from agboss.plan import Plan
from agboss.queue import ThreadQueue
from agboss.run import LiveTern, RunResult
from agboss.tern import (
    AdmitRequest,
    ChooseRequest,
    ContextRequest,
    DispatchRequest,
    Finished,
    FinishRequest,
    MemoryReport,
    MemoryRequest,
    Recorded,
    admit,
    build_context,
    choose,
    dispatch,
    finish,
    record,
    update_memory,
)
from agboss.windows import Windows
from agboss_memory.contract import MemoryView, utc_now
from agboss_memory.messages import Message
from agboss_memory.stores.contract import Admission, MessagePage, PendingWork, Store

_NO_BOUND = 2**62
"""Greater than any message number."""


@dataclass(slots=True, eq=False, kw_only=True)
class Runtime:
    """What all runs of one App share.

    Attributes:
        plan: The assembled workflow.
        store: Where the log is.
        windows: Windows of threads in use.
        queue: One Tern at a time per thread.
        holder: Names this App in leases.
        policy: ``enqueue`` waits for a busy thread, ``reject`` does not.
        queue_timeout: Seconds that ``enqueue`` waits.
        background: Whether memory work goes on after a run has returned.
        spawn: Starts a task that belongs to the App.
        keys: One Tern at a time per owner and idempotency key.
        running: What cancels the Tern that runs in a thread, by thread id.
    """

    plan: Plan
    store: Store
    windows: Windows
    holder: str
    policy: Literal["enqueue", "reject"]
    queue_timeout: float
    background: bool
    spawn: Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]]
    queue: ThreadQueue = field(default_factory=ThreadQueue)
    keys: ThreadQueue = field(default_factory=lambda: ThreadQueue("idempotency key"))
    running: dict[str, Interrupt] = field(default_factory=dict[str, "Interrupt"])


@dataclass(slots=True, eq=False)
class Interrupt:
    """Ends the run of a Tern early: by a time-out or because the App was asked to."""

    timer: asyncio.Timeout
    asked: bool = False

    def cancel(self) -> None:
        """Cancel the Tern now; one that is being stopped already is left alone."""
        if not self.timer.expired():
            self.asked = True
            self.timer.reschedule(asyncio.get_running_loop().time())


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """One call of ``execute`` or ``stream``, checked.

    Attributes:
        thread: Id of the thread; a fresh one at first contact.
        create: Make the thread when it does not exist.
        first_contact: The caller named no thread.
        owner: Who asks, None = nobody in particular.
        idempotency_key: Makes the Tern exactly-once per owner, None = off.
        start: Name of the start.
        value: The start's input: text, or an instance of its model.
        task: The input as text.
        metadata: JSON text to keep with the Tern, or None.
        timeout: Seconds from admission to answer, None = no bound.
        emit: Receives events, None when nobody listens.
    """

    thread: str
    create: bool
    first_contact: bool
    owner: str | None
    idempotency_key: str | None
    start: str
    value: Any
    task: str
    metadata: str | None = None
    timeout: float | None = None
    emit: Callable[[RunEvent], None] | None = None


async def run_tern(runtime: Runtime, request: RunRequest) -> RunResult:
    """Run one Tern. Raises typed errors that carry the stored run as ``.run``."""
    lines = await _enter(runtime, request)
    try:
        live = await _admit(runtime, request)
        if isinstance(live, RunResult):
            return live
        scope = TernScope(thread_id=live.thread, meter=live.meter)
        token = CURRENT.set(scope)
        try:
            outcome = await _to_answer(runtime, request, live, scope)
            recorded = await record(outcome.to_record(live, runtime.windows))
            if live.emit is not None:
                live.emit(Answered(answer=outcome.answer, status=outcome.status))
            work = _memory_work(runtime, live, recorded)
            if work is None:
                return conclude(live, outcome, MemoryReport())
            # A task of the App: memory work goes on when the caller is gone, and the thread waits for it.
            task = runtime.spawn(_release_after(work, lines.pop_all()))
            if runtime.background or isinstance(outcome.error, asyncio.CancelledError):
                return conclude(live, outcome, MemoryReport())
            return conclude(live, outcome, await asyncio.shield(task))
        finally:
            CURRENT.reset(token)
    finally:
        lines.close()
        await _hand_on_cancellation()


async def _hand_on_cancellation() -> None:
    """A cancellation that a store held back reaches the caller here, not at some later await of its own."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        await asyncio.sleep(0)


async def _enter(runtime: Runtime, request: RunRequest) -> ExitStack:
    """Wait for the idempotency key, then for the thread, within this process. The stack lets the next ones in.

    A repeat waits for the first run of its key whatever the policy is.
    """
    wait = 0 if runtime.policy == "reject" else runtime.queue_timeout
    with ExitStack() as lines:
        if request.idempotency_key is not None:
            key = repr((request.owner, request.idempotency_key))
            await runtime.keys.enter(key, runtime.queue_timeout)
            lines.callback(runtime.keys.leave, key)
        await runtime.queue.enter(request.thread, wait)
        lines.callback(runtime.queue.leave, request.thread)
        return lines.pop_all()


async def _admit(runtime: Runtime, request: RunRequest) -> LiveTern | RunResult:
    """The admitted Tern, or the stored result when its key was used before."""
    plan, held = runtime.plan, runtime.windows.held(request.thread)
    now = utc_now()
    result = await admit(
        AdmitRequest(
            admission=Admission(
                workflow=plan.name,
                thread=request.thread,
                create=request.create,
                first_contact=request.first_contact,
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
            ),
            store=runtime.store,
            windows=runtime.windows,
            held=held,
            wait=0 if runtime.policy == "reject" else runtime.queue_timeout,
        )
    )
    admitted = result.admitted
    if admitted.tern is not None:
        return stored_result(plan, admitted.thread, admitted.tern)
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
        metadata=request.metadata,
        started_at=now,
        window=result.window,
        emit=request.emit,
        pending=admitted.pending,
    )
    live.meter = Meter(plan.limits, plan.cost_of, live.warn)
    _note(live)
    return live


def _note(live: LiveTern) -> None:
    """Warnings that hold before anything has run, and the first event."""
    for line in live.plan.offline:
        live.warn(line)
    before = live.window.terns[-1] if live.window.terns else None
    if before is not None and before.version == live.plan.version and before.config_hash != live.plan.config_hash:
        live.warn(f"workflow {live.plan.name!r} changed but still calls itself version {live.plan.version!r}")
    if live.emit is not None:
        live.emit(TernStarted(node=live.start, thread=live.thread, tern=live.number))


async def _to_answer(runtime: Runtime, request: RunRequest, live: LiveTern, scope: TernScope) -> Outcome:
    """Walk the flow; whatever happens becomes an outcome that can be stored."""
    timer = asyncio.timeout(request.timeout)
    interrupt = Interrupt(timer)
    try:
        async with timer:
            runtime.running[live.thread] = interrupt
            await _read_day(live)
            async with runtime.plan.container.tern(scope):
                crashed = tuple(work for work in live.pending if work.attempts == 0)
                if crashed:
                    await update_memory(MemoryRequest(live=live, windows=runtime.windows, work=crashed))
                finished = await _walk(live)
        return answered(finished, live)
    except BaseException as error:  # also cancellation: the Tern is stored first, then it is raised again
        return failed(live, error, asked=interrupt.asked, expired=timer.expired(), timeout=request.timeout)
    finally:
        runtime.running.pop(live.thread, None)


async def _read_day(live: LiveTern) -> None:
    """What the workflow spent today, when a daily bound needs it."""
    limits = live.plan.limits
    if limits is not None and limits.per_day != RunLimits():
        live.meter.bound_by(await live.store.day_spend(live.plan.name, live.started_at.date().isoformat()))


async def _walk(live: LiveTern) -> Finished:
    """Choose -> build_context -> dispatch, again and again, then finish."""
    nodes = live.plan.graph.nodes
    node = nodes[live.start]
    live.path.append(live.start)
    while True:
        choice = await choose(ChooseRequest(live=live, node=node))
        if choice.route is not None and live.emit is not None:
            route = choice.route
            live.emit(
                RouteChosen(node=node.spec.name, next=route.next, confidence=route.confidence, source=route.source)
            )
        node = choice.node
        name, kind = node.spec.name, node.spec.kind
        live.meter.step(name)
        live.path.append(name)
        if kind == "finish":
            answer = live.answers[-1][1] if live.answers else ""
            return await finish(FinishRequest(finish=live.plan.finishes[name], value=live.value, answer=answer))
        if kind != "router":
            await _visit(live, node)


async def _visit(live: LiveTern, node: Node) -> None:
    name = node.spec.name
    listener = None if live.emit is None else Hearing(live.emit, live.hear if _ends_after(live, node) else None)
    if live.emit is not None:
        live.emit(NodeStarted(node=name))
    build_view = _view_builder(live, name) if node.spec.kind == "agent" else None
    done = await dispatch(DispatchRequest(live=live, node=node, build_view=build_view, listener=listener))
    live.value = done.value
    live.answers.append((name, done.answer))
    if node.spec.kind == "agent":
        live.agent = name
    if live.emit is not None:
        live.emit(NodeFinished(node=name, answer=done.answer))


def _ends_after(live: LiveTern, node: Node) -> bool:
    """Whether a finish follows, so that what the node says is the Tern's answer."""
    return node.next is not None and live.plan.graph.nodes[node.next].spec.kind == "finish"


def _view_builder(live: LiveTern, name: str) -> ViewBuilder:
    """Gives the agent's view for each of its model calls."""
    agent = live.plan.agents[name]
    results = tuple(live.answers)
    conversation: tuple[Message, ...] | None = None
    previous: MemoryView | None = None

    async def older(before: int, limit: int) -> tuple[Message, ...]:
        return await live.store.messages(live.key, MessagePage(agent=name, before=before, limit=limit))

    async def build(call_index: int, added: tuple[Message, ...]) -> AgentView:
        nonlocal conversation, previous
        if conversation is None:
            limit = agent.reach.messages
            conversation = await older(_NO_BOUND, limit) if limit else ()
        built = await build_context(
            ContextRequest(
                agent=agent,
                thread=live.thread,
                owner=live.owner,
                tern=live.number,
                task=live.task,
                now=live.started_at,
                window=live.window,
                results=results,
                conversation=conversation,
                added=added,
                call_index=call_index,
                previous=previous,
                metadata=live.metadata,
                counter=agent.counter(),
                load_older=older,
            )
        )
        previous = built.view
        return AgentView(system=built.system, messages=built.messages)

    return build


def _memory_work(runtime: Runtime, live: LiveTern, recorded: Recorded) -> Coroutine[Any, Any, MemoryReport] | None:
    """What is to be done after the commit, None when nothing is."""
    fresh = tuple(PendingWork(tern=live.number, strategy=name) for name in recorded.strategies)
    retried = tuple(work for work in live.pending if work.attempts > 0)
    if not (fresh or retried or recorded.due):
        return None
    request = MemoryRequest(
        live=live, windows=runtime.windows, work=(*retried, *fresh), due=recorded.due, tern=recorded.tern
    )
    return _remember(request)


async def _remember(request: MemoryRequest) -> MemoryReport:
    """Memory work after the commit. A fault of the store leaves it to the next Tern."""
    try:
        return await update_memory(request)
    except AgbossError as error:
        request.live.warn(f"memory work is left to the next turn: {error.message}")
        return MemoryReport()


async def _release_after(work: Coroutine[Any, Any, MemoryReport], lines: ExitStack) -> MemoryReport:
    """Finish memory work, then let the thread's next Tern in."""
    with lines:
        return await work
