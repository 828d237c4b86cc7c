"""Numbered SQL files that bring an SQLite file up to date, and what applies them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from agboss_memory.errors import StoreVersionError
from agboss_memory.stores.sqlite.owner import mark, refuse_foreign

_VERSION_TABLE = "CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)"


@cache
def scripts() -> tuple[tuple[int, Path], ...]:
    """Number and file of every migration, in order. What is up to date reads none of them."""
    return tuple(sorted((int(file.name[:4]), file) for file in Path(__file__).parent.glob("*.sql")))


def _statements(script: str) -> Iterator[str]:
    buffer = ""
    for line in script.splitlines(keepends=True):
        buffer += line
        if sqlite3.complete_statement(buffer):
            yield buffer
            buffer = ""


def applied(connection: sqlite3.Connection) -> set[int]:
    """Numbers of the migrations that the file has had; none for a new one."""
    known = connection.execute(
        "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_version'"
    ).fetchone()
    if known is None:
        return set()
    numbers = {row[0] for row in connection.execute("SELECT version FROM schema_version") if row[0]}
    # Once the table held the newest number alone.
    return set(range(1, max(numbers) + 1)) if len(numbers) == 1 else numbers


def check_version(connection: sqlite3.Connection, path: Path) -> set[int]:
    """The migrations that the file has had; nothing is written.

    Raises:
        StoreError: It is the file of another program.
        StoreVersionError: It is ahead of this release.
    """
    newest = scripts()[-1][0]
    refuse_foreign(connection, path, newest)
    done = applied(connection)
    version = max(done, default=0)
    if version > newest:
        raise StoreVersionError(
            "store.newer-schema",
            f"{path} has schema version {version}; this release knows {newest}.",
            "Use the release that wrote the file, or a newer one.",
            path=str(path),
            version=version,
            newest=newest,
        )
    return done


def migrate(connection: sqlite3.Connection, path: Path, upto: int | None = None) -> None:
    """Apply what is missing, in one transaction. Two processes may do this at once: the second finds it done.

    Args:
        connection: The open file, in autocommit mode.
        path: The file, to name it.
        upto: The last number to apply; None = all that this release has.
    """
    todo = [(number, script) for number, script in scripts() if upto is None or number <= upto]
    numbers = {number for number, _ in todo}
    if numbers <= check_version(connection, path):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        done = check_version(connection, path)
        connection.execute(_VERSION_TABLE)
        for number, script in todo:
            if number not in done:
                for statement in _statements(script.read_text(encoding="utf-8")):
                    connection.execute(statement)
        mark(connection)
        connection.execute("DELETE FROM schema_version")
        rows = [(number,) for number in sorted(done | numbers)]
        connection.executemany("INSERT INTO schema_version VALUES (?)", rows)
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
