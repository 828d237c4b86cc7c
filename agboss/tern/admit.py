"""First stage: a task becomes a Tern. One transaction gives it the thread and a number, and reads what it needs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from agboss.errors import ThreadBusyError
from agboss.windows import Held, Windows
from agboss_memory.records import Record
from agboss_memory.stores.contract import Admission, Admitted, Store, Window

FIRST_PAUSE = 0.02
"""Seconds before a busy thread is asked again for the first time; doubled up to ``LONGEST_PAUSE``."""

LONGEST_PAUSE = 0.25


class AdmitRequest(Record):
    """What is to be admitted.

    Attributes:
        admission: The store's request.
        store: The store.
        windows: Windows of threads in use.
        held: What was held of the thread when the admission's ``known`` was set.
        wait: Seconds to wait for a thread that another process holds; 0 = not at all.
        clock: Monotonic seconds.
    """

    admission: Admission
    store: Store
    windows: Windows
    held: Held | None
    wait: float
    clock: Callable[[], float] = time.monotonic


class AdmitResult(Record):
    """The admission with its window; ``window`` is empty for a repeat."""

    admitted: Admitted
    window: Window


async def admit(request: AdmitRequest) -> AdmitResult:
    """Get the thread and a number, waiting for another process if allowed.

    Raises:
        UnknownThreadError: No such thread, or one of another owner.
        TernConflictError: The idempotency key was used for something else.
        ThreadBusyError: Another process holds the thread for longer than ``wait``.
    """
    deadline = request.clock() + request.wait
    pause = FIRST_PAUSE
    while True:
        admitted = await request.store.admit(request.admission)
        if admitted.kind != "busy":
            break
        if request.clock() + pause > deadline:
            raise ThreadBusyError(
                "run.thread-busy",
                f"thread {request.admission.thread!r} is held by another Tern",
                "wait for it, raise queue_timeout, or cancel it",
                thread=request.admission.thread,
            )
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
    if admitted.kind == "repeat":
        return AdmitResult(admitted=admitted, window=Window())
    return AdmitResult(admitted=admitted, window=request.windows.after_admission(admitted, request.held))
