"""Numbered SQL files that bring an SQLite file up to date, and what applies them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from agboss_memory.errors import StoreVersionError

_VERSION_TABLE = "CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)"


def scripts() -> list[tuple[int, str]]:
    """Number and text of every migration, in order."""
    found = [entry for entry in files(__name__).iterdir() if entry.name.endswith(".sql")]
    return sorted((int(entry.name[:4]), entry.read_text(encoding="utf-8")) for entry in found)


def _statements(script: str) -> Iterator[str]:
    buffer = ""
    for line in script.splitlines(keepends=True):
        buffer += line
        if sqlite3.complete_statement(buffer):
            yield buffer
            buffer = ""


def stored_version(connection: sqlite3.Connection) -> int:
    """The schema version of the file; 0 for a new one."""
    known = connection.execute(
        "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_version'"
    ).fetchone()
    if known is None:
        return 0
    row = connection.execute("SELECT max(version) FROM schema_version").fetchone()
    return row[0] or 0


def check_version(connection: sqlite3.Connection, path: Path) -> int:
    """The schema version of the file. Raises StoreVersionError when it is ahead of this release."""
    version, newest = stored_version(connection), scripts()[-1][0]
    if version > newest:
        raise StoreVersionError(
            "store.newer-schema",
            f"{path} has schema version {version}; this release knows {newest}.",
            "Use the release that wrote the file, or a newer one.",
            path=str(path),
            version=version,
            newest=newest,
        )
    return version


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Apply what is missing, in one transaction. Two processes may do this at once: the second finds it done."""
    todo = scripts()
    newest = todo[-1][0]
    if check_version(connection, path) == newest:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = check_version(connection, path)
        connection.execute(_VERSION_TABLE)
        for number, script in todo:
            if number > version:
                for statement in _statements(script):
                    connection.execute(statement)
        connection.execute("DELETE FROM schema_version")
        connection.execute("INSERT INTO schema_version VALUES (?)", (newest,))
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
