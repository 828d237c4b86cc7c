"""What all runs of one App share, what one run asks for, and how runs wait for each other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from typing import Any, Literal, TypeAlias

import agboss.events as events
from agboss.components.settings import RunLimits
from agboss.container import CURRENT
from agboss.errors import NestedRunError, ThreadOwnerError, UnknownThreadError
from agboss.plan import Plan
from agboss.queue import ThreadQueue, thread_line
from agboss.windows import Windows
from agboss_memory.attachments import Attachment
from agboss_memory.contract import utc_now
from agboss_memory.records import Record, Struct, field
from agboss_memory.stores.admissions import Enqueue, Resumable, Step
from agboss_memory.stores.contract import DaySpend, Store, ThreadRef

ThreadPolicy: TypeAlias = Literal["enqueue", "reject", "interrupt"]


class Runtime(Struct, kw_only=True, eq=False):
    """What all runs of one App share.

    Attributes:
        plan: The assembled workflow.
        store: Where the log is.
        windows: Windows of threads in use.
        queue: One Tern at a time per thread.
        holder: Names this App in leases.
        policy: ``enqueue`` waits for a busy thread, ``reject`` does not, ``interrupt`` ends what runs in it.
        queue_timeout: Seconds that ``enqueue`` waits.
        background: Whether memory work goes on after a run has returned.
        spawn: Starts a task that belongs to the App.
        running: What cancels the Tern that runs in a thread, by thread id.
        record_views: Whether what model calls were shown is recorded.
    """

    plan: Plan
    store: Store
    windows: Windows
    holder: str
    policy: ThreadPolicy
    queue_timeout: float
    background: bool
    spawn: Callable[[Coroutine[Any, Any, Any]], object]
    record_views: bool = False
    queue: ThreadQueue = field(default_factory=ThreadQueue)
    running: dict[str, Interrupt] = field(default_factory=dict[str, "Interrupt"])


class Interrupt(Struct, eq=False):
    """Ends the run of a Tern early: by a time-out or because the App was asked to."""

    timer: asyncio.Timeout
    key: int = 0
    owner: str | None = None
    idempotency_key: str | None = None
    asked: bool = False

    def cancel(self) -> None:
        """Cancel the Tern now; one that is being stopped already is left alone."""
        if not self.timer.expired():
            self.asked = True
            self.timer.reschedule(asyncio.get_running_loop().time())


class RunRequest(Record):
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
        attachments: Files that come with the task.
        timeout: Seconds from admission to answer, None = no bound.
        emit: Receives events, None when nobody listens.
        resume: A Tern that nobody runs, to go on with instead of a new one.
        answers: What was decided for it when it is paused, as its journal keeps it; None = it is not.
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
    attachments: tuple[Attachment, ...] = ()
    timeout: float | None = None
    emit: Callable[[events.RunEvent], None] | None = None
    resume: Resumable | None = None
    answers: tuple[Step, ...] | None = None


class Place(Struct, eq=False):
    """A run's place in the lines of this process, and its ticket among all processes; 0 = it never had to wait."""

    lines: ExitStack
    ticket: int = 0


async def enter(runtime: Runtime, request: RunRequest) -> Place:
    """Wait within this process for the idempotency key, then for the thread; the place's lines let the next ones in.

    Whoever has to wait takes a ticket at once, so that the order of arrival holds over all processes.

    A repeat waits for the first run of its key whatever the policy is.

    Raises:
        ThreadBusyError: The wait was too long, or the policy allows none.
        NestedRunError: The run was asked for from inside a Tern of the same thread.
    """
    _refuse_own_thread(request)
    wait = 0 if runtime.policy == "reject" else runtime.queue_timeout
    with ExitStack() as lines:
        if request.idempotency_key is not None:
            key = ("key", request.owner, request.idempotency_key)
            await runtime.queue.enter(key, runtime.queue_timeout)
            lines.callback(runtime.queue.leave, key)
        thread = thread_line(request.thread)
        ticket = 0
        if wait and runtime.queue.busy(thread):
            ticket = await runtime.store.enqueue(
                Enqueue(workflow=runtime.plan.name, thread=request.thread, holder=runtime.holder, now=utc_now())
            )
        try:
            await runtime.queue.enter(thread, wait)
        except BaseException:
            if ticket:
                await asyncio.shield(runtime.store.leave(ticket))
            raise
        lines.callback(runtime.queue.leave, thread)
        return Place(lines=lines.pop_all(), ticket=ticket)


async def make_room(runtime: Runtime, request: RunRequest) -> None:
    """With the policy ``interrupt``: ask the Tern that runs in the thread to end, in whatever process it runs.

    Raises:
        ThreadOwnerError: The thread belongs to another owner.
    """
    if runtime.policy != "interrupt" or request.first_contact:
        return
    here = runtime.running.get(request.thread)
    if here is not None and here.owner == request.owner:
        if request.idempotency_key is None or here.idempotency_key != request.idempotency_key:
            here.cancel()
        return
    ref = ThreadRef(workflow=runtime.plan.name, thread=request.thread, owner=request.owner)
    try:
        await runtime.store.interrupt(ref)
    except ThreadOwnerError:
        raise
    except UnknownThreadError:
        return  # admission says so, or makes it


def _refuse_own_thread(request: RunRequest) -> None:
    """A Tern that waits for its own thread would wait for itself."""
    scope = CURRENT.get()
    if scope is not None and not scope.ended and scope.thread_id == request.thread:
        raise NestedRunError(
            "run.own-thread",
            f"thread {request.thread!r} was asked for a Tern from inside its running Tern, which would wait for itself",
            "use another thread, or run it after the Tern has ended",
            thread=request.thread,
        )


async def spent_today(runtime: Runtime, day: str) -> DaySpend | None:
    """What the workflow has spent on a UTC day, None when no daily bound needs it."""
    limits = runtime.plan.limits
    if limits is None or limits.per_day == RunLimits.plain():
        return None
    return await runtime.store.day_spend(runtime.plan.name, day)


async def hand_on_cancellation() -> None:
    """Let a cancellation that a store held back reach the caller here, not at some later await of its own."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        await asyncio.sleep(0)
