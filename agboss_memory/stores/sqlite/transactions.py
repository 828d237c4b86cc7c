"""The writes of the store, each one transaction over all aggregates. They run on the connection's thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from agboss_memory.messages import Summary
from agboss_memory.records import replace
from agboss_memory.stores.contract import (
    Append,
    Appended,
    BookedUsage,
    Commit,
    Committed,
    MemoryOutcome,
    StepWrite,
    SummaryWrite,
    ThreadRef,
)
from agboss_memory.stores.files import FileStore
from agboss_memory.stores.refusals import foreign_thread
from agboss_memory.stores.sqlite import (
    blocks,
    conversations,
    files,
    messages,
    spending,
    steps,
    summaries,
    terns,
    threads,
    usage,
    work,
)
from agboss_memory.stores.text import encode_optional, encode_text


def commit(connection: sqlite3.Connection, request: Commit) -> Committed:
    """End a Tern with all that it leaves."""
    key, number = request.key, request.tern.number
    thread = threads.running(connection, key, request.fence, number)
    version, traces = thread.version + 1, bool(thread.traces)
    threads.end(connection, key, version, request.now)
    ranges = conversations.grow(connection, key, request.messages)
    earlier = usage.decode(terns.booked(connection, key, number)) if traces else []  # of a Tern that had paused
    fresh = usage.unbooked(connection, key, number, request.usage, look=traces, known=earlier)
    task = terns.finish(connection, request, messages.said(ranges), usage.encode([*earlier, *fresh]))
    if request.messages:
        answer = encode_text(request.tern.answer)
        messages.append(connection, key, number, request.messages, ranges, task=task, answer=answer)
    records = [item.record for item in fresh]
    usage.add_to_day(
        connection, thread.workflow, request.now, records, steps=request.steps, tool_calls=request.tool_calls
    )
    spending.add(connection, key, request.now, records)
    if traces and request.tern.status.finished:
        steps.forget(connection, key, number)
    blocks.plan(connection, key, request.blocks)
    work.owe(connection, key, number, request.strategies)
    due = blocks.complete(connection, key, number) if thread.unsettled or request.blocks else ()
    if request.strategies:
        terns.memory_owed(connection, key, number)
    held = request.remembers == "yes" or (request.remembers == "due" and bool(request.strategies or due))
    if held:
        threads.remembers(connection, key, number)
    return Committed(version=version, due=due, held=held)


def write_step(connection: sqlite3.Connection, request: StepWrite) -> None:
    """Keep a finished step of the running Tern."""
    thread = threads.running(connection, request.key, request.fence, request.number)
    if not thread.traces or thread.stalled:
        threads.traced(connection, request.key)
    steps.write(connection, request.key, request.number, request.step)
    if request.usage:
        _book(connection, threads.get(connection, request.key), request.number, request.usage, request.now)


def append(connection: sqlite3.Connection, request: Append) -> Appended:
    """Add messages outside a Tern."""
    row = threads.find(connection, request.workflow, request.thread)
    if row is None:
        row = threads.make(connection, request.workflow, request.thread, request.owner, request.now)
    elif row.owner != encode_optional(request.owner):
        raise foreign_thread(request.workflow, request.thread)
    own = [replace(message, agent=request.agent) for message in request.messages]
    if own:
        grown = conversations.grow(connection, row.key, own)
        messages.append(connection, row.key, 0, own, grown, task=None, answer=None)
        threads.touch(connection, row.key, request.now)
    last, _, _ = conversations.sums(connection, row.key, request.agent)
    return Appended(key=row.key, first=last - len(own) + 1, last=last)


def write_summary(connection: sqlite3.Connection, request: SummaryWrite) -> Summary | None:
    """Store a summary with its cost and settle its block; None = only the cost, as somebody else has the thread."""
    row = threads.get(connection, request.key)
    if request.fence not in (None, row.fence):
        _book(connection, row, request.tern, request.usage, request.now)
        return None
    summary = request.summary
    gone = (
        conversations.live_in_range(connection, row.key, summary.agent, summary.first, summary.last)
        if summary.agent
        else 0
    )
    stored, new = summaries.add(connection, row.key, request.tern, summary, request.now)
    if new:
        conversations.add(connection, row.key, summary.agent, -gone)
    _book(connection, row, request.tern, request.usage, request.now)
    changed = new
    if stored.kind == "turns" and stored.agent == "":
        changed = blocks.done(connection, row.key, stored.first, stored.last, tried=new) or new
        terns.memory_settled(connection, row.key, stored.last)
    if changed:
        threads.touch(connection, row.key)
    return stored


def _book(
    connection: sqlite3.Connection, row: threads.ThreadRow, tern: int, offered: Sequence[BookedUsage], now: datetime
) -> None:
    if offered:
        fresh = usage.book(connection, row.key, tern, offered, terns.booked(connection, row.key, tern))
        usage.add_to_day(connection, row.workflow, now, fresh)
        spending.add(connection, row.key, now, fresh)
        if tern == row.running:
            threads.traced(connection, row.key)


def settle(connection: sqlite3.Connection, request: MemoryOutcome) -> Literal["free", "kept", "lost"]:
    """Record the end of memory work that wrote no summary.

    Returns:
        ``free`` when it was the last of the thread, ``lost`` when somebody else has the thread and there was more to
        store than the cost, else ``kept``.
    """
    row = threads.get(connection, request.key)
    _book(connection, row, request.tern, request.usage, request.now)
    if request.fence not in (None, row.fence):
        return "kept" if request.work is None and request.block is None else "lost"
    if request.work is not None:
        work.tried(connection, row.key, request.work, done=request.done)
        terns.memory_settled(connection, row.key, request.work.tern)
    if request.block is not None:
        blocks.put(connection, row.key, request.block)
        terns.memory_settled(connection, row.key, request.block.last)
        threads.touch(connection, row.key)
    ends = request.done and row.remembering == request.tern and not work.left(connection, row.key)
    if ends:
        threads.free(connection, row.key)
    return "free" if ends else "kept"


def retire(connection: sqlite3.Connection, key: int, number: int) -> Summary | None:
    """Undo a summary and retire its block."""
    retired = summaries.retire(connection, key, number)
    if retired is not None:
        if retired.kind == "turns" and retired.agent == "":
            blocks.retire(connection, key, retired.first, retired.last)
        else:
            back = conversations.live_in_range(connection, key, retired.agent, retired.first, retired.last)
            conversations.add(connection, key, retired.agent, back)
        threads.touch(connection, key)
    return retired


def delete(connection: sqlite3.Connection, ref: ThreadRef, contents: FileStore) -> None:
    """Remove a thread and the contents that only it names.

    They go before the transaction ends: nobody can name one of them meanwhile, and none is ever forgotten on the disk.
    """
    key = threads.named(connection, ref).key
    orphans = files.only_of_thread(connection, key)
    threads.delete(connection, key)
    contents.remove(orphans)


def drop_files(connection: sqlite3.Connection, ids: Sequence[str], contents: FileStore) -> None:
    """Remove contents that no thread names. In a transaction that writes, so that nobody can name one meanwhile."""
    contents.remove(files.of_no_thread(connection, ids))
