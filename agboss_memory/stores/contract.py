"""What a store must do. SQLite and memory run the same conformance suite (``agboss_memory.testing``).

A Tern is written in exactly two transactions: ``admit`` (thread, number, task) and ``commit`` (answer, messages,
usage, due work). Each is one call, so that a store can do it in one hop. Rules that hold in every store:

* nothing that was said is edited or deleted, except by ``delete_thread``;
* numbers are given once, at admission, without holes;
* a write under an old fence, or to a deleted thread, is refused and changes nothing; what memory work has cost is
  booked under an old fence too: it was paid;
* every method is safe against cancellation: it finishes or did not start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Literal, Protocol

from agboss_memory.contract import Conversation
from agboss_memory.messages import Block, Message, Summary, Tern
from agboss_memory.records import Record
from agboss_memory.stores.admissions import (
    Admission,
    Admitted,
    BookedUsage,
    Claim,
    Enqueue,
    Interruption,
    MemoryClaim,
    Owing,
    PendingWork,
    Resumable,
    Step,
    StepWrite,
    Window,
    WindowSpec,
)
from agboss_memory.stores.copies import Finding, ThreadCopy
from agboss_memory.stores.files import FileStore
from agboss_memory.stores.pauses import Resumption
from agboss_memory.stores.spending import DaySpend, SpendQuery, SpendRow
from agboss_memory.stores.views import ViewRecord


class ThreadInfo(Record, kw_only=True):
    """A thread as listed.

    Attributes:
        id: The thread's id.
        workflow: The workflow it belongs to.
        owner: Its owner, None when it has none.
        created_at: Aware UTC.
        updated_at: When its newest Tern was admitted or ended, aware UTC.
        terns: Number of Terns.
        running: Whether a Tern is running.
        spend: What all its Terns and their memory have cost, in US dollars; None when the cost of a call is unknown.
    """

    id: str
    workflow: str
    owner: str | None
    created_at: datetime
    updated_at: datetime
    terns: int
    running: bool = False
    spend: Decimal | None = Decimal(0)


class Commit(Record, kw_only=True):
    """The final transaction of a Tern.

    Attributes:
        key: The thread's key from the admission.
        fence: The fence from the admission.
        tern: The finished (or paused) Tern; its ``usage`` is ignored in favour of ``usage``.
        messages: What the agents said, in order; numbered by the store per agent. A paused Tern brings none: they come
            with its final transaction.
        usage: Booked calls; a step key that is already booked is not booked again.
        blocks: Blocks that this Tern made complete or began; stored as ``due`` when all their Terns are finished,
            else as ``open``.
        strategies: Names of strategies whose ``update_memory`` is due.
        steps: Nodes that ran, for the daily ledger.
        tool_calls: Tools that ran, for the daily ledger.
        remembers: Whether the lease stays for memory work until ``release``: ``no``, ``due`` when blocks or strategies
            are due after it, ``yes``.
        now: Aware UTC.
    """

    key: int
    fence: int
    tern: Tern
    now: datetime
    steps: int = 0
    tool_calls: int = 0
    messages: tuple[Message, ...] = ()
    usage: tuple[BookedUsage, ...] = ()
    blocks: tuple[Block, ...] = ()
    strategies: tuple[str, ...] = ()
    remembers: Literal["no", "due", "yes"] = "no"


class Committed(Record, kw_only=True):
    """What the final transaction left.

    Attributes:
        version: The thread's version.
        due: Blocks that are due now, oldest first.
        held: The lease stays until ``release``.
    """

    version: int
    due: tuple[Block, ...] = ()
    held: bool = False


class ThreadRef(Record, kw_only=True):
    """Names a thread for a read or for administration.

    Attributes:
        workflow: Name of the workflow.
        thread: Id of the thread.
        owner: Who asks; ``any_owner`` lets an operator see every thread.
        any_owner: Skip the owner check.
    """

    workflow: str
    thread: str
    owner: str | None = None
    any_owner: bool = False


class ThreadState(Record, kw_only=True):
    """A thread outside a Tern: what ``/memory`` and Compact start from."""

    info: ThreadInfo
    key: int
    fence: int
    version: int
    window: Window
    pending: tuple[PendingWork, ...] = ()


class SummaryWrite(Record, kw_only=True):
    """One summary with its block and its cost, written together or not at all.

    The block of a turn summary becomes ``done``. A second active summary of the same range is refused quietly: the
    stored one is kept. An active one of the same agent and kind whose range lies inside becomes ``superseded``. In an
    agent's own conversation this holds for all kinds, and one that covers a part of the range without lying inside is
    kept in the same way, so that no message is in two summaries.

    Attributes:
        key: The thread's key.
        tern: The Tern during which it was written; usage is booked there.
        summary: The summary.
        now: Aware UTC.
        usage: Booked calls.
        fence: The fence under which the work began; None = of a caller that holds no lease, not looked at.
    """

    key: int
    tern: int
    summary: Summary
    now: datetime
    usage: tuple[BookedUsage, ...] = ()
    fence: int | None = None


class MemoryOutcome(Record, kw_only=True):
    """The end of one piece of memory work that wrote no summary.

    Attributes:
        key: The thread's key.
        tern: The Tern during which it was done; usage is booked there.
        now: Aware UTC.
        work: The strategy work that was tried, or None.
        done: Whether ``work`` is finished and needs no further try.
        block: The block with its new state, attempts and error, or None.
        usage: Booked calls, also those of a failed try. They are all that is stored under an old fence.
        fence: The fence under which the work began; None = of a caller that holds no lease, not looked at.
    """

    key: int
    tern: int
    now: datetime
    work: PendingWork | None = None
    done: bool = False
    block: Block | None = None
    usage: tuple[BookedUsage, ...] = ()
    fence: int | None = None


class TernPage(Record, kw_only=True):
    """A page of Terns.

    Attributes:
        after: Only Terns with a greater number.
        before: Only Terns with a smaller number; None = no bound.
        limit: At most so many.
        newest: True = the newest of the range (still returned oldest first), False = the oldest.
    """

    after: int = 0
    before: int | None = None
    limit: int = 100
    newest: bool = False


class MessagePage(Record, kw_only=True):
    """A page of messages of one agent's conversation (newest first inside the range, returned oldest first).

    ``tern`` restricts it to one Tern; ``agent`` None means all agents (only with ``tern``). Messages that were stored
    outside a Tern are found by agent only.
    """

    agent: str | None
    before: int | None = None
    limit: int = 100
    tern: int | None = None


class Append(Record, kw_only=True):
    """Messages that are stored outside a Tern.

    Attributes:
        workflow: Name of the workflow.
        thread: Id of the thread; it is made when it does not exist.
        owner: Who asks, None = nobody in particular.
        agent: Whose conversation it is.
        messages: What was said, in order.
        now: Aware UTC.
    """

    workflow: str
    thread: str
    agent: str
    messages: tuple[Message, ...]
    now: datetime
    owner: str | None = None


class Appended(Record, kw_only=True):
    """The thread's key and the numbers that the messages got; ``last`` below ``first`` when there were none."""

    key: int
    first: int
    last: int


