"""Reads a whole file and tells what cannot be. On a connection of its own that cannot write."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path

from agboss_memory.contract import utc_now
from agboss_memory.stores.admissions import BookedUsage
from agboss_memory.stores.checks import copy_findings, file_findings, file_ids, finding, sum_findings
from agboss_memory.stores.copies import Finding, ThreadCopy
from agboss_memory.stores.files import FileStore
from agboss_memory.stores.lease import MOST_AHEAD
from agboss_memory.stores.pauses import LASTING
from agboss_memory.stores.spend import amounts_of
from agboss_memory.stores.spending import Sums
from agboss_memory.stores.sqlite import copying, messages, steps, threads, usage
from agboss_memory.stores.sqlite.columns import to_micros
from agboss_memory.stores.text import decode_text

INTEGRITY = "PRAGMA integrity_check(20)"
FOREIGN = "PRAGMA foreign_key_check"
ALL_THREADS = "SELECT key FROM threads ORDER BY key"
STATE = (
    "SELECT last_seq, running, holder, lease_until, stop, imported, "
    "(SELECT group_concat(seq) FROM terns WHERE thread_key = key AND status = 'running'), "
    "(SELECT count(*) FROM terns WHERE thread_key = key) FROM threads WHERE key = ?"
)
SAID = "SELECT seq, said FROM terns WHERE thread_key = ? ORDER BY seq"
OWED = "SELECT seq FROM terns WHERE thread_key = ? AND memory_pending ORDER BY seq"
NAMED = "SELECT id FROM files WHERE thread_key = ?"
STEPS = "SELECT DISTINCT tern_seq FROM steps WHERE thread_key = ? AND kind NOT IN (?, ?)"
BROKEN = (
    "SELECT seq FROM terns WHERE thread_key = ? AND NOT (json_valid(iif(path = '', '[]', path)) "
    "AND json_valid(ifnull(usage, '[]')) AND json_valid(ifnull(said, '[]')) AND json_valid(ifnull(attachments, '[]')))"
)
LEDGER = "SELECT workflow, sum(model_calls), sum(tokens), sum(micro_usd) FROM ledger GROUP BY workflow"
MADE = "SELECT seq FROM sqlite_sequence WHERE name = 'threads'"
TICKETS = "SELECT workflow, thread, id, until FROM tickets ORDER BY id"

_REMAKE = "Export the thread, delete it, and import it again: sums and marks are made anew."
_TAKE_OVER = "Run the next turn of the thread: it closes what was left. If this comes back, report it."

_Spent = dict[str, Counter[str]]


def check(path: Path, contents: FileStore) -> tuple[Finding, ...]:
    """All findings of a file and of the attachments that it names."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        return tuple(_findings(connection, contents, utc_now()))


def _findings(connection: sqlite3.Connection, contents: FileStore, now: datetime) -> Iterator[Finding]:
    damage = _damage(connection)
    for text in damage:
        remedy = "Restore the file from a backup, or save what can be read with: sqlite3 FILE .recover"
        yield Finding(code="check.file-damaged", thread="", what=text, remedy=remedy)
    if damage:
        return
    for table, _, parent, _ in connection.execute(FOREIGN).fetchall():
        what = f"a row of {table} belongs to no row of {parent}"
        remedy = "Restore the file from a backup; it was written without foreign keys."
        yield Finding(code="check.orphan-row", thread="", what=what, remedy=remedy)
    spent: _Spent = {}
    for (key,) in connection.execute(ALL_THREADS).fetchall():
        yield from _thread(connection, contents, key, now, spent)
    yield from _ledger(connection, spent)
    latest = to_micros(now + MOST_AHEAD)
    for workflow, thread, ticket, until in connection.execute(TICKETS).fetchall():
        if until > latest:
            what, remedy = f"ticket {ticket} ends in the far future", "None: it counts as ended."
            yield Finding(
                code="check.ticket-end",
                thread=decode_text(thread),
                workflow=decode_text(workflow),
                what=what,
                remedy=remedy,
            )


def _damage(connection: sqlite3.Connection) -> list[str]:
    try:
        told = [row[0] for row in connection.execute(INTEGRITY).fetchall()]
    except sqlite3.DatabaseError as error:
        return [str(error)]
    return [] if told == ["ok"] else told


def _thread(
    connection: sqlite3.Connection, contents: FileStore, key: int, now: datetime, spent: _Spent
) -> Iterator[Finding]:
    row = threads.get(connection, key)
    broken = [number for (number,) in connection.execute(BROKEN, (key,))]
    what = f"the records of Terns {broken} cannot be read"
    copy = None
    try:
        copy = copying.copy_of(connection, row)
    except (ValueError, LookupError, TypeError, ArithmeticError) as error:
        what = f"its records cannot be read ({error})"
    if copy is None or broken:
        yield Finding(
            code="check.unreadable",
            thread=decode_text(row.id),
            workflow=decode_text(row.workflow),
            what=what,
            remedy="Restore the thread from a copy, or delete it.",
        )
        return
    yield from copy_findings(copy)
    yield from sum_findings(copy, copying.sums(connection, key))
    yield from _lease(connection, key, copy, now)
    yield from _marks(connection, key, copy)
    if unnamed := file_ids(copy).keys() - {decode_text(name) for (name,) in connection.execute(NAMED, (key,))}:
        what = f"{len(unnamed)} of its attachments may go with another thread that has them too"
        yield finding(copy, "check.file-unnamed", what, _REMAKE)
    yield from file_findings(copy, contents)
    left_out = row.running > len(copy.terns)
    early = usage.of_terns(connection, key, row.running, row.running).get(row.running, []) if left_out else []
    yield from _spend(copy, early, row)
    _add_up(copy, early, connection.execute(STATE, (key,)).fetchone()[5], spent)


