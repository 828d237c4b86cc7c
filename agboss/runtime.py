"""What all runs of one App share, what one run asks for, and how runs wait for each other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import agboss.events as events
from agboss.container import CURRENT
from agboss.errors import (
    AppStateError,
    NestedRunError,
    StoreLockedError,
    ThreadOwnerError,
    UnknownThreadError,
)
from agboss.models.meter import MEMORY_SECONDS
from agboss.plan import Plan
from agboss.queue import Line, ThreadQueue, give_back, thread_line
from agboss.unbooked import Unbooked
from agboss.windows import Windows
from agboss_memory.attachments import Attachment
from agboss_memory.contract import utc_now
from agboss_memory.records import Record, Struct, field
from agboss_memory.stores.admissions import Enqueue, Resumable, Step
from agboss_memory.stores.contract import DaySpend, Store, ThreadRef

if TYPE_CHECKING:
    from agboss.run import LiveTern

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
        memory_timeout: Seconds that one piece of memory work may take.
        running: What cancels the Tern that runs in a thread, by thread id.
        remembering: What breaks off memory work after a Tern, by thread id.
        ending: Whether the App closes and waits for nothing any more.
        record_views: Whether what model calls were shown is recorded.
        unbooked: What was paid for and waits for a store that takes it.
    """

    plan: Plan
    store: Store
    windows: Windows
    holder: str
    policy: ThreadPolicy
    queue_timeout: float
    background: bool
    spawn: Callable[[Coroutine[Any, Any, Any]], object]
    memory_timeout: float = MEMORY_SECONDS
    record_views: bool = False
    queue: ThreadQueue = field(default_factory=ThreadQueue)
    running: dict[str, Interrupt] = field(default_factory=dict[str, "Interrupt"])
    remembering: dict[str, Interrupt] = field(default_factory=dict[str, "Interrupt"])
    unbooked: Unbooked = field(default_factory=Unbooked)
    ending: bool = False

    def end(self) -> None:
        """Stop what runs, and whatever begins from now on; whoever waits for a thread is told that the App is closed."""
        self.ending = True
        self.queue.refuse(self._closed)
        for one in (*self.running.values(), *self.remembering.values()):
            one.cancel()

    def _closed(self) -> AppStateError:
        return AppStateError("app.closed", f"the App of {self.plan.name!r} is closed", "create a new one")

    def stop(self, thread: str) -> Interrupt | None:
        """Stop the Tern that runs in a thread, or the memory work after one; gives what stopped it."""
        found = self.running.get(thread) or self.remembering.get(thread)
        if found is not None:
            found.cancel()
        return found


