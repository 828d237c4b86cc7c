"""Statements on booked calls and on the daily ledger that adds them up."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from agboss_memory.messages import UsageRecord
from agboss_memory.stores.contract import BookedUsage, DaySpend
from agboss_memory.stores.spend import amounts_of, day_of, day_total
from agboss_memory.stores.sqlite.columns import from_amount, to_amount
from agboss_memory.stores.text import decode_text, encode_text

BOOK = (
    "INSERT INTO usage (thread_key, tern_seq, step_key, place, caller, model, purpose, source, input_tokens, "
    "output_tokens, cache_read_tokens, cache_write_tokens, usd) VALUES (?1, ?2, ?3, "
    "(SELECT count(*) FROM usage WHERE thread_key = ?1 AND tern_seq = ?2), ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) "
    "ON CONFLICT (thread_key, tern_seq, step_key) DO NOTHING"
)
OF_TERNS = (
    "SELECT tern_seq, place, caller, model, purpose, source, input_tokens, output_tokens, cache_read_tokens, "
    "cache_write_tokens, usd FROM usage WHERE thread_key = ? AND tern_seq BETWEEN ? AND ?"
)
ADD_TO_DAY = (
    "INSERT INTO ledger (workflow, day, model_calls, tool_calls, steps, tokens, micro_usd) VALUES (?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (workflow, day) DO UPDATE SET model_calls = model_calls + excluded.model_calls, "
    "tool_calls = tool_calls + excluded.tool_calls, steps = steps + excluded.steps, "
    "tokens = tokens + excluded.tokens, micro_usd = micro_usd + excluded.micro_usd"
)
DAY = "SELECT model_calls, tool_calls, steps, tokens, micro_usd FROM ledger WHERE workflow = ? AND day = ?"


def book(connection: sqlite3.Connection, key: int, tern: int, usage: Sequence[BookedUsage]) -> list[UsageRecord]:
    """Book what is not booked yet, and say what that was."""
    fresh: list[UsageRecord] = []
    for item in usage:
        record = item.record
        cursor = connection.execute(
            BOOK,
            (
                key,
                tern,
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
            ),
        )
        if cursor.rowcount:
            fresh.append(record)
    return fresh


def of_terns(connection: sqlite3.Connection, key: int, first: int, last: int) -> dict[int, tuple[UsageRecord, ...]]:
    """What was booked for a range of Terns, by number, in the order of booking."""
    booked: dict[int, list[tuple[int, UsageRecord]]] = {}
    for row in connection.execute(OF_TERNS, (key, first, last)):
        record = UsageRecord(
            caller=decode_text(row[2]),
            model=decode_text(row[3]),
            purpose=row[4],
            source=row[5],
            input_tokens=row[6],
            output_tokens=row[7],
            cache_read_tokens=row[8],
            cache_write_tokens=row[9],
            usd=from_amount(row[10]),
        )
        booked.setdefault(row[0], []).append((row[1], record))
    return {tern: tuple(r for _, r in sorted(items, key=lambda item: item[0])) for tern, items in booked.items()}


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
