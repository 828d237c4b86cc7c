"""Statements on recorded views."""

from __future__ import annotations

import sqlite3

from agboss_memory.stores.text import decode_text, encode_text
from agboss_memory.stores.views import ViewRecord

WRITE = (
    "INSERT OR REPLACE INTO views (thread_key, tern_seq, agent, call, composition) "
    "SELECT key, ?2, ?3, ?4, ?5 FROM threads WHERE key = ?1"
)
OF_TERN = "SELECT agent, call, composition FROM views WHERE thread_key = ? AND tern_seq = ? ORDER BY agent, call"


def write(connection: sqlite3.Connection, key: int, views: tuple[ViewRecord, ...]) -> None:
    """Keep views; of a thread that is gone, none."""
    connection.executemany(
        WRITE, [(key, one.tern, encode_text(one.agent), one.call, encode_text(one.composition)) for one in views]
    )


def of_tern(connection: sqlite3.Connection, key: int, tern: int) -> tuple[ViewRecord, ...]:
    """The views of a Tern."""
    rows = connection.execute(OF_TERN, (key, tern))
    return tuple(
        ViewRecord(tern=tern, agent=decode_text(agent), call=call, composition=decode_text(composition))
        for agent, call, composition in rows
    )
