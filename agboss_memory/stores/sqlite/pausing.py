"""How a paused Tern goes on. On the connection's thread."""

from __future__ import annotations

import sqlite3

from agboss_memory.messages import TernStatus
from agboss_memory.stores.contract import Admitted, Resumable, TernPage
from agboss_memory.stores.pauses import Resumption, fresh_answers, goes_on
from agboss_memory.stores.sqlite import admissions, reads, steps, terns, threads, tickets
from agboss_memory.stores.text import decode_text


def paused(connection: sqlite3.Connection, key: int) -> tuple[Resumable, ...]:
    """Terns of a thread that wait for a decision, or went on after one and have not ended."""
    found = steps.paused(connection, key)
    if not found:
        return ()
    row = threads.get(connection, key)
    return tuple(admissions.as_resumable(connection, row, number) for number in found)


def resume(connection: sqlite3.Connection, request: Resumption) -> Admitted:
    """Go on with a paused Tern and keep the answers that came for it."""
    row, number = threads.get(connection, request.key), request.number
    tern, kept = terns.one(connection, row.key, number), steps.of_tern(connection, row.key, number)
    waits = tern.status is TernStatus.PAUSED
    fresh = fresh_answers(request, kept, finished=tern.status.finished)
    if tern.status.finished or (waits and not goes_on(request, kept, fresh)):
        (stored,) = reads.terns_with_usage(connection, row.key, TernPage(after=number - 1, before=number + 1))
        answer = Admitted(kind="repeat", thread=decode_text(row.id), key=row.key, number=number, tern=stored)
        return admissions.leave_with(connection, request, answer)
    if row.taken(request.now, request.holder):
        return admissions.busy(connection, request, row, row.running)
    workflow, thread = decode_text(row.workflow), decode_text(row.id)
    if waits and tickets.ahead(connection, workflow, thread, request.now, request.holder):
        return admissions.busy(connection, request, row, row.running)
    closed = admissions.close_left(connection, row, request.now) if row.running != number else ()
    for step in fresh:
        steps.write(connection, row.key, number, step)
    terns.reopen(connection, row.key, number)
    taken = admissions.take(connection, request, row, number, closed, resumed=True, paused=waits)
    return admissions.leave_with(connection, request, taken)
