"""Statements on the running sums of conversations, and the writes that change them besides appending."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from agboss_memory.messages import Message
from agboss_memory.stores.copies import AgentSums
from agboss_memory.stores.text import decode_text, encode_text

BEGIN = "INSERT INTO conversations (last_seq, live_tokens, uncounted, thread_key, agent) VALUES (?, ?, ?, ?, ?)"
# Read and write apart: RETURNING costs more than both.
LAST = "SELECT last_seq FROM conversations WHERE thread_key = ? AND agent = ?"
GROW = (
    "UPDATE conversations SET last_seq = last_seq + ?, live_tokens = live_tokens + ?, uncounted = uncounted + ? "
    "WHERE thread_key = ? AND agent = ?"
)
SUMS = "SELECT last_seq, live_tokens, uncounted FROM conversations WHERE thread_key = ? AND agent = ?"
AGENTS = "SELECT agent, last_seq, live_tokens, uncounted FROM conversations WHERE thread_key = ? ORDER BY agent"
ADD = (
    "UPDATE conversations SET live_tokens = live_tokens + ?, uncounted = uncounted - ? "
    "WHERE thread_key = ? AND agent = ?"
)
COMPRESS = (
    "UPDATE messages SET compressed_content = ?, compressed_token_count = ? WHERE thread_key = ? AND agent = ? "
    "AND seq = ? AND role = 'tool' AND compressed_content IS NULL RETURNING token_count"
)
COUNTED = "SELECT token_count, compressed_token_count FROM messages WHERE thread_key = ? AND agent = ? AND seq = ?"
COUNT = "UPDATE messages SET token_count = ?, tokenizer = ? WHERE thread_key = ? AND agent = ? AND seq = ?"
# Ranges of active summaries of an agent do not overlap: the last one that begins before a message decides.
COVERED = (
    "SELECT to_seq FROM summaries INDEXED BY summaries_live WHERE thread_key = ? AND agent = ? AND agent <> '' "
    "AND from_seq <= ? AND state = 'active' ORDER BY from_seq DESC LIMIT 1"
)
LIVE_IN_RANGE = (
    "SELECT sum(coalesce(m.compressed_token_count, m.token_count, 0)) FROM messages AS m "
    "WHERE m.thread_key = ? AND m.agent = ? AND m.seq BETWEEN ? AND ? AND ifnull((SELECT s.to_seq FROM summaries AS s "
    "INDEXED BY summaries_live WHERE s.thread_key = m.thread_key AND s.agent = m.agent AND s.agent <> '' "
    "AND s.from_seq <= m.seq AND s.state = 'active' ORDER BY s.from_seq DESC LIMIT 1), 0) < m.seq"
)


def grow(connection: sqlite3.Connection, key: int, messages: Sequence[Message]) -> dict[str, tuple[int, int]]:
    """Count what is about to be appended. Gives first and last number of each agent's new messages (encoded)."""
    added: dict[str, list[int]] = {}
    for message in messages:
        sums = added.setdefault(encode_text(message.agent), [0, 0, 0])
        sums[0] += 1
        sums[1] += _rendered(message)
        sums[2] += message.tokens is None
    ranges: dict[str, tuple[int, int]] = {}
    for agent, amounts in added.items():
        row = connection.execute(LAST, (key, agent)).fetchone()
        connection.execute(BEGIN if row is None else GROW, (*amounts, key, agent))
        last = 0 if row is None else row[0]
        ranges[agent] = (last + 1, last + amounts[0])
    return ranges


def _rendered(message: Message) -> int:
    if message.compressed_tokens is not None:
        return message.compressed_tokens
    return message.tokens or 0


def begin(connection: sqlite3.Connection, key: int, known: AgentSums) -> None:
    """The sums of a conversation that is written whole."""
    row = (known.last, known.live_tokens, known.uncounted, key, encode_text(known.agent))
    connection.execute(BEGIN, row)


def agents(connection: sqlite3.Connection, key: int) -> dict[str, AgentSums]:
    """The running sums of all agents of a thread, by agent (encoded)."""
    rows = connection.execute(AGENTS, (key,))
    return {
        row[0]: AgentSums(agent=decode_text(row[0]), last=row[1], live_tokens=row[2], uncounted=row[3]) for row in rows
    }


def sums(connection: sqlite3.Connection, key: int, agent: str) -> tuple[int, int, int]:
    """The newest number, the live tokens, the messages without a count."""
    row = connection.execute(SUMS, (key, encode_text(agent))).fetchone()
    return (0, 0, 0) if row is None else (row[0], row[1], row[2])


def live_in_range(connection: sqlite3.Connection, key: int, agent: str, first: int, last: int) -> int:
    """Tokens of the messages of a range that no active summary covers."""
    return connection.execute(LIVE_IN_RANGE, (key, encode_text(agent), first, last)).fetchone()[0] or 0


def add(connection: sqlite3.Connection, key: int, agent: str, tokens: int, counted: int = 0) -> None:
    """Change the running sum."""
    connection.execute(ADD, (tokens, counted, key, encode_text(agent)))


def compress(connection: sqlite3.Connection, key: int, agent: str, number: int, stub: str, tokens: int) -> bool:
    """Let a stub stand for a tool result that has none."""
    row = connection.execute(COMPRESS, (encode_text(stub), tokens, key, encode_text(agent), number)).fetchone()
    if row is None:
        return False
    if not _covered(connection, key, agent, number):
        add(connection, key, agent, tokens - (row[0] or 0))
    return True


def write_counts(connection: sqlite3.Connection, key: int, agent: str, counts: Mapping[int, int], name: str) -> None:
    """Keep counts by number."""
    tokens = counted = 0
    for number, count in counts.items():
        place = (key, encode_text(agent), number)
        row = connection.execute(COUNTED, place).fetchone()
        if row is None:
            continue
        connection.execute(COUNT, (count, encode_text(name), *place))
        counted += row[0] is None
        if row[1] is None and not _covered(connection, key, agent, number):
            tokens += count - (row[0] or 0)
    add(connection, key, agent, tokens, counted)


def _covered(connection: sqlite3.Connection, key: int, agent: str, number: int) -> bool:
    row = connection.execute(COVERED, (key, encode_text(agent), number)).fetchone()
    return row is not None and row[0] >= number
