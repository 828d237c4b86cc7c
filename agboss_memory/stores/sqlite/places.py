"""Which files a connection has open, so that one that was moved, removed or replaced is noticed and nothing is lost."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

from agboss_memory.errors import StoreCorruptError, StoreError
from agboss_memory.records import Record

Place: TypeAlias = tuple[int, int] | None
"""Device and number of a file; None when there is none."""

Extent: TypeAlias = tuple[int, int]
"""Bytes of a file and when it was written last. In WAL mode only a checkpoint, or a stranger, changes either."""

CHECKPOINT = "PRAGMA wal_checkpoint(TRUNCATE)"

LEAST = 512
"""Bytes of the smallest page of SQLite. A database in WAL mode has one."""

_NOWHERE: Extent = (0, 0)


def look(path: Path) -> tuple[Place, Extent]:
    """The file that a path leads to now, and its extent."""
    try:
        found = path.stat()
    except OSError:
        return None, _NOWHERE
    return (found.st_dev, found.st_ino), (found.st_size, found.st_mtime_ns)


def place_of(path: Path) -> Place:
    """The file that a path leads to now."""
    return look(path)[0]


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


def log_size(path: Path) -> int:
    """Bytes of the log beside a database, 0 when there is none."""
    return look(_log(path))[1][0]


def _index(path: Path) -> Path:
    return Path(f"{path}-shm")


def refuse_place(path: Path) -> None:
    """Raise StoreError when a path cannot be that of a store, before SQLite is asked."""
    if path.exists():
        if not path.is_file():
            raise _no_file(path, "it is a folder" if path.is_dir() else "it is no regular file")
        size, log = path.stat().st_size, log_size(path)
        if size == 1:  # SQLite takes it for an empty one
            raise StoreCorruptError(
                "store.corrupt",
                f"{path} is not an SQLite database: it has a single byte.",
                "Name another file in the store URL, or remove this one; it was left as it is.",
                path=str(path),
            )
        if log and not size:  # SQLite would remove the log: to it the file is new
            raise StoreCorruptError(
                "store.corrupt",
                f"{path} is empty, but the log beside it has {log} bytes; both were left as they are.",
                f"Put the file back, or restore it from a backup; to begin a new one, move {_log(path)} away first.",
                path=str(path),
            )
        return
    above = next(item for item in path.parents if item.exists())
    if not above.is_dir():
        raise _no_file(path, f"{above} is no folder")


def _no_file(path: Path, what: str) -> StoreError:
    hint = "Name a file in the store URL, such as sqlite:///folder/agboss.db; its folder is made when it is missing."
    return StoreError("store.no-file", f"{path} cannot be the file of a store: {what}.", hint, path=str(path))


def refuse_cut(connection: sqlite3.Connection, path: Path, before: Extent) -> Extent:
    """The extent of a file that was written since it was last known to be whole. Call it in a transaction.

    A page of the database is in the file or in its log. A checkpoint that others hold up leaves the newest ones in the
    log, and a file that was vacuumed is smaller: neither is a fault.

    Args:
        connection: The open database.
        path: Its file.
        before: Its extent when it was last known to be whole.

    Raises:
        StoreCorruptError: Somebody cut it off.
    """
    (pages,) = connection.execute("PRAGMA page_count").fetchone()  # takes the snapshot: the log keeps its pages now
    (page,) = connection.execute("PRAGMA page_size").fetchone()
    _, extent = look(path)
    there = extent[0] // page
    # A frame of the log is a page and 24 bytes; its header is less than that.
    if pages - there > log_size(path) // (page + 24):
        raise cut_off(path, extent[0], f"of {pages} pages {pages - there} are neither in it nor in its log")
    if pages > there and extent[0] < before[0] and (fault := _fault(path)):
        raise cut_off(path, extent[0], fault)
    return extent


def _fault(path: Path) -> str:
    """What SQLite finds when it reads the whole file; the pages that the open connection remembers hide it."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        try:
            (told,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.DatabaseError as error:
            return str(error)
    return "" if told == "ok" else told


def cut_off(path: Path, size: int, what: str) -> StoreCorruptError:
    """The file lost its end, or all of it."""
    return StoreCorruptError(
        "store.corrupt",
        f"{path} was cut off to {size} bytes while it was open: {what}; nothing was stored.",
        "Stop the programs that use it and restore it from a backup; first save what can be read with: "
        "sqlite3 FILE .recover",
        path=str(path),
    )


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