class Interrupt:
    """Ends the run of a Tern early, by its time-out or because the App was asked to; or the memory work after it.

    Like ``asyncio.timeout`` it cancels the task and tells its own cancellation from one that came from outside.

    Args:
        live: The Tern.
        task: Runs it.
        timeout: Seconds that it may take, None = no bound.
        idempotency_key: The key under which it was asked for.
    """

    __slots__ = ("_before", "_task", "_timer", "idempotency_key", "key", "number", "owner", "reason")

    def __init__(
        self,
        live: LiveTern,
        task: asyncio.Task[Any],
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> None:
        self.key = live.key
        self.number = live.number
        self.owner = live.owner
        self.idempotency_key = idempotency_key
        self.reason: Literal["", "asked", "expired"] = ""
        self._task = task
        self._before = task.cancelling()
        self._timer: asyncio.Handle | None = None
        if timeout is not None:
            self._timer = task.get_loop().call_later(timeout, self._stop, "expired")

    def cancel(self) -> None:
        """Cancel the work now; what is being stopped already is left alone."""
        self._stop("asked")

    def cancel_soon(self) -> None:
        """The same from inside the work: at its next pause, if it lasts until then."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._task.get_loop().call_soon(self.cancel)

    def _stop(self, reason: Literal["asked", "expired"]) -> None:
        if not self.reason:
            self.reason = reason
            self._task.cancel()

    def end(self) -> None:
        """The run is over: nothing stops it any more, and the task has no cancellation of ours left to handle."""
        if self._timer is not None:
            self._timer.cancel()
        if self.reason and self._task.uncancel() > self._before:
            self.reason = ""  # somebody else cancelled the task as well, and that is what counts


class RunRequest(Record, kw_only=True):
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
    """A run's place in the lines of this process.

    Attributes:
        queue: The lines.
        lines: Those in which it stands.
        ticket: Its ticket among all processes; 0 = it never had to wait.
        held: The Tern whose lease in the store has to be given back; None = it ended with the Tern.
    """

    queue: ThreadQueue
    lines: tuple[Line, ...] = ()
    ticket: int = 0
    held: LiveTern | None = None

    def take(self, line: Line) -> bool:
        """Enter one more line if nobody is in it."""
        if taken := self.queue.take(line):
            self.lines += (line,)
        return taken

    async def enter(self, line: Line, wait: float | None) -> None:
        """Enter one more line. Raises ThreadBusyError."""
        await self.queue.enter(line, wait)
        self.lines += (line,)

    def close(self) -> None:
        """Leave the lines: the next ones come in."""
        lines, self.lines = self.lines, ()
        for line in reversed(lines):
            self.queue.leave(line)

    async def give_back(self, store: Store) -> None:
        """Give its ticket back, if it has one that no admission took."""
        ticket, self.ticket = self.ticket, 0
        if ticket:
            await give_back(store, ticket)

    def hand_over(self) -> Place:
        """The same place under a new owner; this one has nothing left to leave."""
        lines, self.lines = self.lines, ()
        held, self.held = self.held, None
        return Place(self.queue, lines, self.ticket, held)


async def enter(runtime: Runtime, request: RunRequest) -> Place:
    """Wait within this process for the idempotency key, then for the thread; leaving the place lets the next ones in.

    Whoever has to wait stands in line and takes a ticket at once, so that the order of arrival holds over all processes.
    The ticket is the caller's to give back unless an admission takes it.

    A repeat waits for the first run of its key whatever the policy is.

    Raises:
        ThreadBusyError: The wait was too long, or the policy allows none.
        NestedRunError: The run was asked for from inside a Tern of the same thread.
        AppStateError: The App waits for nothing any more.
    """
    _refuse_own_thread(request)
    place = Place(runtime.queue)
    thread = thread_line(request.thread)
    if request.idempotency_key is None and place.take(thread):
        return place
    try:
        if request.idempotency_key is not None:
            await place.enter(("key", request.owner, request.idempotency_key), runtime.queue_timeout)
        if not place.take(thread):
            await _stand(runtime, request, place, thread)
        return place
    except BaseException:
        place.close()
        await place.give_back(runtime.store)
        raise


async def _stand(runtime: Runtime, request: RunRequest, place: Place, thread: Line) -> None:
    queue, loop = runtime.queue, asyncio.get_running_loop()
    wait = 0 if runtime.policy == "reject" else runtime.queue_timeout
    queue.check()
    if not wait:
        await place.enter(thread, 0)  # which is refused
    turn, since = queue.stand(thread), loop.time()
    try:
        place.ticket = await _ticket(runtime, request)
    except BaseException:
        queue.give_up(thread, turn)
        raise
    await queue.wait(thread, turn, wait, since)
    place.lines += (thread,)


async def _ticket(runtime: Runtime, request: RunRequest) -> int:
    asked = Enqueue(workflow=runtime.plan.name, thread=request.thread, holder=runtime.holder, now=utc_now())
    try:
        return await runtime.store.enqueue(asked)
    except StoreLockedError:  # in this process the line stands; over others it gets a place when it is admitted
        return 0


async def make_room(runtime: Runtime, request: RunRequest) -> None:
    """With the policy ``interrupt``: ask the Tern that runs in the thread to end, in whatever process it runs.

    A repeat needs no room, neither of a key nor of a decision; nor does a Tern that nobody runs.

    Raises:
        ThreadOwnerError: The thread belongs to another owner.
    """
    resume, key = request.resume, request.idempotency_key
    if request.first_contact or (resume is not None and request.answers is None):
        return
    if resume is None and key is not None and await runtime.store.keyed(request.owner, key):
        return
    number = 0 if resume is None else resume.tern.number
    here = runtime.running.get(request.thread)
    if here is not None and here.owner == request.owner:
        if here.number != number and (key is None or here.idempotency_key != key):
            here.cancel()
        return
    ref = ThreadRef(workflow=runtime.plan.name, thread=request.thread, owner=request.owner)
    try:
        await runtime.store.interrupt(ref, unless=number)
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
    if limits is None or not limits.bounds_days:
        return None
    return await runtime.store.day_spend(runtime.plan.name, day)


def running_task() -> asyncio.Task[Any]:
    """The task that runs here."""
    return cast("asyncio.Task[Any]", asyncio.current_task())
