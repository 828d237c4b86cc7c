"""How a Tern gets its thread: admission, taking over, and the line of those who wait. On the connection's thread."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from agboss_memory.records import replace
from agboss_memory.stores.contract import (
    Admission,
    Admitted,
    Claim,
    Enqueue,
    MemoryClaim,
    Owing,
    Resumable,
    TernPage,
    ThreadState,
)
from agboss_memory.stores.pauses import Resumption
from agboss_memory.stores.refusals import foreign_thread, key_conflict, matches
from agboss_memory.stores.sqlite import blocks, reads, steps, terns, threads, tickets, work
from agboss_memory.stores.sqlite.columns import to_micros
from agboss_memory.stores.text import decode_optional, decode_text, encode_optional, encode_text


def admit(connection: sqlite3.Connection, request: Admission) -> Admitted:
    """Start a Tern, or find the one that the idempotency key stands for."""
    if request.idempotency_key is not None:
        stored = terns.keyed(connection, request.owner, request.idempotency_key)
        if stored is not None:
            return leave_with(connection, request, _admit_again(connection, request, *stored))
    row = threads.find(connection, request.workflow, request.thread)
    if row is None:
        row = threads.create(connection, request)
    elif row.owner != encode_optional(request.owner):
        raise foreign_thread(request.workflow, request.thread)
    if row.taken(request.now, request.holder):
        return busy(connection, request, row, row.running)
    if row.queued and tickets.ahead(connection, request.workflow, request.thread, request.now, request.holder):
        return busy(connection, request, row, row.running)
    closed = close_left(connection, row, request.now)
    row.last_seq += 1
    terns.begin(connection, row.key, row.last_seq, request)
    return leave_with(connection, request, take(connection, request, row, row.last_seq, closed))


def close_left(connection: sqlite3.Connection, row: threads.ThreadRow, now: datetime) -> tuple[int, ...]:
    """Close the Tern that a vanished holder left running; its number, none when there is none."""
    if not row.running:
        return ()
    terns.interrupt(connection, row.key, row.running, now)
    steps.forget(connection, row.key, row.running)
    blocks.complete(connection, row.key, row.running)
    return (row.running,)


def busy(
    connection: sqlite3.Connection, request: Admission | Resumption, row: threads.ThreadRow, number: int
) -> Admitted:
    """Somebody else's turn. A caller that waits keeps its place, or gets the last one."""
    ticket = request.ticket
    workflow, thread = decode_text(row.workflow), decode_text(row.id)
    if not (ticket and tickets.stands(connection, workflow, thread, ticket)):
        ticket = 0
        if request.queue:
            waiting = Enqueue(
                workflow=workflow,
                thread=thread,
                holder=request.holder,
                now=request.now,
                lease_seconds=request.lease_seconds,
            )
            ticket = tickets.take(connection, waiting)
    return Admitted(kind="busy", thread=thread, key=row.key, number=number, ticket=ticket)


def leave_with(connection: sqlite3.Connection, request: Admission | Resumption, admitted: Admitted) -> Admitted:
    """The answer; its ticket is given back unless the request has to come again."""
    if request.ticket and admitted.kind != "busy":
        tickets.give_back(connection, request.ticket)
    return admitted


def _admit_again(connection: sqlite3.Connection, request: Admission, key: int, number: int) -> Admitted:
    row = threads.get(connection, key)
    ((stored, _),) = reads.terns_and_bookings(connection, key, TernPage(after=number - 1, before=number + 1))
    thread, workflow = decode_text(row.id), decode_text(row.workflow)
    if not matches(request, stored, workflow=workflow, thread=thread):
        raise key_conflict(request)
    if row.running != number:
        return Admitted(
            kind="repeat", thread=thread, key=key, number=number, fence=row.fence, version=row.version, tern=stored
        )
    if row.holds(request.now, request.holder):
        return replace(busy(connection, request, row, number), tern=stored)
    return take(connection, request, row, number, (), resumed=True)


def take(
    connection: sqlite3.Connection,
    request: Admission | Claim | Resumption,
    row: threads.ThreadRow,
    number: int,
    closed: tuple[int, ...],
    *,
    resumed: bool = False,
    paused: bool = False,
) -> Admitted:
    """Give the thread to a Tern; ``paused`` = it waited for a decision, ``resumed`` = it ran before."""
    holder = encode_text(request.holder)
    fresh = row.holder != holder or resumed or bool(closed)
    known = row.version
    row.fence += fresh
    row.version += 1
    row.holder = holder
    row.lease_until = _until(request)
    row.running = number
    row.resumes = row.resumes + 1 if resumed and not paused else 0
    row.stalled = row.stalled + 1 if resumed and not paused else 0
    row.stop = number if resumed and not paused and row.stop == number else 0
    threads.take(connection, row, request.now, traces=resumed)
    keep = isinstance(request, Admission) and request.known == known and not fresh
    return Admitted(
        kind="admitted",
        thread=decode_text(row.id),
        key=row.key,
        number=number,
        fence=row.fence,
        version=row.version,
        window=None if keep else reads.window(connection, row.key, number, request.window),
        resumed=resumed,
        closed=closed,
        pending=work.pending(connection, row.key) if row.owing else (),
        resumes=row.resumes,
        stalled=row.stalled,
        stop=row.stop > 0,
    )


def resumable(
    connection: sqlite3.Connection, workflow: str, now: datetime, after: int, limit: int
) -> tuple[Resumable, ...]:
    """Terns that are marked as running while nobody runs them."""
    return tuple(
        as_resumable(connection, row, row.running) for row in threads.orphaned(connection, workflow, now, after, limit)
    )


def as_resumable(connection: sqlite3.Connection, row: threads.ThreadRow, number: int) -> Resumable:
    """A Tern that somebody may go on with."""
    return Resumable(
        key=row.key,
        thread=decode_text(row.id),
        owner=decode_optional(row.owner),
        tern=terns.one(connection, row.key, number),
        idempotency_key=terns.idempotency_key(connection, row.key, number),
        resumes=row.resumes if number == row.running else 0,
    )


def claim(connection: sqlite3.Connection, request: Claim) -> Admitted:
    """Go on with a Tern that nobody runs."""
    row = threads.get(connection, request.key)
    if row.running != request.number or row.holds(request.now, ""):
        return Admitted(kind="busy", thread=decode_text(row.id), key=row.key, number=row.running)
    return take(connection, request, row, request.number, (), resumed=True)


def owing(connection: sqlite3.Connection, workflow: str, now: datetime, after: int, limit: int) -> tuple[Owing, ...]:
    """Threads that nobody has and for which memory work is left."""
    return tuple(
        Owing(key=row.key, thread=decode_text(row.id), owner=decode_optional(row.owner))
        for row in threads.owing(connection, workflow, now, after, limit)
    )


def hold(connection: sqlite3.Connection, request: MemoryClaim) -> ThreadState | None:
    """Have a thread for memory work."""
    row = threads.get(connection, request.key)
    if row.taken(request.now, request.holder):
        return None
    threads.hold(connection, row, request.holder, _until(request))
    return reads.state_of(connection, threads.get(connection, request.key), request.window)


def _until(request: Admission | Claim | Resumption | MemoryClaim) -> int:
    return to_micros(request.now) + round(request.lease_seconds * 1_000_000)
