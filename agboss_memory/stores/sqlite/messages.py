"""Statements on messages. A text that is the Tern's task or answer is stored once, with the Tern."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from agboss_memory.messages import Message, Tern, ThinkingPart, ToolCall
from agboss_memory.stores.contract import MessagePage
from agboss_memory.stores.copies import MessageCopy
from agboss_memory.stores.sqlite import files
from agboss_memory.stores.sqlite.columns import MOST, fitting, from_micros, to_micros
from agboss_memory.stores.text import decode_optional, decode_text, encode_optional, encode_text

_PLAIN = 9
"""Columns of a row that says nothing beside a task or an answer; the others are NULL."""
PLAIN = (
    "INSERT INTO messages (thread_key, agent, seq, tern_seq, place, role, text_ref, tokenizer, created_at) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
INSERT = (
    "INSERT INTO messages (thread_key, agent, seq, tern_seq, place, role, text_ref, tokenizer, created_at, token_count, "
    "compressed_token_count, tool_call_id, tool_name, content, compressed_content, extra) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_COLUMNS = (
    "SELECT m.role, CASE m.text_ref WHEN 0 THEN m.content WHEN 1 THEN t.task ELSE t.answer END, m.extra, "
    "m.tool_call_id, m.tool_name, m.seq, m.tern_seq, m.agent, m.created_at, m.token_count, m.tokenizer, "
    "m.compressed_content, m.compressed_token_count, m.place "
)
# A message outside a Tern has tern_seq 0 and its own text.
_JOIN = "LEFT JOIN terns AS t ON t.thread_key = m.thread_key AND t.seq = m.tern_seq WHERE m.thread_key = ? AND "
_SELECT = _COLUMNS + "FROM messages AS m " + _JOIN
CONVERSATION = _SELECT + "m.agent = ? AND m.seq < ? ORDER BY m.seq DESC LIMIT ?"
RANGE = _SELECT + "m.agent = ? AND m.seq BETWEEN ? AND ?"
SAID = "SELECT said FROM terns WHERE thread_key = ? AND seq = ?"
ONE = _SELECT + "m.agent = ? AND m.seq = ?"

_TASK, _ANSWER = 1, 2


def _extra(message: Message) -> str | None:
    extra: dict[str, Any] = {}
    if message.tool_calls:
        extra["calls"] = [[call.id, call.name, call.arguments] for call in message.tool_calls]
    if message.thinking:
        extra["thinking"] = [[part.text, part.signature, part.provider, part.data] for part in message.thinking]
    if message.attachments:
        extra["files"] = files.to_values(message.attachments)
    return json.dumps(extra, separators=(",", ":")) if extra else None


def _text_ref(role: str, content: str, task: str | None, answer: str | None) -> int:
    if role == "assistant":
        return _ANSWER if content == answer else 0
    return _TASK if content == task else 0


def _message(row: tuple[Any, ...]) -> Message:
    extra: dict[str, Any] = json.loads(row[2]) if row[2] else {}
    return Message(
        role=row[0],
        content=decode_text(row[1]),
        tool_calls=tuple(ToolCall(id=c[0], name=c[1], arguments=c[2]) for c in extra.get("calls", ())),
        thinking=tuple(
            ThinkingPart(text=p[0], signature=p[1], provider=p[2], data=p[3]) for p in extra.get("thinking", ())
        ),
        attachments=files.from_values(extra.get("files", ())),
        tool_call_id=decode_optional(row[3]),
        tool_name=decode_optional(row[4]),
        number=row[5],
        tern=row[6],
        agent=decode_text(row[7]),
        created_at=from_micros(row[8]),
        tokens=row[9],
        tokenizer=decode_text(row[10]),
        compressed_content=decode_optional(row[11]),
        compressed_tokens=row[12],
    )


def said(numbers: Mapping[str, tuple[int, int]]) -> str | None:
    """Where the messages of a Tern are, as it stands in the Tern's row; agents are encoded."""
    flat = [part for agent, (first, last) in numbers.items() for part in (agent, first, last)]
    return msgspec.json.encode(flat).decode() if flat else None


