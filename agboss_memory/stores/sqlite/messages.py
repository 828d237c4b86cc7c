"""Statements on messages. A text that is the Tern's task or answer is stored once, with the Tern."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from agboss_memory.messages import Message, ThinkingPart, ToolCall
from agboss_memory.stores.contract import MessagePage
from agboss_memory.stores.sqlite import conversations, files
from agboss_memory.stores.sqlite.columns import from_micros, to_micros
from agboss_memory.stores.text import decode_optional, decode_text, encode_optional, encode_text

INSERT = (
    "INSERT INTO messages (thread_key, agent, seq, tern_seq, place, role, text_ref, token_count, "
    "compressed_token_count, tokenizer, created_at, tool_call_id, tool_name, content, compressed_content, extra) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_COLUMNS = (
    "SELECT m.role, CASE m.text_ref WHEN 0 THEN m.content WHEN 1 THEN t.task ELSE t.answer END, m.extra, "
    "m.tool_call_id, m.tool_name, m.seq, m.tern_seq, m.agent, m.created_at, m.token_count, m.tokenizer, "
    "m.compressed_content, m.compressed_token_count "
)
# A message outside a Tern has tern_seq 0 and its own text.
_JOIN = "LEFT JOIN terns AS t ON t.thread_key = m.thread_key AND t.seq = m.tern_seq WHERE m.thread_key = ? AND "
_SELECT = _COLUMNS + "FROM messages AS m " + _JOIN
# INDEXED BY: left to itself the planner reads the whole thread.
_SELECT_TERN = _COLUMNS + "FROM messages AS m INDEXED BY messages_by_tern " + _JOIN
CONVERSATION = _SELECT + "m.agent = ? AND m.seq < ? ORDER BY m.seq DESC LIMIT ?"
OF_TERN = _SELECT_TERN + "m.tern_seq = ? AND m.seq < ? ORDER BY m.place DESC LIMIT ?"
OF_TERN_AND_AGENT = _SELECT_TERN + "m.tern_seq = ? AND m.seq < ? AND m.agent = ? ORDER BY m.place DESC LIMIT ?"

ONE = _SELECT + "m.agent = ? AND m.seq = ?"

_NO_BOUND = 2**63 - 1
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


def append(
    connection: sqlite3.Connection,
    key: int,
    number: int,
    messages: Sequence[Message],
    *,
    task: str | None,
    answer: str | None,
) -> None:
    """Add what was said in a Tern to the conversations of the agents; ``task`` and ``answer`` are encoded.

    Outside a Tern the number is 0 and both are None.
    """
    last = conversations.grow(connection, key, messages)
    for place, message in enumerate(messages):
        agent = encode_text(message.agent)
        last[agent] += 1
        content = encode_text(message.content)
        ref = _text_ref(message.role, content, task, answer)
        files.name(connection, key, message.attachments)
        connection.execute(
            INSERT,
            (
                key,
                agent,
                last[agent],
                number,
                place,
                message.role,
                ref,
                message.tokens,
                message.compressed_tokens,
                encode_text(message.tokenizer),
                to_micros(message.created_at),
                encode_optional(message.tool_call_id),
                encode_optional(message.tool_name),
                None if ref else content,
                encode_optional(message.compressed_content),
                _extra(message),
            ),
        )


def page(connection: sqlite3.Connection, key: int, asked: MessagePage) -> tuple[Message, ...]:
    """The newest messages of a range, oldest first."""
    before = _NO_BOUND if asked.before is None else asked.before
    limit = max(asked.limit, 0)
    if asked.tern is None:
        rows = connection.execute(CONVERSATION, (key, encode_text(asked.agent or ""), before, limit))
    elif asked.agent is None:
        rows = connection.execute(OF_TERN, (key, asked.tern, before, limit))
    else:
        rows = connection.execute(OF_TERN_AND_AGENT, (key, asked.tern, before, encode_text(asked.agent), limit))
    return tuple(_message(row) for row in reversed(rows.fetchall()))


def one(connection: sqlite3.Connection, key: int, agent: str, number: int) -> Message | None:
    """One message of an agent's conversation."""
    if not 0 < number < _NO_BOUND:
        return None
    row = connection.execute(ONE, (key, encode_text(agent), number)).fetchone()
    return None if row is None else _message(row)