def _lease(connection: sqlite3.Connection, key: int, copy: ThreadCopy, now: datetime) -> Iterator[Finding]:
    last, running, holder, until, stop, _, marked, count = connection.execute(STATE, (key,)).fetchone()
    if last != count:
        yield finding(copy, "check.counter", f"the counter is at {last}, there are {count} Terns", _REMAKE)
    if (marked or "0") != str(running):
        what = f"Tern {running} holds the thread, but {marked or 'none'} is marked as running"
        yield finding(copy, "check.running", what, _TAKE_OVER)
    if running and (not holder or until > to_micros(now + MOST_AHEAD)):
        fault = "ends in the far future, by a clock that was ahead: it counts as ended" if holder else "has no holder"
        yield finding(copy, "check.lease", f"the lease of Tern {running} {fault}", _TAKE_OVER)
    if stop not in (0, running) and running:
        yield finding(copy, "check.stop", f"Tern {stop} was asked to end while {running} runs", _TAKE_OVER)


def _marks(connection: sqlite3.Connection, key: int, copy: ThreadCopy) -> Iterator[Finding]:
    open_terns = {item.tern.number for item in copy.terns if not item.tern.status.finished}
    running = threads.get(connection, key).running
    for (number,) in connection.execute(STEPS, (key, *sorted(LASTING))).fetchall():
        if number not in open_terns and number != running:
            what = f"{len(steps.of_tern(connection, key, number))} steps of the finished Tern {number} are left"
            yield finding(copy, "check.step-left", what, _REMAKE)
    owing = {item.tern for item in copy.work} | {block.last for block in copy.blocks if block.state == "due"}
    marked = {number for (number,) in connection.execute(OWED, (key,))}
    if marked != owing & set(range(1, len(copy.terns) + 1)):
        what = f"Terns {sorted(marked)} are marked for memory work, {sorted(owing)} have some"
        yield finding(copy, "check.pending-mark", what, _REMAKE)
    said: dict[int, Counter[str]] = {}
    for item in copy.messages:
        if item.message.tern:
            said.setdefault(item.message.tern, Counter())[item.message.agent] += 1
    for number, stored in connection.execute(SAID, (key,)).fetchall():
        counts = {agent: last - first + 1 for agent, first, last in messages.ranges(stored)}
        if counts != said.get(number, Counter()):
            yield finding(copy, "check.said", f"Tern {number} does not know where its messages are", _REMAKE)


def _spend(copy: ThreadCopy, early: Sequence[BookedUsage], row: threads.ThreadRow) -> Iterator[Finding]:
    booked = [*early, *copy.unbound, *(item for tern in copy.terns for item in tern.usage)]
    sums = Sums()
    for item in booked:
        sums.add(item.record)
    # Files of earlier releases were added up with less exact numbers: a billionth per call.
    if row.unpriced != sums.unknown or abs(row.nano_usd - sums.nano_usd) > len(booked):
        what = f"its cost is kept as {row.nano_usd} billionths of a dollar, what is booked adds up to {sums.nano_usd}"
        yield finding(copy, "check.spend", what, _REMAKE)


def _add_up(copy: ThreadCopy, early: Sequence[BookedUsage], imported: int, spent: _Spent) -> None:
    """Add what a thread booked here; ``early`` is what its running Tern did."""
    booked = [item.record for item in early]
    booked += [item.record for tern in copy.terns if tern.tern.number > imported for item in tern.usage]
    if not imported:
        booked += [item.record for item in copy.unbound]
    calls, _, _, tokens, micro = amounts_of(booked)
    total = spent.setdefault(copy.workflow, Counter())
    total.update(model_calls=calls, tokens=tokens, micro_usd=micro, imported=imported > 0)


def _ledger(connection: sqlite3.Connection, spent: _Spent) -> Iterator[Finding]:
    stored = {decode_text(row[0]): row[1:] for row in connection.execute(LEDGER)}
    made = connection.execute(MADE).fetchone()
    whole = made is not None and made[0] == connection.execute("SELECT count(*) FROM threads").fetchone()[0]
    for workflow, total in spent.items():
        told = dict(zip(("model_calls", "tokens", "micro_usd"), stored.get(workflow, (0, 0, 0)), strict=True))
        # What deleted threads cost stays in the ledger, and so does later work on imported Terns.
        exact = whole and not total["imported"]
        if any(told[name] < total[name] or (exact and told[name] != total[name]) for name in told):
            booked = {name: total[name] for name in told}
            yield Finding(
                code="check.ledger",
                thread="",
                workflow=workflow,
                what=f"the days of the ledger add up to {told}, what is booked to {booked}",
                remedy="Limits per day may be off until tomorrow. If this comes back, report it.",
            )