def append(
    connection: sqlite3.Connection,
    key: int,
    number: int,
    messages: Sequence[Message],
    numbers: Mapping[str, tuple[int, int]],
    *,
    task: str | None,
    answer: str | None,
) -> None:
    """Add what was said in a Tern to the conversations of the agents; ``task`` and ``answer`` are encoded.

    ``numbers`` is what ``conversations.grow`` gave. Outside a Tern the number is 0 and both texts are None.
    """
    following = {agent: first for agent, (first, _) in numbers.items()}
    rows: list[tuple[Any, ...]] = []
    for place, message in enumerate(messages):
        agent = encode_text(message.agent)
        files.name(connection, key, message.attachments)
        rows.append(_row(key, agent, following[agent], number, place, message, task, answer))
        following[agent] += 1
    _write(connection, rows)


def restore(connection: sqlite3.Connection, key: int, copies: Sequence[MessageCopy], terns: Sequence[Tern]) -> None:
    """Write messages with the numbers that they have; their Terns come in order from 1."""
    rows: list[tuple[Any, ...]] = []
    for item in copies:
        message = item.message
        tern = terns[message.tern - 1] if message.tern else None
        task, answer = (encode_text(tern.task), encode_text(tern.answer)) if tern else (None, None)
        agent = encode_text(message.agent)
        files.name(connection, key, message.attachments)
        rows.append(_row(key, agent, message.number, message.tern, item.place, message, task, answer))
    _write(connection, rows)


def _write(connection: sqlite3.Connection, rows: list[tuple[Any, ...]]) -> None:
    # For each None that it binds sqlite3 looks for an adapter, which costs more than the column.
    if any(row[_PLAIN:].count(None) < len(row) - _PLAIN for row in rows):
        connection.executemany(INSERT, rows)
    else:
        connection.executemany(PLAIN, [row[:_PLAIN] for row in rows])


def _row(
    key: int, agent: str, seq: int, tern: int, place: int, message: Message, task: str | None, answer: str | None
) -> tuple[Any, ...]:
    content = encode_text(message.content)
    ref = _text_ref(message.role, content, task, answer)
    return (
        key,
        agent,
        seq,
        tern,
        place,
        message.role,
        ref,
        encode_text(message.tokenizer),
        to_micros(message.created_at),
        message.tokens,
        message.compressed_tokens,
        encode_optional(message.tool_call_id),
        encode_optional(message.tool_name),
        None if ref else content,
        encode_optional(message.compressed_content),
        _extra(message),
    )


def page(connection: sqlite3.Connection, key: int, asked: MessagePage) -> tuple[Message, ...]:
    """The newest messages of a range, oldest first."""
    before = MOST if asked.before is None else fitting(asked.before)
    limit = max(fitting(asked.limit), 0)
    if asked.tern is None:
        rows = connection.execute(CONVERSATION, (key, encode_text(asked.agent or ""), before, limit)).fetchall()[::-1]
    else:
        rows = [row for row in _of_tern(connection, key, asked.tern, asked.agent) if row[5] < before]
        rows = rows[-limit:] if limit else []
    return tuple(_message(row) for row in rows)


def _of_tern(connection: sqlite3.Connection, key: int, number: int, agent: str | None) -> list[tuple[Any, ...]]:
    stored = connection.execute(SAID, (key, fitting(number))).fetchone()
    rows: list[tuple[Any, ...]] = []
    for whose, first, last in ranges(stored[0] if stored else None):
        if agent in (None, whose):
            rows += connection.execute(RANGE, (key, encode_text(whose), first, last))
    return sorted(rows, key=lambda row: row[13])


def ranges(stored: str | None) -> list[tuple[str, int, int]]:
    """Agent, first and last number of the messages of a Tern, from its row."""
    flat: list[Any] = json.loads(stored) if stored else []
    return [(decode_text(flat[n]), flat[n + 1], flat[n + 2]) for n in range(0, len(flat), 3)]


def copies(connection: sqlite3.Connection, key: int, agent: str) -> list[MessageCopy]:
    """All messages of one agent (encoded), oldest first."""
    rows = connection.execute(RANGE + " ORDER BY m.seq", (key, agent, 1, MOST))
    return [MessageCopy(message=_message(row), place=row[13] if row[6] else 0) for row in rows]


def one(connection: sqlite3.Connection, key: int, agent: str, number: int) -> Message | None:
    """One message of an agent's conversation."""
    if not 0 < number < MOST:
        return None
    row = connection.execute(ONE, (key, encode_text(agent), number)).fetchone()
    return None if row is None else _message(row)
