"""Statements on summaries, which are added and retired but never changed."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from typing import Any

from agboss_memory.messages import EPOCH, Summary
from agboss_memory.records import replace
from agboss_memory.stores.copies import SummaryCopy
from agboss_memory.stores.sqlite.columns import MOST, fitting, from_amount, from_micros, to_amount, to_micros
from agboss_memory.stores.text import decode_text, encode_text

INSERT = (
    "INSERT INTO summaries (thread_key, tern_seq, id, agent, kind, from_seq, to_seq, state, tokens, model, usd, "
    "prompt_hash, created_at, body) VALUES (?, ?, ?, ?, ?, ?, ?, 'active', ?, ?, ?, ?, ?, ?)"
)
LAST_ID = "SELECT max(id) FROM summaries WHERE thread_key = ?"
SUPERSEDE = (
    "UPDATE summaries SET state = 'superseded', superseded_by = ? "
    "WHERE thread_key = ? AND agent = ? AND kind = ? AND from_seq >= ? AND to_seq <= ? AND state = 'active'"
)
SUPERSEDE_OWN = (
    "UPDATE summaries INDEXED BY summaries_live SET state = 'superseded', superseded_by = ? "
    "WHERE thread_key = ? AND agent = ? AND agent <> '' AND from_seq >= ? AND to_seq <= ? AND state = 'active'"
)
RETIRE = "UPDATE summaries SET state = 'retired' WHERE thread_key = ? AND id = ? AND state = 'active'"
_SELECT = (
    "SELECT id, agent, kind, from_seq, to_seq, state, tokens, model, usd, prompt_hash, created_at, body "
    "FROM summaries WHERE thread_key = ? AND "
)
COPIES = (
    "SELECT id, agent, kind, from_seq, to_seq, state, tokens, model, usd, prompt_hash, created_at, body, tern_seq, "
    "superseded_by FROM summaries WHERE thread_key = ? ORDER BY id"
)
RESTORE = (
    "INSERT INTO summaries (thread_key, tern_seq, id, agent, kind, from_seq, to_seq, state, superseded_by, tokens, "
    "model, usd, prompt_hash, created_at, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
ONE = _SELECT + "id = ?"
SAME = _SELECT + "agent = ? AND kind = ? AND from_seq = ? AND to_seq = ? AND state = 'active'"
IN_THE_WAY = (
    _SELECT.replace("FROM summaries", "FROM summaries INDEXED BY summaries_live")
    + "agent = ? AND agent <> '' AND state = 'active' AND from_seq <= ? AND to_seq >= ? "
    "AND NOT (from_seq >= ? AND to_seq <= ?) ORDER BY from_seq LIMIT 1"
)
LATEST_TURNS = (
    _SELECT
    + "agent = '' AND kind = 'turns' AND state = 'active' AND to_seq < ? ORDER BY from_seq DESC, to_seq DESC LIMIT ?"
)
ALL = _SELECT + "agent = ? ORDER BY from_seq, to_seq, id"
ACTIVE = _SELECT + "agent = ? AND state = 'active' ORDER BY from_seq, to_seq, id"
ACTIVE_OWN = (
    _SELECT.replace("FROM summaries", "FROM summaries INDEXED BY summaries_live")
    + "agent = ? AND agent <> '' AND state = 'active' ORDER BY from_seq, to_seq, id"
)
NEWEST = _SELECT + "agent = ? AND from_seq < ? {state}ORDER BY from_seq DESC, to_seq DESC, id DESC LIMIT ?"


def _summary(row: tuple[Any, ...]) -> Summary:
    return Summary(
        id=row[0],
        agent=decode_text(row[1]),
        kind=decode_text(row[2]),
        first=row[3],
        last=row[4],
        state=row[5],
        tokens=row[6] or None,
        model=decode_text(row[7]),
        usd=from_amount(row[8]),
        prompt_hash=decode_text(row[9]),
        created_at=from_micros(row[10]),
        text=decode_text(row[11]),
    )


def add(connection: sqlite3.Connection, key: int, tern: int, summary: Summary, now: datetime) -> tuple[Summary, bool]:
    """Store an active summary, or find the active one of the same range. Says whether it is new.

    What is done to others of the agent, see ``SummaryWrite``.
    """
    whose = (key, encode_text(summary.agent), encode_text(summary.kind), summary.first, summary.last)
    same = connection.execute(SAME, whose).fetchone()
    if same is None and summary.agent:
        ends = (summary.last, summary.first, summary.first, summary.last)
        same = connection.execute(IN_THE_WAY, (key, whose[1], *ends)).fetchone()
    if same is not None:
        return _summary(same), False
    number = (connection.execute(LAST_ID, (key,)).fetchone()[0] or 0) + 1
    if summary.agent:
        connection.execute(SUPERSEDE_OWN, (number, *whose[:2], *whose[3:]))
    else:
        connection.execute(SUPERSEDE, (number, *whose))
    made = to_micros(now if summary.created_at == EPOCH else summary.created_at)
    connection.execute(
        INSERT,
        (
            key,
            tern,
            number,
            *whose[1:],
            summary.tokens or 0,
            encode_text(summary.model),
            to_amount(summary.usd),
            encode_text(summary.prompt_hash),
            made,
            encode_text(summary.text),
        ),
    )
    return replace(summary, id=number, state="active", created_at=from_micros(made)), True


def latest_turns(connection: sqlite3.Connection, key: int, before: int, limit: int) -> tuple[Summary, ...]:
    """The latest active summaries of turn memory that end below a Tern, oldest first."""
    rows = connection.execute(LATEST_TURNS, (key, before, fitting(limit))).fetchall()
    return tuple(_summary(row) for row in reversed(rows))


def of_agent(connection: sqlite3.Connection, key: int, agent: str, *, all_states: bool) -> tuple[Summary, ...]:
    """Summaries of one agent, oldest range first."""
    active = ACTIVE_OWN if agent else ACTIVE
    rows = connection.execute(ALL if all_states else active, (key, encode_text(agent)))
    return tuple(_summary(row) for row in rows)


def newest(
    connection: sqlite3.Connection, key: int, agent: str, *, all_states: bool, before: int | None, limit: int | None
) -> tuple[Summary, ...]:
    """The newest summaries of one agent that begin before a number, oldest range first."""
    statement = NEWEST.format(state="" if all_states else "AND state = 'active' ")
    most = (MOST if before is None else fitting(before), -1 if limit is None else fitting(limit))
    rows = connection.execute(statement, (key, encode_text(agent), *most)).fetchall()
    return tuple(_summary(row) for row in reversed(rows))


def retire(connection: sqlite3.Connection, key: int, number: int) -> Summary | None:
    """Undo an active summary."""
    if not connection.execute(RETIRE, (key, number)).rowcount:
        return None
    return _summary(connection.execute(ONE, (key, number)).fetchone())


def copies(connection: sqlite3.Connection, key: int) -> tuple[SummaryCopy, ...]:
    """All summaries of a thread with their lineage, by id."""
    rows = connection.execute(COPIES, (key,))
    return tuple(SummaryCopy(summary=_summary(row), tern=row[12], superseded_by=row[13]) for row in rows)


def restore(connection: sqlite3.Connection, key: int, copy: SummaryCopy) -> None:
    """Write a summary that another store exported."""
    summary = copy.summary
    connection.execute(
        RESTORE,
        (
            key,
            copy.tern,
            summary.id,
            encode_text(summary.agent),
            encode_text(summary.kind),
            summary.first,
            summary.last,
            summary.state,
            copy.superseded_by,
            summary.tokens or 0,
            encode_text(summary.model),
            to_amount(summary.usd),
            encode_text(summary.prompt_hash),
            to_micros(summary.created_at),
            encode_text(summary.text),
        ),
    )
