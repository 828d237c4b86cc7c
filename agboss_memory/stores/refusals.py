"""What every store answers when a thread is not to be had, in the same words."""

from __future__ import annotations

from agboss_memory.errors import (
    LeaseLostError,
    TernConflictError,
    ThreadDeletedError,
    ThreadOwnerError,
    UnknownThreadError,
)
from agboss_memory.messages import Tern
from agboss_memory.stores.contract import Admission

INTERRUPTED_CODE = "run.interrupted"
INTERRUPTED_TEXT = "The turn was not finished: its process stopped, or could not store its end."


def unknown_thread(workflow: str, thread: str) -> UnknownThreadError:
    """No such thread."""
    return UnknownThreadError(
        "run.unknown-thread",
        f"Workflow {workflow!r} has no thread {thread!r}.",
        "Check the id, or leave the thread out to start a new one.",
        workflow=workflow,
        thread=thread,
    )


def foreign_thread(workflow: str, thread: str) -> ThreadOwnerError:
    """The thread is somebody else's; whose is not said."""
    return ThreadOwnerError(
        "run.thread-owner",
        f"Thread {thread!r} of workflow {workflow!r} belongs to another owner.",
        "Name the owner that started the thread, or start a new one.",
        workflow=workflow,
        thread=thread,
    )


def key_conflict(request: Admission) -> TernConflictError:
    """The idempotency key was used for something else."""
    return TernConflictError(
        "run.idempotency-conflict",
        f"Idempotency key {request.idempotency_key!r} was used before with another workflow, thread, task, start or "
        "attachments.",
        "Use a fresh key for a new task; repeat a call with exactly what it was first sent with.",
        idempotency_key=request.idempotency_key,
        workflow=request.workflow,
        thread=request.thread,
    )


def deleted_thread(key: int) -> ThreadDeletedError:
    """The thread was deleted while something was still to be written to it."""
    return ThreadDeletedError(
        "run.thread-deleted",
        "The thread was deleted in the meantime; nothing was stored.",
        "Start a new thread.",
        key=key,
    )


def lost_lease(key: int, tern: int) -> LeaseLostError:
    """The Tern is no longer ours to finish."""
    return LeaseLostError(
        "run.lease-lost",
        f"Tern {tern} is no longer run by this process; nothing was stored.",
        "Another process took the thread over. Read the thread before asking again.",
        key=key,
        tern=tern,
    )


def matches(request: Admission, stored: Tern, *, workflow: str, thread: str) -> bool:
    """Whether ``request`` repeats the stored Tern. A first contact names no thread and repeats a first Tern only."""
    same_thread = stored.number == 1 if request.first_contact else thread == request.thread
    asked = (request.workflow, request.task, request.start, request.attachments)
    return same_thread and (workflow, stored.task, stored.start, stored.attachments) == asked
