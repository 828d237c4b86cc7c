"""A whole thread as records: what an export holds and an import brings; and what a check finds."""

from __future__ import annotations

from datetime import datetime

from agboss_memory.messages import Block, Message, Summary, Tern
from agboss_memory.records import Record
from agboss_memory.stores.admissions import BookedUsage, PendingWork, Step


class TernCopy(Record, kw_only=True):
    """A Tern with what its record does not show.

    Attributes:
        tern: The Tern; its ``usage`` is empty in favour of ``usage``.
        usage: What was booked for it, in the order of booking.
        idempotency_key: The key it was admitted with, or None.
        steps: The journal of a paused Tern; of a finished one, what it was asked and answered.
    """

    tern: Tern
    usage: tuple[BookedUsage, ...] = ()
    idempotency_key: str | None = None
    steps: tuple[Step, ...] = ()


class MessageCopy(Record, kw_only=True):
    """A message with its place among all messages of its Tern, from 0."""

    message: Message
    place: int = 0


class SummaryCopy(Record, kw_only=True):
    """A summary with its lineage.

    Attributes:
        summary: The summary; ids count from 1 in the order of writing.
        tern: The Tern during which it was written, 0 = outside one.
        superseded_by: Id of the summary that took its place, or None.
    """

    summary: Summary
    tern: int = 0
    superseded_by: int | None = None


class ThreadCopy(Record, kw_only=True):
    """A thread without its lease and tickets.

    Attributes:
        workflow: The workflow it belongs to.
        thread: Its id.
        owner: Its owner, None when it has none.
        created_at: Aware UTC.
        updated_at: Aware UTC.
        terns: Terns 1, 2, ... without a gap; none is running.
        messages: By agent, each agent's from 1 without a gap.
        summaries: By id.
        blocks: By range.
        work: Memory work that is still to be done, by Tern.
        unbound: What was booked outside a Tern.
    """

    workflow: str
    thread: str
    owner: str | None
    created_at: datetime
    updated_at: datetime
    terns: tuple[TernCopy, ...] = ()
    messages: tuple[MessageCopy, ...] = ()
    summaries: tuple[SummaryCopy, ...] = ()
    blocks: tuple[Block, ...] = ()
    work: tuple[PendingWork, ...] = ()
    unbound: tuple[BookedUsage, ...] = ()


class AgentSums(Record, kw_only=True):
    """What a store keeps of one agent's conversation so that it need not be added up."""

    agent: str
    last: int
    live_tokens: int
    uncounted: int


class Finding(Record, kw_only=True):
    """Something in a store that cannot be.

    Attributes:
        code: Stable identifier, such as ``tern.gap``.
        thread: Id of the thread, empty for the store as a whole.
        what: What is wrong, with the numbers.
        remedy: What to do about it.
        workflow: The thread's workflow.
    """

    code: str
    thread: str
    what: str
    remedy: str
    workflow: str = ""
