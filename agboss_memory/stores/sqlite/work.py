"""Statements on strategy work that is still to be done after the commit."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from agboss_memory.stores.contract import PendingWork
from agboss_memory.stores.text import decode_text, encode_text

OWE = "INSERT INTO work (thread_key, tern_seq, strategy, attempts) VALUES (?, ?, ?, 0) ON CONFLICT DO NOTHING"
RESTORE = "INSERT INTO work (thread_key, tern_seq, strategy, attempts) VALUES (?, ?, ?, ?)"
PENDING = "SELECT tern_seq, strategy, attempts FROM work WHERE thread_key = ? ORDER BY tern_seq, strategy"
LEFT = (
    "SELECT EXISTS (SELECT 1 FROM work WHERE thread_key = ?1) OR EXISTS (SELECT 1 FROM blocks INDEXED BY blocks_unsettled "
    "WHERE thread_key = ?1 AND state IN ('open', 'due') AND state = 'due')"
)
DONE = "DELETE FROM work WHERE thread_key = ? AND tern_seq = ? AND strategy = ?"
TRIED = "UPDATE work SET attempts = ? WHERE thread_key = ? AND tern_seq = ? AND strategy = ?"


def owe(connection: sqlite3.Connection, key: int, tern: int, strategies: Iterable[str]) -> None:
    """Note that ``update_memory`` of these strategies is due for a Tern."""
    for name in strategies:
        connection.execute(OWE, (key, tern, encode_text(name)))


def pending(connection: sqlite3.Connection, key: int) -> tuple[PendingWork, ...]:
    """Work that is still to be done, oldest first."""
    rows = connection.execute(PENDING, (key,)).fetchall()
    return tuple(PendingWork(tern=row[0], strategy=decode_text(row[1]), attempts=row[2]) for row in rows)


def left(connection: sqlite3.Connection, key: int) -> bool:
    """Whether strategies or blocks of a thread are still due."""
    return bool(connection.execute(LEFT, (key,)).fetchone()[0])


def tried(connection: sqlite3.Connection, key: int, work: PendingWork, *, done: bool) -> None:
    """Note the end of one try."""
    if done:
        connection.execute(DONE, (key, work.tern, encode_text(work.strategy)))
    else:
        connection.execute(TRIED, (work.attempts + 1, key, work.tern, encode_text(work.strategy)))


def restore(connection: sqlite3.Connection, key: int, item: PendingWork) -> None:
    """Write work that another store exported."""
    connection.execute(RESTORE, (key, item.tern, encode_text(item.strategy), item.attempts))
