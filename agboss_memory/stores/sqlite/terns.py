"""Statements on Terns: admission row, final row, pages."""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime
from typing import Any

import msgspec

from agboss_memory.messages import Tern, TernStatus, UsageRecord
from agboss_memory.stores.contract import Admission, Commit, TernPage
from agboss_memory.stores.copies import TernCopy
from agboss_memory.stores.refusals import INTERRUPTED_CODE, INTERRUPTED_TEXT, UNREADABLE_CODE, UNREADABLE_TEXT
from agboss_memory.stores.sqlite import files, usage
from agboss_memory.stores.sqlite.columns import MOST, fitting, from_micros, to_micros
from agboss_memory.stores.text import decode_optional, decode_text, encode_optional, encode_text

CONFIG = "SELECT id FROM configs WHERE version = ? AND hash = ?"
INSERT_CONFIG = "INSERT INTO configs (version, hash) VALUES (?, ?)"
# The config is nearly always known. When it is not, the row is left out, and comes again with its id.
_BEGIN = (
    "INSERT OR IGNORE INTO terns (thread_key, seq, config_id, started_at, start, task, status, memory_pending, finish, "
    "agent, path, error, error_code, answer{columns}) VALUES (?, ?, (SELECT id FROM configs WHERE version = ? AND "
    "hash = ?), ?, ?, ?, 'running', 0, '', '', '', '', '', ''{marks})"
)
# For each None that it binds sqlite3 looks for an adapter, which costs more than the column: most rows have none of these.
INSERT = _BEGIN.format(columns="", marks="")
INSERT_MORE = _BEGIN.format(columns=", owner, idempotency_key, metadata, attachments", marks=", ?, ?, ?, ?")
_FINISH = (
    "UPDATE terns SET status = ?, finished_at = ?, finish = ?, agent = ?, path = ?, error = ?, error_code = ?, "
    "answer = ?, said = ?, usage = ?{more} WHERE thread_key = ? AND seq = ?"
)
FINISH = _FINISH.format(more=", tokens = ?, output = ?, metadata = ifnull(?, metadata)")
FINISH_SAME = _FINISH.format(more="") + " AND task = ?"
RESTORE = (
    "INSERT INTO terns (thread_key, seq, status, memory_pending, config_id, started_at, finished_at, tokens, start, "
    "finish, agent, path, error, error_code, owner, idempotency_key, task, answer, output, metadata, said, usage, "
    "attachments) "
    "VALUES (?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
BOOKED = "SELECT usage FROM terns WHERE thread_key = ? AND seq = ?"
KEY = "SELECT idempotency_key FROM terns WHERE thread_key = ? AND seq = ?"
KEYS = "SELECT seq, idempotency_key FROM terns WHERE thread_key = ? AND seq > 0 AND idempotency_key IS NOT NULL"
INTERRUPT = (
    "UPDATE terns SET status = 'cancelled', finished_at = ?, error = ?, error_code = ? WHERE thread_key = ? AND seq = ?"
)
REOPEN = "UPDATE terns SET status = 'running' WHERE thread_key = ? AND seq = ?"
TASK = "SELECT task FROM terns WHERE thread_key = ? AND seq = ?"
BY_KEY = (
    "SELECT thread_key, seq FROM terns WHERE ifnull(owner, '') = ? AND idempotency_key = ? "
    "AND idempotency_key IS NOT NULL"
)
FINISHED = (
    "SELECT count(*) FROM terns WHERE thread_key = ? AND seq BETWEEN ? AND ? AND status NOT IN ('running', 'paused')"
)
OWED = "UPDATE terns SET memory_pending = 1 WHERE thread_key = ? AND seq = ?"
SETTLED = (
    "UPDATE terns SET memory_pending = 0 WHERE thread_key = ?1 AND seq = ?2 AND memory_pending "
    "AND NOT EXISTS (SELECT 1 FROM work WHERE thread_key = ?1 AND tern_seq = ?2) "
    "AND NOT EXISTS (SELECT 1 FROM blocks WHERE thread_key = ?1 AND last = ?2 AND state = 'due')"
)
_SELECT = (
    "SELECT seq, task, answer, status, agent, start, finish, path, output, error, error_code, version, hash, "
    "started_at, finished_at, tokens, metadata, terns.usage, attachments FROM terns "
    "CROSS JOIN configs ON configs.id = config_id WHERE thread_key = ? AND "
)
ONE = _SELECT + "seq = ?"
NEWEST_FINISHED = _SELECT + "seq < ? AND status NOT IN ('running', 'paused') ORDER BY seq DESC LIMIT ?"
NEWEST = _SELECT + "seq > ? AND seq < ? ORDER BY seq DESC LIMIT ?"
OLDEST = _SELECT + "seq > ? AND seq < ? ORDER BY seq LIMIT ?"

_NOTHING_MORE = (None, None, None)
_STATUS = {str(status): status for status in TernStatus}


def _path_text(path: tuple[str, ...]) -> str:
    if not path:
        return ""
    try:
        return msgspec.json.encode(path).decode()
    except UnicodeEncodeError:  # a lone surrogate
        return json.dumps(path, separators=(",", ":"))


def _path(stored: str) -> tuple[str, ...] | None:
    """The path, None when it cannot be read: one broken row must not hide the rest of a thread."""
    try:
        return tuple(json.loads(stored)) if stored else ()
    except (ValueError, TypeError):
        return None


def _tern(row: tuple[Any, ...], records: tuple[UsageRecord, ...] = ()) -> Tern:
    path, attachments = _path(row[7]), files.from_column(row[18])
    readable = path is not None and attachments is not None
    return Tern(
        number=row[0],
        task=decode_text(row[1]),
        answer=decode_text(row[2]),
        status=_STATUS[row[3]],
        agent=decode_text(row[4]),
        start=decode_text(row[5]),
        finish=decode_text(row[6]),
        path=path or (),
        output=decode_optional(row[8]),
        error=decode_text(row[9]) or ("" if readable else UNREADABLE_TEXT),
        error_code=decode_text(row[10]) or ("" if readable else UNREADABLE_CODE),
        version=decode_text(row[11]),
        config_hash=decode_text(row[12]),
        started_at=from_micros(row[13]),
        finished_at=None if row[14] is None else from_micros(row[14]),
        tokens=row[15],
        metadata=decode_optional(row[16]),
        attachments=attachments or (),
        usage=records,
    )


def _config(connection: sqlite3.Connection, version: str, config_hash: str) -> int:
    config = (encode_text(version), encode_text(config_hash))
    row = connection.execute(CONFIG, config).fetchone()
    return row[0] if row else connection.execute(INSERT_CONFIG, config).lastrowid or 0


def begin(connection: sqlite3.Connection, key: int, number: int, request: Admission) -> None:
    """Write the admission row."""
    keyed = request.idempotency_key is not None
    row = (
        key,
        number,
        encode_text(request.version),
        encode_text(request.config_hash),
        to_micros(request.now),
        encode_text(request.start),
        encode_text(request.task),
    )
    insert = INSERT
    if keyed or request.metadata is not None or request.attachments:
        insert = INSERT_MORE
        row += (
            encode_optional(request.owner) if keyed else None,
            encode_optional(request.idempotency_key),
            encode_optional(request.metadata),
            files.to_column(request.attachments),
        )
    if not connection.execute(insert, row).rowcount:
        connection.execute(INSERT_CONFIG, row[2:4])
        connection.execute(insert.replace("OR IGNORE ", ""), row)
    files.name(connection, key, request.attachments)


def finish(connection: sqlite3.Connection, request: Commit, said: str | None, booked: str | None) -> str:
    """Write the final row. Returns the task as it was admitted, encoded."""
    tern = request.tern
    finished_at = to_micros(tern.finished_at or request.now) if tern.status.finished else None
    row = (
        str(tern.status),
        finished_at,
        encode_text(tern.finish),
        encode_text(tern.agent),
        _path_text(tern.path),
        encode_text(tern.error),
        encode_text(tern.error_code),
        encode_text(tern.answer),
        said,
        booked,
    )
    more = (tern.tokens, encode_optional(tern.output), encode_optional(tern.metadata))
    place, task = (request.key, tern.number), encode_text(tern.task)
    if more == _NOTHING_MORE and connection.execute(FINISH_SAME, (*row, *place, task)).rowcount:
        return task
    connection.execute(FINISH, (*row, *more, *place))
    return connection.execute(TASK, place).fetchone()[0]  # the log keeps what was admitted


def reopen(connection: sqlite3.Connection, key: int, number: int) -> None:
    """A paused Tern goes on."""
    connection.execute(REOPEN, (key, number))


def interrupt(connection: sqlite3.Connection, key: int, number: int, now: datetime) -> None:
    """Close a Tern whose holder is gone."""
    connection.execute(INTERRUPT, (to_micros(now), INTERRUPTED_TEXT, INTERRUPTED_CODE, key, number))


def keyed(connection: sqlite3.Connection, owner: str | None, idempotency_key: str) -> tuple[int, int] | None:
    """Thread and number of the Tern that was admitted under this key."""
    owned = "" if owner is None else encode_text(owner)
    return connection.execute(BY_KEY, (owned, encode_text(idempotency_key))).fetchone()


def all_finished(connection: sqlite3.Connection, key: int, first: int, last: int) -> bool:
    """Whether every Tern of the range is finished."""
    return connection.execute(FINISHED, (key, first, last)).fetchone()[0] == last - first + 1


def memory_owed(connection: sqlite3.Connection, key: int, number: int) -> None:
    """Note that memory work is left for a Tern."""
    connection.execute(OWED, (key, number))


def memory_settled(connection: sqlite3.Connection, key: int, number: int) -> None:
    """Note that no memory work is left for a Tern, if that is so."""
    connection.execute(SETTLED, (key, number))


def one(connection: sqlite3.Connection, key: int, number: int) -> Tern:
    """One Tern, without usage."""
    return _tern(connection.execute(ONE, (key, number)).fetchone())


def newest_finished(connection: sqlite3.Connection, key: int, before: int, limit: int) -> tuple[Tern, ...]:
    """The newest finished Terns below a number, oldest first, without usage."""
    rows = connection.execute(NEWEST_FINISHED, (key, before, fitting(limit))).fetchall()
    return tuple(_tern(row) for row in reversed(rows))


def page(connection: sqlite3.Connection, key: int, asked: TernPage) -> list[tuple[Any, ...]]:
    """Rows of a page, oldest first; ``typed`` makes Terns of them."""
    before = MOST if asked.before is None else fitting(asked.before)
    bounds = (key, fitting(asked.after), before, max(fitting(asked.limit), 0))
    if asked.newest:
        return connection.execute(NEWEST, bounds).fetchall()[::-1]
    return connection.execute(OLDEST, bounds).fetchall()


def typed(row: tuple[Any, ...], records: tuple[UsageRecord, ...] = ()) -> Tern:
    """The Tern of a row of a page."""
    return _tern(row, records)


def number_and_booked(row: tuple[Any, ...]) -> tuple[int, str | None]:
    """Of a row of a page: the Tern's number, and what its final transaction booked, encoded."""
    return row[0], row[17]


def booked(connection: sqlite3.Connection, key: int, number: int) -> str | None:
    """What the final transaction of a Tern booked, encoded."""
    row = connection.execute(BOOKED, (key, number)).fetchone()
    return None if row is None else row[0]


def idempotency_key(connection: sqlite3.Connection, key: int, number: int) -> str | None:
    """The key that a Tern was admitted with."""
    return decode_optional(connection.execute(KEY, (key, number)).fetchone()[0])


def keys(connection: sqlite3.Connection, key: int) -> dict[int, str]:
    """The idempotency keys of a thread's Terns by number."""
    return {row[0]: decode_text(row[1]) for row in connection.execute(KEYS, (key,))}


def restore(connection: sqlite3.Connection, key: int, owner: str | None, copy: TernCopy, said: str | None) -> None:
    """Write a finished or paused Tern that another store exported."""
    tern = copy.tern
    connection.execute(
        RESTORE,
        (
            key,
            tern.number,
            str(tern.status),
            _config(connection, tern.version, tern.config_hash),
            to_micros(tern.started_at),
            None if tern.finished_at is None else to_micros(tern.finished_at),
            tern.tokens,
            encode_text(tern.start),
            encode_text(tern.finish),
            encode_text(tern.agent),
            _path_text(tern.path),
            encode_text(tern.error),
            encode_text(tern.error_code),
            None if copy.idempotency_key is None else encode_optional(owner),
            encode_optional(copy.idempotency_key),
            encode_text(tern.task),
            encode_text(tern.answer),
            encode_optional(tern.output),
            encode_optional(tern.metadata),
            said,
            usage.encode(copy.usage),
            files.to_column(tern.attachments),
        ),
    )
    files.name(connection, key, tern.attachments)
