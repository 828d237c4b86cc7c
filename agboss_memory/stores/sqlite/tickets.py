"""Statements on tickets: Terns that wait for their thread, first come first served over all processes."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from agboss_memory.stores.contract import Enqueue
from agboss_memory.stores.lease import lease_holds
from agboss_memory.stores.sqlite.columns import from_micros, to_micros
from agboss_memory.stores.text import decode_text, encode_text

INSERT = "INSERT INTO tickets (workflow, thread, holder, until) VALUES (?, ?, ?, ?)"
LINE = "SELECT id, holder, until FROM tickets WHERE workflow = ? AND thread = ? ORDER BY id"
DELETE = (
    "DELETE FROM tickets WHERE id = ? RETURNING "
    "(SELECT key FROM threads WHERE threads.workflow = tickets.workflow AND threads.id = tickets.thread)"
)
RENEW = "UPDATE tickets SET until = ? WHERE id = ?"


def take(connection: sqlite3.Connection, request: Enqueue) -> int:
    """A ticket at the end of the line."""
    until = to_micros(request.now) + round(request.lease_seconds * 1_000_000)
    row = (encode_text(request.workflow), encode_text(request.thread), encode_text(request.holder), until)
    return connection.execute(INSERT, row).lastrowid or 0


def ahead(connection: sqlite3.Connection, workflow: str, thread: str, now: datetime, holder: str) -> bool:
    """Whether another App has waited longer than ``holder``; within one App its own line decides.

    Tickets before that of the first one who still waits are removed.
    """
    line = connection.execute(LINE, (encode_text(workflow), encode_text(thread))).fetchall()
    for ticket, waiting, until in line:
        if lease_holds(decode_text(waiting), from_micros(until), now, ""):
            return decode_text(waiting) != holder
        give_back(connection, ticket)
    return False


def stands(connection: sqlite3.Connection, workflow: str, thread: str, ticket: int) -> bool:
    """Whether a ticket is still in the line."""
    line = connection.execute(LINE, (encode_text(workflow), encode_text(thread))).fetchall()
    return any(row[0] == ticket for row in line)


def give_back(connection: sqlite3.Connection, ticket: int) -> int:
    """Remove a ticket. The key of its thread, 0 when there is none."""
    rows = connection.execute(DELETE, (ticket,)).fetchall()
    return (rows[0][0] or 0) if rows else 0


def renew(connection: sqlite3.Connection, tickets: list[int], until: datetime) -> None:
    """Extend these tickets."""
    connection.executemany(RENEW, [(to_micros(until), ticket) for ticket in tickets])
