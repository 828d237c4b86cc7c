"""Statements on the journal: finished calls of Terns that have not ended."""

from __future__ import annotations

import sqlite3

from agboss_memory.stores.contract import Step
from agboss_memory.stores.pauses import LASTING
from agboss_memory.stores.text import decode_text, encode_text

WRITE = (
    "INSERT INTO steps (thread_key, tern_seq, step_key, place, kind, input_hash, outcome) VALUES (?1, ?2, ?3, "
    "(SELECT count(*) FROM steps WHERE thread_key = ?1 AND tern_seq = ?2), ?4, ?5, ?6) "
    "ON CONFLICT (thread_key, tern_seq, step_key) DO NOTHING"
)
OF_TERN = "SELECT step_key, kind, input_hash, outcome FROM steps WHERE thread_key = ? AND tern_seq = ? ORDER BY place"
FORGET = "DELETE FROM steps WHERE thread_key = ? AND tern_seq = ? AND kind NOT IN (?, ?)"
OF_THREAD = (
    "SELECT tern_seq, step_key, kind, input_hash, outcome FROM steps WHERE thread_key = ? ORDER BY tern_seq, place"
)
PAUSED = (
    "SELECT DISTINCT tern_seq FROM steps JOIN terns ON terns.thread_key = steps.thread_key AND seq = tern_seq "
    "WHERE steps.thread_key = ? AND kind = 'pause' AND status IN ('running', 'paused') ORDER BY tern_seq"
)


def write(connection: sqlite3.Connection, key: int, number: int, step: Step) -> None:
    """Keep a step unless its key is there."""
    values = (step.key, step.kind, step.input_hash, step.outcome)
    connection.execute(WRITE, (key, number, *map(encode_text, values)))


def of_tern(connection: sqlite3.Connection, key: int, number: int) -> tuple[Step, ...]:
    """The steps of a Tern, in the order in which they were written."""
    rows = connection.execute(OF_TERN, (key, number))
    return tuple(
        Step(key=decode_text(a), kind=decode_text(b), input_hash=decode_text(c), outcome=decode_text(d))
        for a, b, c, d in rows
    )


def of_thread(connection: sqlite3.Connection, key: int) -> dict[int, tuple[Step, ...]]:
    """All steps of a thread by Tern, in the order in which they were written."""
    found: dict[int, tuple[Step, ...]] = {}
    for number, a, b, c, d in connection.execute(OF_THREAD, (key,)):
        step = Step(key=decode_text(a), kind=decode_text(b), input_hash=decode_text(c), outcome=decode_text(d))
        found[number] = (*found.get(number, ()), step)
    return found


def paused(connection: sqlite3.Connection, key: int) -> list[int]:
    """Terns of a thread that were asked something and have not ended."""
    return [number for (number,) in connection.execute(PAUSED, (key,))]


def forget(connection: sqlite3.Connection, key: int, number: int) -> None:
    """The Tern has ended; what it was asked and answered stays."""
    connection.execute(FORGET, (key, number, *sorted(LASTING)))
