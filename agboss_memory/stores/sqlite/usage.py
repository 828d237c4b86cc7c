"""Statements on booked calls and on the daily ledger that adds them up."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from agboss_memory.messages import UsageRecord
from agboss_memory.stores.admissions import BookedUsage
from agboss_memory.stores.contract import DaySpend
from agboss_memory.stores.spend import amounts_of, day_of, day_total
from agboss_memory.stores.sqlite.columns import from_amount, to_amount
from agboss_memory.stores.text import decode_text, encode_text

BOOK = (
    "INSERT INTO usage (thread_key, tern_seq, step_key, place, caller, model, purpose, source, input_tokens, "
    "output_tokens, cache_read_tokens, cache_write_tokens, usd) VALUES (?1, ?2, ?3, "
    "(SELECT count(*) FROM usage WHERE thread_key = ?1 AND tern_seq = ?2), ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) "
    "ON CONFLICT (thread_key, tern_seq, step_key) DO NOTHING"
)
KEYS = "SELECT step_key FROM usage WHERE thread_key = ? AND tern_seq = ?"
OF_TERNS = (
    "SELECT tern_seq, place, step_key, caller, model, purpose, source, input_tokens, output_tokens, cache_read_tokens, "
    "cache_write_tokens, usd FROM usage WHERE thread_key = ? AND tern_seq BETWEEN ? AND ?"
)
ADD_TO_DAY = (
    "INSERT INTO ledger (workflow, day, model_calls, tool_calls, steps, tokens, micro_usd) VALUES (?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (workflow, day) DO UPDATE SET model_calls = model_calls + excluded.model_calls, "
    "tool_calls = tool_calls + excluded.tool_calls, steps = steps + excluded.steps, "
    "tokens = tokens + excluded.tokens, micro_usd = micro_usd + excluded.micro_usd"
)
DAY = "SELECT model_calls, tool_calls, steps, tokens, micro_usd FROM ledger WHERE workflow = ? AND day = ?"


def _row(item: BookedUsage) -> tuple[Any, ...]:
    record = item.record
    return (
        encode_text(item.step_key),
        encode_text(record.caller),
        encode_text(record.model),
        record.purpose,
        record.source,
        record.input_tokens,
        record.output_tokens,
        record.cache_read_tokens,
        record.cache_write_tokens,
        to_amount(record.usd),
    )


def _booked(row: Sequence[Any]) -> BookedUsage:
    record = UsageRecord(
        caller=decode_text(row[1]),
        model=decode_text(row[2]),
        purpose=row[3],
        source=row[4],
        input_tokens=row[5],
        output_tokens=row[6],
        cache_read_tokens=row[7],
        cache_write_tokens=row[8],
        usd=from_amount(row[9]),
    )
    return BookedUsage(step_key=decode_text(row[0]), record=record)


def encode(booked: Sequence[BookedUsage]) -> str | None:
    """Bookings as the text that stands in a Tern's row."""
    return msgspec.json.encode([_row(item) for item in booked]).decode() if booked else None


def decode(stored: str | None) -> list[BookedUsage]:
    """The bookings of a Tern's row; none when they cannot be read, which the check tells."""
    try:
        return [_booked(row) for row in msgspec.json.decode(stored)] if stored else []
    except (msgspec.MsgspecError, LookupError, TypeError, ArithmeticError):
        return []


def unbooked(
    connection: sqlite3.Connection,
    key: int,
    tern: int,
    offered: Sequence[BookedUsage],
    *,
    look: bool = True,
    known: Sequence[BookedUsage] = (),
) -> list[BookedUsage]:
    """Those whose step key has no row and is not ``known``, each key once. Without ``look`` there are no rows."""
    taken: set[str] = {row[0] for row in connection.execute(KEYS, (key, tern))} if look else set()
    taken.update(encode_text(item.step_key) for item in known)
    fresh: list[BookedUsage] = []
    for item in offered:
        step_key = encode_text(item.step_key)
        if step_key not in taken:
            taken.add(step_key)
            fresh.append(item)
    return fresh


def book(
    connection: sqlite3.Connection, key: int, tern: int, offered: Sequence[BookedUsage], stored: str | None
) -> list[UsageRecord]:
    """Book in rows what is neither there nor in ``stored``, the text of the Tern's row; says what that was."""
    if not offered:
        return []
    fresh = unbooked(connection, key, tern, offered, known=decode(stored))
    connection.executemany(BOOK, [(key, tern, *_row(item)) for item in fresh])
    return [item.record for item in fresh]


def of_terns(connection: sqlite3.Connection, key: int, first: int, last: int) -> dict[int, list[BookedUsage]]:
    """What was booked in rows for a range of Terns, by number, in the order of booking."""
    found = sorted(connection.execute(OF_TERNS, (key, first, last)), key=lambda row: row[:2])
    booked: dict[int, list[BookedUsage]] = {}
    for row in found:
        booked.setdefault(row[0], []).append(_booked(row[2:]))
    return booked


def add_to_day(
    connection: sqlite3.Connection,
    workflow: str,
    now: datetime,
    records: Sequence[UsageRecord],
    *,
    steps: int = 0,
    tool_calls: int = 0,
) -> None:
    """Add to what a workflow (its name encoded) spent on the day of ``now``."""
    if not (records or steps or tool_calls):
        return
    amounts = amounts_of(records, steps=steps, tool_calls=tool_calls)
    connection.execute(ADD_TO_DAY, (workflow, day_of(now), *amounts))


def day_spend(connection: sqlite3.Connection, workflow: str, day: str) -> DaySpend:
    """What a workflow spent on one day."""
    row = connection.execute(DAY, (encode_text(workflow), encode_text(day))).fetchone()
    return DaySpend() if row is None else day_total(row)
