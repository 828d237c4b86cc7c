"""A whole thread out of the file and into it. Each is one transaction."""

from __future__ import annotations

import sqlite3
from collections import defaultdict

from agboss_memory.messages import TernStatus
from agboss_memory.records import replace
from agboss_memory.stores.checks import added_up, by_agent
from agboss_memory.stores.contract import TernPage, ThreadRef
from agboss_memory.stores.copies import AgentSums, MessageCopy, TernCopy, ThreadCopy
from agboss_memory.stores.pauses import LASTING
from agboss_memory.stores.refusals import existing_key, existing_thread
from agboss_memory.stores.sqlite import (
    blocks,
    conversations,
    messages,
    reads,
    spending,
    steps,
    summaries,
    terns,
    threads,
    usage,
    work,
)
from agboss_memory.stores.sqlite.columns import from_micros, to_micros
from agboss_memory.stores.text import decode_optional, decode_text, encode_text

IMPORTED = "UPDATE threads SET last_seq = ?, imported = ?, updated_at = ?, version = 1, traces = 0 WHERE key = ?"

_ALL = 2**31 - 1


def copy(connection: sqlite3.Connection, ref: ThreadRef) -> ThreadCopy:
    """A thread as of now, without a Tern that is running; one that paused before stands as paused."""
    return copy_of(connection, threads.named(connection, ref))


def copy_of(connection: sqlite3.Connection, row: threads.ThreadRow) -> ThreadCopy:
    """The same for a row."""
    key = row.key
    kept = reads.terns_and_bookings(connection, key, TernPage(limit=_ALL))
    journal, waiting = steps.of_thread(connection, key), steps.paused(connection, key)
    if row.running and row.running not in waiting:
        kept.pop()
    keys = terns.keys(connection, key)
    return ThreadCopy(
        workflow=decode_text(row.workflow),
        thread=decode_text(row.id),
        owner=decode_optional(row.owner),
        created_at=from_micros(row.created_at),
        updated_at=from_micros(row.updated_at),
        terns=tuple(
            TernCopy(
                tern=replace(tern, usage=(), status=TernStatus.PAUSED if tern.number in waiting else tern.status),
                usage=tuple(booked),
                idempotency_key=keys.get(tern.number),
                steps=tuple(
                    step
                    for step in journal.get(tern.number, ())
                    if tern.number in waiting or step.kind in LASTING  # others are told by the check
                ),
            )
            for tern, booked in kept
        ),
        messages=tuple(
            item for agent in conversations.agents(connection, key) for item in messages.copies(connection, key, agent)
        ),
        summaries=summaries.copies(connection, key),
        blocks=blocks.every(connection, key),
        work=work.pending(connection, key),
        unbound=tuple(usage.of_terns(connection, key, 0, 0).get(0, ())),
    )


def restore(connection: sqlite3.Connection, given: ThreadCopy) -> None:
    """Write a thread that ``copy`` gave. Raises CopyError when it, or one of its idempotency keys, is there."""
    if threads.find(connection, given.workflow, given.thread) is not None:
        raise existing_thread(given)
    for item in given.terns:
        if item.idempotency_key is not None and terns.keyed(connection, given.owner, item.idempotency_key):
            raise existing_key(given, item.tern.number)
    key = threads.make(connection, given.workflow, given.thread, given.owner, given.created_at).key
    _restore_terns(connection, key, given)
    messages.restore(connection, key, given.messages, [item.tern for item in given.terns])
    for summary in given.summaries:
        summaries.restore(connection, key, summary)
    known = [item.summary for item in given.summaries]
    for agent, said_by in by_agent(given.messages).items():
        conversations.begin(connection, key, added_up(agent, said_by, known))
    for block in given.blocks:
        blocks.put(connection, key, block)
    for item in given.work:
        work.restore(connection, key, item)
    for number in {item.tern for item in given.work} | {block.last for block in given.blocks if block.state == "due"}:
        terns.memory_owed(connection, key, number)
    usage.book(connection, key, 0, given.unbound, None)
    booked = [*given.unbound, *(one for item in given.terns for one in item.usage)]
    spending.restore(connection, key, [one.record for one in booked])
    count = len(given.terns)
    connection.execute(IMPORTED, (count, count, to_micros(given.updated_at), key))


def _restore_terns(connection: sqlite3.Connection, key: int, given: ThreadCopy) -> None:
    ranges = _ranges(given.messages)
    for item in given.terns:
        said = messages.said(ranges.get(item.tern.number, {}))
        terns.restore(connection, key, given.owner, item, said)
        for step in item.steps:
            steps.write(connection, key, item.tern.number, step)


def _ranges(copies: tuple[MessageCopy, ...]) -> dict[int, dict[str, tuple[int, int]]]:
    ranges: defaultdict[int, dict[str, tuple[int, int]]] = defaultdict(dict)
    for item in copies:
        message = item.message
        if message.tern:
            agent = encode_text(message.agent)
            first, _ = ranges[message.tern].get(agent, (message.number, 0))
            ranges[message.tern][agent] = (first, message.number)
    return ranges


def sums(connection: sqlite3.Connection, key: int) -> tuple[AgentSums, ...]:
    """What is kept of the thread's conversations."""
    return tuple(conversations.agents(connection, key).values())
