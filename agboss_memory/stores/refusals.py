"""What every store answers when a thread is not to be had, in the same words."""

from __future__ import annotations

from agboss_memory.errors import (
    CopyError,
    LeaseLostError,
    TernConflictError,
    ThreadDeletedError,
    ThreadOwnerError,
    UnknownThreadError,
)
from agboss_memory.messages import Tern
from agboss_memory.stores.checks import copy_findings
from agboss_memory.stores.contract import Admission
from agboss_memory.stores.copies import ThreadCopy

INTERRUPTED_CODE = "run.interrupted"
INTERRUPTED_TEXT = "The turn was not finished: its process stopped, or could not store its end."


UNREADABLE_CODE = "store.unreadable"
UNREADABLE_TEXT = "A part of the record of this turn cannot be read."


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


def existing_thread(copy: ThreadCopy) -> CopyError:
    """An import would write over a thread."""
    return CopyError(
        "copy.exists",
        f"Workflow {copy.workflow!r} already has a thread {copy.thread!r}; nothing was imported.",
        "Import it under another id, or delete the thread first.",
        workflow=copy.workflow,
        thread=copy.thread,
    )


def existing_key(copy: ThreadCopy, number: int) -> CopyError:
    """An import would give an idempotency key two meanings."""
    return CopyError(
        "copy.key-exists",
        f"The idempotency key of Tern {number} of thread {copy.thread!r} is in use here; nothing was imported.",
        "Import it under another id, which leaves the keys out, or delete the thread that has the key.",
        workflow=copy.workflow,
        thread=copy.thread,
        tern=number,
    )


def refuse_invalid(copy: ThreadCopy) -> None:
    """Raise CopyError when what the copy holds cannot be."""
    for finding in copy_findings(copy):
        raise CopyError(
            "copy.invalid",
            f"Thread {copy.thread!r} cannot be imported: {finding.what} ({finding.code}).",
            finding.remedy,
            workflow=copy.workflow,
            thread=copy.thread,
            finding=finding.code,
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


def lost_memory(key: int, tern: int) -> LeaseLostError:
    """The memory work after a Tern, or outside Terns, is no longer ours to finish."""
    return LeaseLostError(
        "run.lease-lost",
        f"Memory work of turn {tern} is no longer done by this process; only its cost was stored.",
        "Another process took the thread over, and did the work or will do it.",
        key=key,
        tern=tern,
    )


def matches(request: Admission, stored: Tern, *, workflow: str, thread: str) -> bool:
    """Whether ``request`` repeats the stored Tern. A first contact names no thread and repeats a first Tern only."""
    same_thread = stored.number == 1 if request.first_contact else thread == request.thread
    asked = (request.workflow, request.task, request.start, request.attachments)
    return same_thread and (workflow, stored.task, stored.start, stored.attachments) == asked