class Store(Protocol):
    """The log of all threads. Methods raise ``StoreError`` kinds for faults of the medium."""

    url: str

    @property
    def files(self) -> FileStore:
        """Where the bytes of attachments are. A Tern's are written right after its admission."""
        ...

    async def open(self) -> None:
        """Connect and bring the schema up to date. Several Apps may open one object; an open that fails does not count.

        Raises StoreCorruptError, StoreVersionError, StoreLockedError.
        """
        ...

    async def close(self) -> None:
        """End one open; the last one releases everything. Closing what is closed is allowed."""
        ...

    async def admit(self, request: Admission) -> Admitted:
        """Start a Tern. Raises UnknownThreadError, ThreadOwnerError, TernConflictError."""
        ...

    async def commit(self, request: Commit) -> Committed:
        """End a Tern. Raises ThreadDeletedError, LeaseLostError; then nothing was written."""
        ...

    async def renew(self, holder: str, until: datetime) -> tuple[Interruption, ...]:
        """Extend leases and tickets that ``holder`` got through this object.

        Returns:
            Its Terns that were asked to end, and those that have lost their lease, or the thread itself.
        """
        ...

    async def enqueue(self, request: Enqueue) -> int:
        """A ticket for a Tern that will have to wait. It counts from now on."""
        ...

    async def leave(self, ticket: int) -> None:
        """Give a ticket back. One that is gone already is no fault."""
        ...

    async def wait(self, key: int, seconds: float) -> None:
        """Return when a Tern of the thread ended in this process, or a ticket was given back, or after ``seconds``."""
        ...

    async def keyed(self, owner: str | None, idempotency_key: str) -> bool:
        """Whether a Tern was admitted under this key, whatever has become of it."""
        ...

    async def interrupt(self, ref: ThreadRef, unless: int = 0) -> Interruption | None:
        """Ask the running Tern to end; its holder learns of it when it renews, whoever takes it over from ``Admitted.stop``.

        Returns:
            None when no Tern was asked.

        Args:
            ref: The thread.
            unless: Number of a Tern that may go on.

        Raises:
            UnknownThreadError: No such thread, or one of another owner (ThreadOwnerError).
        """
        ...

    async def resumable(self, workflow: str, now: datetime, after: int, limit: int) -> tuple[Resumable, ...]:
        """Running Terns whose lease has ended, by key of their thread, of threads with a greater key than ``after``."""
        ...

    async def claim(self, request: Claim) -> Admitted:
        """Go on with a resumable Tern: ``admitted`` with ``resumed``, or ``busy`` when it is none any more.

        Raises ThreadDeletedError.
        """
        ...

    async def owing(self, workflow: str, now: datetime, after: int, limit: int) -> tuple[Owing, ...]:
        """Threads that nobody has and for which memory work is left, by key, with a greater key than ``after``."""
        ...

    async def hold(self, request: MemoryClaim) -> ThreadState | None:
        """Have a thread for memory work until ``release``; None when somebody has it.

        Raises ThreadDeletedError.
        """
        ...

    async def release(self, key: int, fence: int, number: int) -> None:
        """Let others have a thread after memory work, or when the end of Tern ``number`` could not be stored.

        The last ``settle`` of a thread without further work does it by itself. No fault when somebody else has it.
        """
        ...

    async def paused(self, key: int) -> tuple[Resumable, ...]:
        """Terns of a thread that wait for a decision, or went on after one and have not ended; by number."""
        ...

    async def resume(self, request: Resumption) -> Admitted:
        """Go on with a paused Tern and keep the decision, in one transaction.

        Returns:
            ``admitted`` with ``resumed``; ``busy`` while another Tern holds the thread or has waited longer; ``repeat``
            when the decision is known and there is nothing to do, with the Tern as it stands.

        Raises:
            PauseError: It was decided otherwise (``pause.decided``), or the Tern has ended (``pause.closed``).
            ThreadDeletedError: The thread is gone.
        """
        ...

    async def write_step(self, request: StepWrite) -> None:
        """Keep a finished step; one whose key is there already is left as it is.

        Raises ThreadDeletedError, LeaseLostError.
        """
        ...

    async def steps(self, key: int, number: int) -> tuple[Step, ...]:
        """Steps of a Tern, in the order in which they were written; of one that has ended, questions and answers."""
        ...

    async def write_views(self, key: int, views: tuple[ViewRecord, ...]) -> None:
        """Keep what model calls were shown; one of the same Tern, agent and call is replaced."""
        ...

    async def views(self, key: int, tern: int) -> tuple[ViewRecord, ...]:
        """Recorded views of a Tern, by agent and call."""
        ...

    async def write_summary(self, request: SummaryWrite) -> Summary:
        """Store a summary and settle its block.

        Raises:
            ThreadDeletedError: The thread is gone.
            LeaseLostError: Somebody else has had the thread since; nothing but the usage was stored.
        """
        ...

    async def settle(self, request: MemoryOutcome) -> None:
        """Record the end of memory work.

        Raises:
            ThreadDeletedError: The thread is gone.
            LeaseLostError: Somebody else has had the thread since; of work and block nothing was stored, only the usage.
        """
        ...

    async def thread(self, ref: ThreadRef, window: WindowSpec) -> ThreadState:
        """A thread as it stands. Raises UnknownThreadError, ThreadOwnerError."""
        ...

    async def threads(self, workflow: str, owner: str | None, after: str | None, limit: int) -> tuple[ThreadInfo, ...]:
        """Threads of a workflow, made last first, from the one after the thread ``after``; owner None = all owners.

        Raises UnknownThreadError when there is no such ``after``.
        """
        ...

    async def terns(self, key: int, page: TernPage) -> tuple[Tern, ...]:
        """Terns of any status with their usage, oldest first."""
        ...

    async def messages(self, key: int, page: MessagePage) -> tuple[Message, ...]:
        """Messages, oldest first."""
        ...

    async def append(self, request: Append) -> Appended:
        """Add messages outside a Tern. Raises ThreadOwnerError."""
        ...

    async def conversation(self, key: int, agent: str, limit: int) -> Conversation:
        """The newest ``limit`` messages of one agent, its active summaries and its live tokens, as one snapshot."""
        ...

    async def message(self, key: int, agent: str, number: int) -> Message | None:
        """One message of an agent's conversation."""
        ...

    async def write_counts(self, key: int, agent: str, counts: Mapping[int, int], tokenizer: str) -> None:
        """Keep text tokens by message number; what such a message counted before is replaced."""
        ...

    async def compress_result(self, key: int, agent: str, number: int, stub: str, tokens: int) -> bool:
        """Let a stub stand for a tool result that has none yet. False when there is no such result."""
        ...

    async def summaries(
        self,
        key: int,
        agent: str = "",
        all_states: bool = False,
        *,
        before: int | None = None,
        limit: int | None = None,
    ) -> tuple[Summary, ...]:
        """Summaries of one agent (empty = turn memory), oldest range first.

        ``limit`` = only the newest ranges, ``before`` = only ranges that begin before this number.
        """
        ...

    async def blocks(self, key: int, states: Sequence[str], limit: int) -> tuple[Block, ...]:
        """Blocks in one of ``states``, oldest first."""
        ...

    async def retire(self, key: int, summary: int, now: datetime) -> Summary | None:
        """Undo a summary of this thread by its id; None when there is no such active one. Its block becomes ``retired``."""
        ...

    async def delete_thread(self, ref: ThreadRef) -> None:
        """Remove a thread with all that belongs to it, and the bytes of attachments that no other thread names.

        Raises UnknownThreadError, ThreadOwnerError.
        """
        ...

    async def drop_files(self, ids: Sequence[str]) -> None:
        """Remove those of these contents that no thread names: they were written for a Tern that was not admitted."""
        ...

    async def day_spend(self, workflow: str, day: str) -> DaySpend:
        """What was booked on a UTC day (``2026-01-31``)."""
        ...

    async def spend(self, query: SpendQuery) -> tuple[SpendRow, ...]:
        """What was booked in a range of UTC days, by day and model. What deleted threads spent is in it."""
        ...

    async def copy(self, ref: ThreadRef) -> ThreadCopy:
        """A whole thread as of one moment, without a Tern that is running; one that paused before stands as paused.

        Raises UnknownThreadError, ThreadOwnerError.
        """
        ...

    async def restore(self, copy: ThreadCopy) -> None:
        """Write a whole thread, in one transaction. Its cost enters no ledger.

        Raises:
            CopyError: Such a thread exists (``copy.exists``), or one of its idempotency keys (``copy.key-exists``), or
                what it holds cannot be (``copy.invalid``). Then nothing was written.
        """
        ...

    async def check(self) -> tuple[Finding, ...]:
        """Read everything and tell what cannot be. Changes nothing."""
        ...
