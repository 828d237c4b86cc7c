"""Statements on what was spent: a sum per thread, and sums per day, owner and model that outlive their threads."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime

from agboss_memory.messages import UsageRecord
from agboss_memory.stores.spend import day_of
from agboss_memory.stores.spending import SpendQuery, SpendRow, Sums, sums_by_model
from agboss_memory.stores.text import decode_text, encode_text

ADD = (
    "INSERT INTO spending (workflow, day, owner, model, calls, input_tokens, output_tokens, nano_usd, unpriced) "
    "SELECT workflow, ?2, ifnull('=' || owner, ''), ?3, ?4, ?5, ?6, ?7, ?8 FROM threads WHERE key = ?1 "
    "ON CONFLICT (workflow, day, owner, model) DO UPDATE SET calls = calls + excluded.calls, "
    "input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens, "
    "nano_usd = nano_usd + excluded.nano_usd, unpriced = unpriced + excluded.unpriced"
)
ADD_TO_THREAD = "UPDATE threads SET nano_usd = nano_usd + ?, unpriced = unpriced + ? WHERE key = ?"
_SUMS = (
    "SELECT day, model, sum(calls), sum(input_tokens), sum(output_tokens), sum(nano_usd), sum(unpriced) FROM spending "
    "WHERE workflow = ?1 AND day BETWEEN ?2 AND ?3"
)
OF_ALL = f"{_SUMS} GROUP BY day, model"
OF_OWNER = f"{_SUMS} AND owner = ?4 GROUP BY day, model"


def add(connection: sqlite3.Connection, key: int, now: datetime, records: Sequence[UsageRecord]) -> None:
    """Book what a thread has just spent."""
    if not records:
        return
    day, found = day_of(now), sums_by_model(records)
    for model, sums in found.items():
        amounts = (sums.calls, sums.input_tokens, sums.output_tokens, sums.nano_usd, sums.unknown)
        connection.execute(ADD, (key, day, encode_text(model), *amounts))
    _add_to_thread(connection, key, found.values())


def restore(connection: sqlite3.Connection, key: int, records: Iterable[UsageRecord]) -> None:
    """Note what a thread had cost where it comes from. It was not spent here."""
    _add_to_thread(connection, key, sums_by_model(records).values())


def _add_to_thread(connection: sqlite3.Connection, key: int, found: Iterable[Sums]) -> None:
    nano_usd = unknown = 0
    for sums in found:
        nano_usd += sums.nano_usd
        unknown += sums.unknown
    if nano_usd or unknown:  # what is free changes nothing
        connection.execute(ADD_TO_THREAD, (nano_usd, unknown, key))


def of_days(connection: sqlite3.Connection, query: SpendQuery) -> tuple[SpendRow, ...]:
    """Sums by day and model."""
    bounds = (encode_text(query.workflow), query.first, query.last)
    if query.owner is None:
        rows = connection.execute(OF_ALL, bounds).fetchall()
    else:
        rows = connection.execute(OF_OWNER, (*bounds, f"={encode_text(query.owner)}")).fetchall()
    found = [Sums(*row[2:]).row(row[0], decode_text(row[1])) for row in rows]
    return tuple(sorted(found, key=lambda row: (row.day, row.model)))
