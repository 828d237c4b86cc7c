"""SQLite's errors as errors of the store: which file, what happened, what to do."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from agboss_memory.errors import StoreCorruptError, StoreError, StoreLockedError
from agboss_memory.stores.sqlite.places import place_of

_Kind = tuple[type[StoreError], str, str, str]

_FAILED: _Kind = (StoreError, "store.failed", "could not be used", "Look at the cause; nothing was half written.")
_READ_ONLY: _Kind = (
    StoreError,
    "store.read-only",
    "cannot be written",
    "Give this user the right to write the file and its folder, or name another file.",
)
_KINDS: dict[int, _Kind] = {
    sqlite3.SQLITE_BUSY: (
        StoreLockedError,
        "store.locked",
        "stayed locked by another process for longer than the time-out",
        "Find what keeps it open for writing, or wait longer with ?timeout=<seconds> in the store URL.",
    ),
    sqlite3.SQLITE_CORRUPT: (
        StoreCorruptError,
        "store.corrupt",
        "is damaged",
        "Restore it from a backup, or save what can be read with: sqlite3 FILE .recover",
    ),
    sqlite3.SQLITE_NOTADB: (
        StoreCorruptError,
        "store.corrupt",
        "is not an SQLite database",
        "Name another file in the store URL, or restore this one from a backup; it was left as it is.",
    ),
    sqlite3.SQLITE_FULL: (
        StoreError,
        "store.disk-full",
        "could not grow: the disk is full",
        "Free some space; the last turn was not stored.",
    ),
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_PERM: _READ_ONLY,
}
_KINDS[sqlite3.SQLITE_LOCKED] = _KINDS[sqlite3.SQLITE_BUSY]
_KINDS[sqlite3.SQLITE_PROTOCOL] = _KINDS[sqlite3.SQLITE_BUSY]  # a stopped process holds the locks of the log file


def _unwritable(path: Path) -> bool:
    # The log is made in the folder. A missing folder is made in the first one above it that is there.
    above = [item for item in path.parents if place_of(item)][:1]
    return not all(os.access(item, os.W_OK) for item in (path, *above) if place_of(item))


def _kind_of(error: BaseException, path: Path) -> _Kind:
    if isinstance(error, sqlite3.Error):
        code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code != sqlite3.SQLITE_CANTOPEN:
            return _KINDS.get(code, _FAILED)
    return _READ_ONLY if isinstance(error, PermissionError) or _unwritable(path) else _FAILED


def store_fault(error: BaseException, path: Path) -> StoreError:
    """The error to raise for one that SQLite or the file system raised."""
    kind, code, what, hint = _kind_of(error, path)
    return kind(code, f"{path} {what} ({error}).", hint, path=str(path))
