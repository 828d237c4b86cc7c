"""Whose SQLite file it is: a store, one that nobody has put anything in, or that of another program."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from agboss_memory.errors import StoreError

APPLICATION = 0x61676273
"""SQLite's ``application_id`` of a store: ``agbs``. A file that was last migrated before there was one has 0."""

VERSIONS = "schema_version"
"""The table of the migrations that a file has had."""

# Those of sqlite_ are SQLite's own.
_MADE = (
    "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND substr(name, 1, 7) <> 'sqlite_' ORDER BY name"
)
_MARK = "PRAGMA application_id"
_OURS = frozenset({VERSIONS, "threads", "terns"})  # in every version; other programs have threads, but no Terns
_MOST_TOLD = 5


def refuse_foreign(connection: sqlite3.Connection, path: Path, newest: int) -> None:
    """Raise StoreError for the file of another program; nothing is written.

    Args:
        connection: The open file.
        path: The file, to name it.
        newest: The newest schema version of this release.
    """
    made = [name for (name,) in connection.execute(_MADE)]
    (mark,) = connection.execute(_MARK).fetchone()
    if mark == APPLICATION or set(made) >= _OURS:
        return
    if not mark and (not made or (made == [VERSIONS] and _is_begun_or_newer(connection, newest))):
        return
    raise StoreError(
        "store.foreign",
        f"{path} is the SQLite file of another program ({_told(made, mark)}), not an agboss store; nothing was written.",
        "Name another file in the store URL: agboss keeps its threads in a file of its own, which it makes.",
        path=str(path),
        tables=made,
        application_id=mark,
    )


def mark(connection: sqlite3.Connection) -> None:
    """Mark a file as a store, unless it is marked already. Part of the caller's transaction."""
    if connection.execute(_MARK).fetchone() == (0,):
        connection.execute(f"{_MARK}={APPLICATION}")


def _is_begun_or_newer(connection: sqlite3.Connection, newest: int) -> bool:
    """Whether a table of versions that stands alone is ours: empty, or ahead of what this release knows."""
    columns = [name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (VERSIONS,))]
    if columns != ["version"]:
        return False
    numbers = [number for (number,) in connection.execute("SELECT version FROM schema_version")]
    return all(isinstance(number, int) for number in numbers) and (not numbers or max(numbers) > newest)


def _told(made: list[str], mark: int) -> str:
    names = ", ".join(f"{name[:60]!r}" for name in made[:_MOST_TOLD])
    more = f" and {len(made) - _MOST_TOLD} more" if len(made) > _MOST_TOLD else ""
    return "; ".join([f"tables {names}{more}"] * bool(made) + [f"application id {mark}"] * bool(mark))
