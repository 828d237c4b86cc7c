"""Statements on attachments: how they become a column, and which thread names which content."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from agboss_memory.messages import AttachmentRecord
from agboss_memory.stores.text import decode_text, encode_text

NAME = "INSERT INTO files (id, thread_key) VALUES (?, ?) ON CONFLICT DO NOTHING"
ONLY_OF_THREAD = (
    "SELECT id FROM files AS f WHERE thread_key = ?1 "
    "AND NOT EXISTS (SELECT 1 FROM files AS o WHERE o.id = f.id AND o.thread_key <> ?1)"
)
NAMED = "SELECT 1 FROM files WHERE id = ? LIMIT 1"


def to_values(attachments: Iterable[AttachmentRecord]) -> list[list[Any]]:
    """Attachments as plain values."""
    return [[item.name, item.media_type, item.size, item.id] for item in attachments]


def from_values(values: Iterable[Sequence[Any]]) -> tuple[AttachmentRecord, ...]:
    """The attachments."""
    return tuple(AttachmentRecord(name=v[0], media_type=v[1], size=v[2], id=v[3]) for v in values)


def to_column(attachments: Iterable[AttachmentRecord]) -> str | None:
    """Attachments as JSON text, None for none."""
    values = to_values(attachments)
    return json.dumps(values, separators=(",", ":")) if values else None


def from_column(stored: str | None) -> tuple[AttachmentRecord, ...] | None:
    """The attachments, None when they cannot be read."""
    try:
        return from_values(json.loads(stored)) if stored else ()
    except (ValueError, TypeError, LookupError):
        return None


def name(connection: sqlite3.Connection, key: int, attachments: Iterable[AttachmentRecord]) -> None:
    """Note that a thread names these contents."""
    for item in attachments:
        connection.execute(NAME, (encode_text(item.id), key))


def only_of_thread(connection: sqlite3.Connection, key: int) -> list[str]:
    """Ids of contents that no other thread names."""
    return [decode_text(row[0]) for row in connection.execute(ONLY_OF_THREAD, (key,))]


def of_no_thread(connection: sqlite3.Connection, ids: Iterable[str]) -> list[str]:
    """Those of the ids that no thread names."""
    return [one for one in ids if connection.execute(NAMED, (encode_text(one),)).fetchone() is None]
