"""What starts a Tern: admissions, tickets, taking over what another process left, and its journal of finished steps."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from agboss_memory.messages import EPOCH, AttachmentRecord, Block, Summary, Tern, UsageRecord
from agboss_memory.records import Record


class WindowSpec(Record, kw_only=True, gc=False):
    """How much of a thread an admission reads.

    Attributes:
        terns: Newest finished Terns.
        summaries: Latest active summaries of turn memory.
    """

    terns: int = 0
    summaries: int = 0


class Window(Record, kw_only=True, gc=False):
    """The newest part of a thread, as strategies read it.

    Attributes:
        terns: Finished Terns, oldest first.
        summaries: Active summaries of turn memory, oldest first.
        blocks: Blocks that touch ``terns``, oldest first, and all that are due.
        planned_to: Last Tern that belongs to a block, whatever its state; 0 = none.
    """

    terns: tuple[Tern, ...] = ()
    summaries: tuple[Summary, ...] = ()
    blocks: tuple[Block, ...] = ()
    planned_to: int = 0


class Admission(Record, kw_only=True):
    """A request to start a Tern.

    Attributes:
        workflow: Name of the workflow; thread ids are unique within it.
        thread: Id of the thread.
        create: Make the thread when it does not exist.
        first_contact: The caller named no thread; ``thread`` is a fresh id.
        owner: Who asks, None = nobody in particular.
        idempotency_key: Makes the Tern exactly-once per owner, None = off.
        task: The task as text.
        start: Name of the start component.
        version: Version of the workflow.
        config_hash: Hash of the resolved configuration.
        metadata: JSON text to keep with the Tern, or None.
        attachments: Files that come with the task; a repeat must bring the same ones.
        holder: Identifies this App in the lease.
        now: Aware UTC.
        lease_seconds: How long the lease lasts unless renewed.
        window: What to read.
        known: The thread's version that the caller has in memory; the window is not read when it still holds.
        queue: Take a ticket when the thread is busy.
        ticket: The ticket that the Tern waited with, 0 = none.
    """

    workflow: str
    thread: str
    create: bool
    owner: str | None
    task: str
    start: str
    holder: str
    now: datetime
    first_contact: bool = False
    idempotency_key: str | None = None
    version: str = ""
    config_hash: str = ""
    metadata: str | None = None
    attachments: tuple[AttachmentRecord, ...] = ()
    lease_seconds: float = 10.0
    window: WindowSpec = WindowSpec()
    known: int | None = None
    queue: bool = False
    ticket: int = 0


class PendingWork(Record, kw_only=True, gc=False):
    """Memory work of a finished Tern that is still to be done.

    Attributes:
        tern: Number of the Tern.
        strategy: Name of the strategy whose ``update_memory`` is due.
        attempts: How often it was tried.
    """

    tern: int
    strategy: str
    attempts: int = 0


class Admitted(Record, kw_only=True):
    """The answer to an admission.

    Attributes:
        kind: ``admitted``: the Tern is ours. ``repeat``: the key was used before and that Tern is finished (or paused);
            ``tern`` is it. ``busy``: another holder runs a Tern in this thread (or the Tern of this key), or somebody
            has waited for it longer; ``wait`` for it and try again with ``ticket``.
        thread: Id of the thread (of the stored Tern, for a repeat).
        key: The store's own key of the thread.
        number: The Tern's number.
        fence: Every write of this Tern carries it.
        version: The thread's version after the admission.
        window: None when ``known`` still held.
        tern: The stored Tern of a repeat. When busy: set if what runs is the very Tern of this key, else None.
        resumed: The Tern had been admitted before under the same key and its holder is gone.
        closed: Numbers of Terns that a vanished holder left running and that were closed as cancelled.
        pending: Work that an earlier Tern left, oldest first.
        ticket: When busy: the ticket to come again with, 0 when none was asked for.
        resumes: How often the Tern was taken over, this time included.
        stalled: How often it was since its last new step, this time included.
        stop: The Tern that was taken over had been asked to end.
    """

    kind: Literal["admitted", "repeat", "busy"]
    thread: str
    key: int = 0
    number: int = 0
    fence: int = 0
    version: int = 0
    window: Window | None = None
    tern: Tern | None = None
    resumed: bool = False
    closed: tuple[int, ...] = ()
    pending: tuple[PendingWork, ...] = ()
    ticket: int = 0
    resumes: int = 0
    stalled: int = 0
    stop: bool = False


class Enqueue(Record, kw_only=True):
    """A Tern that has to wait, before it asks to be admitted.

    Attributes:
        workflow: Name of the workflow.
        thread: Id of the thread, which need not exist yet.
        holder: Identifies the App that waits.
        now: Aware UTC.
        lease_seconds: How long the ticket lasts unless renewed.
    """

    workflow: str
    thread: str
    holder: str
    now: datetime
    lease_seconds: float = 10.0


class Interruption(Record, kw_only=True):
    """A Tern that was asked to end, or has lost its lease: the thread's key, the Tern's number, and who runs it."""

    key: int
    number: int
    holder: str


class Resumable(Record, kw_only=True):
    """A Tern that is marked as running while nobody runs it.

    Attributes:
        key: The thread's key.
        thread: The thread's id.
        owner: The thread's owner, None when it has none.
        tern: The Tern as it was admitted.
        idempotency_key: The key it was admitted with, or None.
        resumes: How often it was taken over before.
    """

    key: int
    thread: str
    owner: str | None
    tern: Tern
    idempotency_key: str | None = None
    resumes: int = 0


class Claim(Record, kw_only=True):
    """A request to go on with a resumable Tern.

    Attributes:
        key: The thread's key.
        number: The Tern's number.
        holder: Identifies this App in the lease.
        now: Aware UTC.
        lease_seconds: How long the lease lasts unless renewed.
        window: What to read.
    """

    key: int
    number: int
    holder: str
    now: datetime
    lease_seconds: float = 10.0
    window: WindowSpec = WindowSpec()


class Owing(Record, kw_only=True):
    """A thread for which memory work is left."""

    key: int
    thread: str
    owner: str | None = None


class MemoryClaim(Record, kw_only=True):
    """A request to have a thread for memory work outside a Tern.

    Attributes:
        key: The thread's key.
        holder: Identifies this App in the lease.
        now: Aware UTC.
        lease_seconds: How long the lease lasts unless renewed.
        window: What to read.
    """

    key: int
    holder: str
    now: datetime
    lease_seconds: float = 10.0
    window: WindowSpec = WindowSpec()


class BookedUsage(Record, kw_only=True, gc=False):
    """A usage record under the key that makes its booking idempotent within the Tern."""

    step_key: str
    record: UsageRecord


class Step(Record, kw_only=True):
    """A finished call of a running Tern, kept until the Tern ends.

    Attributes:
        key: Unique within the Tern, such as ``desk.tool.2``.
        kind: What it was: ``model``, ``tool``, ``route`` or a word of the caller's own.
        input_hash: Identifies its input; a Tern that resumes with another input must not use the outcome.
        outcome: What came of it, as JSON text.
    """

    key: str
    kind: str
    input_hash: str
    outcome: str


class StepWrite(Record, kw_only=True):
    """A finished step of the running Tern, under the fence of its admission.

    ``usage`` is booked with it, so that its cost is known whatever becomes of the Tern.
    """

    key: int
    fence: int
    number: int
    step: Step
    now: datetime = EPOCH
    usage: tuple[BookedUsage, ...] = ()
