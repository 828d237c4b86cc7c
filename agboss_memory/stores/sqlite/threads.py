"""Statements on threads: the counter, the lease, the version."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from datetime import datetime

from agboss_memory.records import Struct
from agboss_memory.stores.contract import Admission, Interruption, ThreadInfo, ThreadRef
from agboss_memory.stores.lease import holder_alive, lease_holds
from agboss_memory.stores.refusals import deleted_thread, foreign_thread, lost_lease, unknown_thread
from agboss_memory.stores.spending import known_spend
from agboss_memory.stores.sqlite.columns import MOST, fitting, from_micros, to_micros
from agboss_memory.stores.text import decode_optional, decode_text, encode_optional, encode_text

_COLUMNS = (
    "SELECT key, workflow, id, owner, created_at, updated_at, last_seq, version, fence, holder, lease_until, running, "
    "resumes, nano_usd, unpriced, remembering, stalled, stop"
)
_SELECT = _COLUMNS + " FROM threads WHERE "
# Most threads have no line and owe nothing: told in passing, it saves two statements.
_IN_PASSING = (
    ", EXISTS (SELECT 1 FROM tickets AS t WHERE t.workflow = threads.workflow AND t.thread = threads.id)"
    ", EXISTS (SELECT 1 FROM work AS w WHERE w.thread_key = threads.key)"
)
BY_ID = _COLUMNS + _IN_PASSING + " FROM threads WHERE workflow = ? AND id = ?"
BY_KEY = _SELECT + "key = ?"
INSERT = (
    "INSERT INTO threads (workflow, id, owner, created_at, updated_at, last_seq, version, fence, holder, lease_until, "
    "running) VALUES (?, ?, ?, ?, ?, 0, 0, 0, '', 0, 0)"
)
TAKE = (
    "UPDATE threads SET last_seq = ?, version = ?, fence = ?, holder = ?, lease_until = ?, running = ?, resumes = ?, "
    "stalled = ?, traces = ?, stop = ?, remembering = 0, updated_at = ? WHERE key = ?"
)
# Read and write apart: RETURNING costs more than both.
RUNS = (
    "SELECT version, workflow, traces, stalled, EXISTS (SELECT 1 FROM blocks AS b INDEXED BY blocks_unsettled "
    "WHERE b.thread_key = threads.key AND b.state IN ('open', 'due')) "
    "FROM threads WHERE key = ? AND fence = ? AND running = ?"
)
END = "UPDATE threads SET running = 0, version = ?, updated_at = ? WHERE key = ?"
REMEMBERS = "UPDATE threads SET remembering = ? WHERE key = ?"
HOLD = (
    "UPDATE threads SET remembering = ?, fence = fence + 1, version = version + 1, holder = ?, lease_until = ? "
    "WHERE key = ?"
)
RELEASE = (
    "UPDATE threads SET remembering = 0, lease_until = 0 WHERE key = ?1 AND fence = ?2 AND ?3 IN (running, remembering)"
)
FREE = "UPDATE threads SET remembering = 0 WHERE key = ?"
TRACED = "UPDATE threads SET traces = 1, stalled = 0 WHERE key = ?"
TOUCH = "UPDATE threads SET version = version + 1 WHERE key = ?"
TOUCH_AT = "UPDATE threads SET version = version + 1, updated_at = ? WHERE key = ?"
RENEW = (
    "UPDATE threads SET lease_until = ? WHERE key = ? AND holder = ? AND (running <> 0 OR remembering <> 0) "
    "RETURNING running <> 0 AND stop = running"
)
STOP = "UPDATE threads SET stop = running WHERE key = ?"
# Read by key, page by page: an index on running Terns would cost every Tern a page.
RUNNING = _SELECT + "workflow = ? AND key > ? AND running <> 0 ORDER BY key LIMIT ?"
_LEFT = (
    "SELECT thread_key FROM work UNION SELECT thread_key FROM blocks INDEXED BY blocks_unsettled "
    "WHERE state IN ('open', 'due') AND state = 'due'"
)
OWING = _SELECT + f"workflow = ? AND key > ? AND running = 0 AND key IN ({_LEFT}) ORDER BY key LIMIT ?"
DELETE = "DELETE FROM threads WHERE key = ?"
LIST_ALL = _SELECT + "workflow = ? AND key < ? ORDER BY key DESC LIMIT ?"
LIST_OWNED = _SELECT + "workflow = ? AND owner = ? AND key < ? ORDER BY key DESC LIMIT ?"


class ThreadRow(Struct):
    """A row of ``threads``, its texts still encoded.

    Attributes:
        queued: Whether somebody may stand in its line.
        owing: Whether work of strategies may be left.
    """

    key: int
    workflow: str
    id: str
    owner: str | None
    created_at: int
    updated_at: int
    last_seq: int
    version: int
    fence: int
    holder: str
    lease_until: int
    running: int
    resumes: int = 0
    nano_usd: int = 0
    unpriced: int = 0
    remembering: int = 0
    stalled: int = 0
    stop: int = 0
    queued: int = 1
    owing: int = 1

    def taken(self, now: datetime, asker: str) -> bool:
        """Whether a Tern, or memory work after one, keeps ``asker`` out."""
        return bool(self.running or self.remembering) and self.holds(now, asker)

    def holds(self, now: datetime, asker: str) -> bool:
        """Whether its lease keeps ``asker`` out."""
        return lease_holds(decode_text(self.holder), from_micros(self.lease_until), now, asker)

    def info(self) -> ThreadInfo:
        """The thread as listed."""
        return ThreadInfo(
            id=decode_text(self.id),
            workflow=decode_text(self.workflow),
            owner=decode_optional(self.owner),
            created_at=from_micros(self.created_at),
            updated_at=from_micros(self.updated_at),
            terns=self.last_seq,
            running=self.running != 0 and holder_alive(decode_text(self.holder)),
            spend=known_spend(self.nano_usd, self.unpriced),
        )


class Running(Struct):
    """What the end of a Tern needs of its thread.

    Attributes:
        version: The thread's version.
        workflow: The workflow, encoded.
        traces: Whether the Tern left traces before its end.
        stalled: How often it stalled.
        unsettled: Whether a block is open or due.
    """

    version: int
    workflow: str
    traces: int
    stalled: int
    unsettled: int


def find(connection: sqlite3.Connection, workflow: str, thread: str) -> ThreadRow | None:
    """The thread of that id."""
    row = connection.execute(BY_ID, (encode_text(workflow), encode_text(thread))).fetchone()
    return None if row is None else ThreadRow(*row)


def get(connection: sqlite3.Connection, key: int) -> ThreadRow:
    """The thread of that key. Raises ThreadDeletedError."""
    row = connection.execute(BY_KEY, (key,)).fetchone()
    if row is None:
        raise deleted_thread(key)
    return ThreadRow(*row)


def named(connection: sqlite3.Connection, ref: ThreadRef) -> ThreadRow:
    """The thread that ``ref`` may see. Raises UnknownThreadError, ThreadOwnerError."""
    row = find(connection, ref.workflow, ref.thread)
    if row is None:
        raise unknown_thread(ref.workflow, ref.thread)
    if not ref.any_owner and row.owner != encode_optional(ref.owner):
        raise foreign_thread(ref.workflow, ref.thread)
    return row


def create(connection: sqlite3.Connection, request: Admission) -> ThreadRow:
    """A new thread without a Tern. Raises UnknownThreadError when the request does not allow it."""
    if not request.create:
        raise unknown_thread(request.workflow, request.thread)
    return make(connection, request.workflow, request.thread, request.owner, request.now)


def make(connection: sqlite3.Connection, workflow: str, thread: str, owner: str | None, moment: datetime) -> ThreadRow:
    """A new thread without a Tern."""
    now = to_micros(moment)
    workflow, thread, owner = encode_text(workflow), encode_text(thread), encode_optional(owner)
    key = connection.execute(INSERT, (workflow, thread, owner, now, now)).lastrowid or 0
    return ThreadRow(key, workflow, thread, owner, now, now, 0, 0, 0, "", 0, 0)


def take(connection: sqlite3.Connection, row: ThreadRow, now: datetime, *, traces: bool) -> None:
    """Write counter, lease and version of a row that an admission changed; ``traces`` = the Tern ran before."""
    connection.execute(
        TAKE,
        (
            row.last_seq,
            row.version,
            row.fence,
            row.holder,
            row.lease_until,
            row.running,
            row.resumes,
            row.stalled,
            int(traces),
            row.stop,
            to_micros(now),
            row.key,
        ),
    )


def running(connection: sqlite3.Connection, key: int, fence: int, number: int) -> Running:
    """The thread of a running Tern.

    Raises ThreadDeletedError or LeaseLostError unless the Tern runs under this fence.
    """
    row = connection.execute(RUNS, (key, fence, number or -1)).fetchone()
    if row is None:
        get(connection, key)
        raise lost_lease(key, number)
    return Running(*row)


def end(connection: sqlite3.Connection, key: int, version: int, now: datetime) -> None:
    """The running Tern ends with this version."""
    connection.execute(END, (version, to_micros(now), key))


def remembers(connection: sqlite3.Connection, key: int, number: int) -> None:
    """Memory work keeps the lease of the Tern that has just ended."""
    connection.execute(REMEMBERS, (number, key))


def hold(connection: sqlite3.Connection, row: ThreadRow, holder: str, until: int) -> None:
    """Memory work outside a Tern takes the thread; without a Tern in it, it is that of the first one to come."""
    connection.execute(HOLD, (max(row.last_seq, 1), encode_text(holder), until, row.key))


def free(connection: sqlite3.Connection, key: int) -> None:
    """Memory work has ended."""
    connection.execute(FREE, (key,))


def release(connection: sqlite3.Connection, key: int, fence: int, number: int) -> bool:
    """Whoever had the thread under this fence for this Tern lets go of it. Says whether that was so."""
    return connection.execute(RELEASE, (key, fence, max(number, 1))).rowcount > 0


def traced(connection: sqlite3.Connection, key: int) -> None:
    """The running Tern leaves something before its end, which is also a sign of progress."""
    connection.execute(TRACED, (key,))


def touch(connection: sqlite3.Connection, key: int, now: datetime | None = None) -> None:
    """What a window shows has changed."""
    if now is None:
        connection.execute(TOUCH, (key,))
    else:
        connection.execute(TOUCH_AT, (to_micros(now), key))


def renew(
    connection: sqlite3.Connection, held: Mapping[int, int], holder: str, until: datetime
) -> tuple[Interruption, ...]:
    """Extend the lease of those of these threads that ``holder`` has; its Terns that were asked to end or lost theirs.

    Args:
        connection: The connection.
        held: Number of the Tern that runs, or at whose memory work one is, by key of the thread.
        holder: Whose they are.
        until: Aware UTC.
    """
    asked: list[Interruption] = []
    for key, number in held.items():
        row = connection.execute(RENEW, (to_micros(until), key, encode_text(holder))).fetchone()
        if row is None or row[0]:
            asked.append(Interruption(key=key, number=number, holder=holder))
    return tuple(asked)


def interrupt(connection: sqlite3.Connection, ref: ThreadRef, unless: int) -> Interruption | None:
    """Ask the running Tern of a thread to end."""
    row = named(connection, ref)
    if row.running in (0, unless):
        return None
    connection.execute(STOP, (row.key,))
    return Interruption(key=row.key, number=row.running, holder=decode_text(row.holder))


def orphaned(connection: sqlite3.Connection, workflow: str, now: datetime, after: int, limit: int) -> list[ThreadRow]:
    """Threads whose Tern nobody runs, by key."""
    return _without_holder(connection, RUNNING, workflow, now, after, limit)


def owing(connection: sqlite3.Connection, workflow: str, now: datetime, after: int, limit: int) -> list[ThreadRow]:
    """Threads that nobody has and for which memory work is left, by key."""
    return _without_holder(connection, OWING, workflow, now, after, limit)


def _without_holder(
    connection: sqlite3.Connection, select: str, workflow: str, now: datetime, after: int, limit: int
) -> list[ThreadRow]:
    found: list[ThreadRow] = []
    after = fitting(after)
    while len(found) < limit:
        page = connection.execute(select, (encode_text(workflow), after, fitting(limit))).fetchall()
        rows = [ThreadRow(*row) for row in page]
        found += [row for row in rows if not row.taken(now, "")]
        if len(rows) < limit:
            break
        after = rows[-1].key
    return found[:limit]


def delete(connection: sqlite3.Connection, key: int) -> None:
    """Remove a thread and, by cascade, all that belongs to it."""
    connection.execute(DELETE, (key,))


def page(
    connection: sqlite3.Connection, workflow: str, owner: str | None, after: str | None, limit: int
) -> tuple[ThreadInfo, ...]:
    """Threads of a workflow, made last first."""
    before = MOST
    if after is not None:
        row = find(connection, workflow, after)
        if row is None or (owner is not None and row.owner != encode_text(owner)):
            raise unknown_thread(workflow, after)
        before = row.key
    if owner is None:
        rows = connection.execute(LIST_ALL, (encode_text(workflow), before, max(fitting(limit), 0)))
    else:
        rows = connection.execute(
            LIST_OWNED, (encode_text(workflow), encode_text(owner), before, max(fitting(limit), 0))
        )
    return tuple(ThreadRow(*row).info() for row in rows)
