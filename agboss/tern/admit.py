"""First stage: a task becomes a Tern. One transaction gives it the thread and a number, and reads what it needs."""

from __future__ import annotations

import time
from collections.abc import Callable

from agboss.errors import ThreadBusyError
from agboss.queue import ThreadQueue, give_back
from agboss.windows import Held, Windows
from agboss_memory.contract import utc_now
from agboss_memory.records import Record, replace
from agboss_memory.stores.admissions import Claim
from agboss_memory.stores.contract import Admission, Admitted, Store, Window
from agboss_memory.stores.pauses import Resumption

POLL = 0.25
"""Seconds after which a thread that another process holds is asked for again; within a process nobody polls."""


class AdmitRequest(Record, kw_only=True):
    """What is to be admitted.

    Attributes:
        admission: The store's request.
        store: The store.
        windows: Windows of threads in use.
        held: What was held of the thread when the admission's ``known`` was set.
        queue: The lines of this process.
        wait: Seconds to wait for a thread that another process holds; 0 = not at all.
        repeat_wait: Seconds to wait for the end of the very Tern of this key, when another process runs it.
        claim: Go on with this Tern, which nobody runs, instead.
        resumption: Go on with this paused Tern instead.
        clock: Monotonic seconds.
    """

    admission: Admission
    store: Store
    windows: Windows
    held: Held | None
    queue: ThreadQueue
    wait: float
    repeat_wait: float
    claim: Claim | None = None
    resumption: Resumption | None = None
    clock: Callable[[], float] = time.monotonic


class AdmitResult(Record, kw_only=True):
    """The admission with its window; ``window`` is empty for a repeat."""

    admitted: Admitted
    window: Window


async def admit(request: AdmitRequest) -> AdmitResult:
    """Get the thread and a number, waiting for another process if allowed.

    Raises:
        UnknownThreadError: No such thread, or one of another owner.
        TernConflictError: The idempotency key was used for something else.
        ThreadBusyError: Another process holds the thread for longer than ``wait``.
        AppStateError: The App waits for nothing any more.
        PauseError: The paused Tern was decided otherwise, or has ended.
    """
    if request.claim is not None:
        admitted = await request.store.claim(request.claim)
        if admitted.kind == "busy":
            raise _busy(request.admission.thread)
    else:
        asked = request.admission
        waits = bool(asked.ticket) or request.resumption is not None
        admitted = None if waits else await request.store.admit(asked)
        if admitted is None or admitted.kind == "busy":
            admitted = await _in_line(request, admitted)
    if admitted.kind == "repeat":
        return AdmitResult(admitted=admitted, window=Window())
    if admitted.resumed:  # its window ends at its own number, which later Terns may have passed
        request.windows.drop(admitted.thread)
        return AdmitResult(admitted=admitted, window=admitted.window or Window())
    return AdmitResult(admitted=admitted, window=request.windows.after_admission(admitted, request.held))


async def _in_line(request: AdmitRequest, admitted: Admitted | None) -> Admitted:
    """Ask until it is this Tern's turn; ``admitted`` is the store's first answer. Whoever gives up gives the ticket back."""
    store = request.store
    asked: Admission | Resumption = request.resumption or request.admission
    began = request.clock()
    try:
        while True:
            if admitted is None:
                admitted = await (store.admit(asked) if isinstance(asked, Admission) else store.resume(asked))
            if admitted.kind != "busy":
                return admitted
            asked = replace(asked, ticket=admitted.ticket)
            wait = request.wait if admitted.tern is None else request.repeat_wait
            left = began + wait - request.clock()
            if left <= 0:
                raise _busy(asked.thread)
            request.queue.check()
            await store.wait(admitted.key, min(POLL, left))
            asked = replace(asked, now=utc_now())
            admitted = None
    except BaseException:
        if asked.ticket:
            await give_back(store, asked.ticket)
        raise


def _busy(thread: str) -> ThreadBusyError:
    return ThreadBusyError(
        "run.thread-busy",
        f"thread {thread!r} is held by another Tern",
        "wait for it, raise queue_timeout, or cancel it",
        thread=thread,
    )
