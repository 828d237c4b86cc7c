"""Which files a connection has open, so that one that was moved, removed or replaced is noticed and nothing is lost."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TypeAlias

from agboss_memory.errors import StoreError
from agboss_memory.records import Record

Place: TypeAlias = tuple[int, int] | None
"""Device and number of a file; None when there is none."""

CHECKPOINT = "PRAGMA wal_checkpoint(TRUNCATE)"


def place_of(path: Path) -> Place:
    """The file that a path leads to now."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


class Opened(Record, kw_only=True):
    """The three files of an open database.

    Attributes:
        file: The database.
        log: Its write-ahead log.
        index: The index of the log.
    """

    file: Place = None
    log: Place = None
    index: Place = None

    @classmethod
    def at(cls, path: Path) -> Opened:
        """What stands at a path and beside it."""
        return cls(file=place_of(path), log=place_of(_log(path)), index=place_of(_index(path)))


def _log(path: Path) -> Path:
    return Path(f"{path}-wal")


def _index(path: Path) -> Path:
    return Path(f"{path}-shm")


def make_whole(connection: sqlite3.Connection) -> bool:
    """Move everything that is only in the log into the open file, wherever that is now; False while others use it."""
    # By itself SQLite does not do this on close for a file that is no longer at its path.
    busy, _, _ = connection.execute(CHECKPOINT).fetchone()
    return not busy


def drop_logs(path: Path, opened: Opened) -> None:
    """Remove the log of a file that is gone and whole: SQLite would play it into the next one at the path."""
    for left, place in ((_log(path), opened.log), (_index(path), opened.index)):
        if place is not None and place_of(left) == place:
            left.unlink(missing_ok=True)


def missing(path: Path) -> StoreError:
    """Nothing is at the path."""
    return StoreError(
        "store.missing",
        f"{path} was moved or removed while it was open; nothing was stored, and no new file is made.",
        "Put the file back: the next call goes on with it, a moved one is whole. To begin a new one, restart the program.",
        path=str(path),
    )


def replaced(path: Path) -> StoreError:
    """Another file is at the path."""
    return StoreError(
        "store.replaced",
        f"{path} was moved, removed or replaced while it was open; nothing was stored.",
        "Try again: from now on the file that is there now is used. Stop the programs before you move files.",
        path=str(path),
    )
