"""Statements on blocks of Terns that compaction works on."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from agboss_memory.messages import Block
from agboss_memory.records import replace
from agboss_memory.stores.sqlite import terns
from agboss_memory.stores.sqlite.columns import fitting
from agboss_memory.stores.text import decode_text, encode_text

_SELECT = "SELECT first, last, state, attempts, error FROM blocks WHERE thread_key = ? AND "
# INDEXED BY: left to itself the planner reads all blocks of the thread.
UNSETTLED = (
    "SELECT first, last, state, attempts, error FROM blocks INDEXED BY blocks_unsettled "
    "WHERE thread_key = ? AND state IN ('open', 'due') ORDER BY last"
)
PLAN = (
    "INSERT INTO blocks (thread_key, first, last, state, attempts, error) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (thread_key, last) DO NOTHING"
)
PUT = (
    "INSERT INTO blocks (thread_key, first, last, state, attempts, error) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (thread_key, last) DO UPDATE SET first = excluded.first, state = excluded.state, "
    "attempts = excluded.attempts, error = excluded.error"
)
ONE = _SELECT + "last = ?"
SET_DUE = "UPDATE blocks SET state = 'due' WHERE thread_key = ? AND last = ?"
TOUCHING = _SELECT + "last >= ? AND first <= ? ORDER BY last"
EVERY = "SELECT first, last, state, attempts, error FROM blocks WHERE thread_key = ? ORDER BY last"
PLANNED_TO = "SELECT max(last) FROM blocks WHERE thread_key = ?"
IN_STATES = _SELECT + "state IN (?, ?, ?, ?, ?) ORDER BY last LIMIT ?"
RETIRE = "UPDATE blocks SET state = 'retired' WHERE thread_key = ? AND last = ? AND first = ?"

_STATES = 5


def _block(row: tuple[Any, ...]) -> Block:
    return Block(first=row[0], last=row[1], state=row[2], attempts=row[3], error=decode_text(row[4]))


def _row(key: int, block: Block, state: str) -> tuple[Any, ...]:
    return key, block.first, block.last, state, block.attempts, encode_text(block.error)


def planned_to(connection: sqlite3.Connection, key: int) -> int:
    """The last Tern that belongs to a block, 0 without blocks."""
    (last,) = connection.execute(PLANNED_TO, (key,)).fetchone()
    return last or 0


def plan(connection: sqlite3.Connection, key: int, planned: Iterable[Block]) -> None:
    """Add blocks that are not there yet: due when all their Terns are finished, else open."""
    for block in planned:
        state = "due" if terns.all_finished(connection, key, block.first, block.last) else "open"
        connection.execute(PLAN, _row(key, block, state))
        if state == "due":
            terns.memory_owed(connection, key, block.last)


def complete(connection: sqlite3.Connection, key: int, number: int) -> tuple[Block, ...]:
    """Make open blocks due that a finished Tern completed; all that are due now, oldest first."""
    found: list[Block] = []
    for block in (_block(row) for row in connection.execute(UNSETTLED, (key,)).fetchall()):
        if block.state == "due":
            found.append(block)
        elif block.first <= number <= block.last and terns.all_finished(connection, key, block.first, block.last):
            connection.execute(SET_DUE, (key, block.last))
            terns.memory_owed(connection, key, block.last)
            found.append(replace(block, state="due"))
    return tuple(found)


def due(connection: sqlite3.Connection, key: int) -> tuple[Block, ...]:
    """Blocks that are due, oldest first."""
    rows = connection.execute(UNSETTLED, (key,)).fetchall()
    return tuple(_block(row) for row in rows if row[2] == "due")


def touching(connection: sqlite3.Connection, key: int, first: int, last: int) -> tuple[Block, ...]:
    """Blocks that touch a range of Terns, oldest first."""
    return tuple(_block(row) for row in connection.execute(TOUCHING, (key, first, last)))


def put(connection: sqlite3.Connection, key: int, block: Block) -> None:
    """Add or replace a block."""
    connection.execute(PUT, _row(key, block, block.state))


def done(connection: sqlite3.Connection, key: int, first: int, last: int, *, tried: bool) -> bool:
    """Mark the block of a written summary as done. Says whether that changed anything."""
    row = connection.execute(ONE, (key, last)).fetchone()
    old = Block(first=first, last=last) if row is None else _block(row)
    if old.first != first or (old.state == "done" and not tried):
        return False
    put(connection, key, Block(first=first, last=last, state="done", attempts=old.attempts + tried))
    return True


def retire(connection: sqlite3.Connection, key: int, first: int, last: int) -> None:
    """The summary of a block was undone."""
    connection.execute(RETIRE, (key, last, first))


def in_states(connection: sqlite3.Connection, key: int, states: Sequence[str], limit: int) -> tuple[Block, ...]:
    """Blocks in one of the states, oldest first."""
    wanted = sorted(set(states))[:_STATES]
    if not wanted:
        return ()
    padded = (wanted * _STATES)[:_STATES]
    return tuple(_block(row) for row in connection.execute(IN_STATES, (key, *padded, max(fitting(limit), 0))))


def every(connection: sqlite3.Connection, key: int) -> tuple[Block, ...]:
    """All blocks of a thread, oldest first."""
    return tuple(_block(row) for row in connection.execute(EVERY, (key,)))
