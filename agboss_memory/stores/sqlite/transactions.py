"""The writes of the store, each one transaction over all aggregates. They run on the connection's thread."""

from __future__ import annotations

import sqlite3

from agboss_memory.contract import Conversation
from agboss_memory.messages import Summary, Tern
from agboss_memory.records import replace
from agboss_memory.stores.contract import (
    Admission,
    Admitted,
    Append,
    Appended,
    Commit,
    Committed,
    MemoryOutcome,
    MessagePage,
    SummaryWrite,
    TernPage,
    ThreadRef,
    ThreadState,
    Window,
    WindowSpec,
)
from agboss_memory.stores.files import FileStore
from agboss_memory.stores.refusals import foreign_thread, key_conflict, matches
from agboss_memory.stores.sqlite import blocks, conversations, files, messages, summaries, terns, threads, usage, work
from agboss_memory.stores.sqlite.columns import to_micros
from agboss_memory.stores.text import decode_text, encode_optional, encode_text


def window(connection: sqlite3.Connection, key: int, before: int, spec: WindowSpec) -> Window:
    """The newest part of a thread, below a number."""
    newest = terns.newest_finished(connection, key, before, spec.terns) if spec.terns > 0 else ()
    due = blocks.due(connection, key)
    if newest:
        touching = blocks.touching(connection, key, newest[0].number, newest[-1].number)
        seen = {block.last for block in touching}
        missing = [block for block in due if block.last not in seen]
        due = tuple(sorted((*missing, *touching), key=lambda block: block.last)) if missing else touching
    return Window(
        terns=newest,
        summaries=summaries.latest_turns(connection, key, spec.summaries) if spec.summaries > 0 else (),
        blocks=due,
        planned_to=blocks.planned_to(connection, key),
    )


def admit(connection: sqlite3.Connection, request: Admission) -> Admitted:
    """Start a Tern, or find the one that the idempotency key stands for."""
    if request.idempotency_key is not None:
        stored = terns.keyed(connection, request.owner, request.idempotency_key)
        if stored is not None:
            return _admit_again(connection, request, *stored)
    row = threads.find(connection, request.workflow, request.thread)
    if row is None:
        row = threads.create(connection, request)
    elif row.owner != encode_optional(request.owner):
        raise foreign_thread(request.workflow, request.thread)
    closed: tuple[int, ...] = ()
    if row.running:
        if row.holds(request.now, request.holder):
            return Admitted(kind="busy", thread=request.thread, key=row.key, number=row.running)
        closed = (row.running,)
        terns.interrupt(connection, row.key, row.running, request.now)
        blocks.complete(connection, row.key, row.running)
    row.last_seq += 1
    terns.begin(connection, row.key, row.last_seq, request)
    return _take(connection, request, row, row.last_seq, closed)


def _admit_again(connection: sqlite3.Connection, request: Admission, key: int, number: int) -> Admitted:
    row = threads.get(connection, key)
    stored = terns.one(connection, key, number, usage.of_terns(connection, key, number, number).get(number, ()))
    thread, workflow = decode_text(row.id), decode_text(row.workflow)
    if not matches(request, stored, workflow=workflow, thread=thread):
        raise key_conflict(request)
    if row.running != number:
        return Admitted(
            kind="repeat", thread=thread, key=key, number=number, fence=row.fence, version=row.version, tern=stored
        )
    if row.holds(request.now, request.holder):
        return Admitted(kind="busy", thread=thread, key=key, number=number)
    return _take(connection, request, row, number, (), resumed=True)


def _take(
    connection: sqlite3.Connection,
    request: Admission,
    row: threads.ThreadRow,
    number: int,
    closed: tuple[int, ...],
    *,
    resumed: bool = False,
) -> Admitted:
    holder = encode_text(request.holder)
    fresh = row.holder != holder or resumed or bool(closed)
    known = row.version
    row.fence += fresh
    row.version += 1
    row.holder = holder
    row.lease_until = to_micros(request.now) + round(request.lease_seconds * 1_000_000)
    row.running = number
    threads.take(connection, row, request.now)
    keep = request.known == known and not fresh
    return Admitted(
        kind="admitted",
        thread=decode_text(row.id),
        key=row.key,
        number=number,
        fence=row.fence,
        version=row.version,
        window=None if keep else window(connection, row.key, number, request.window),
        resumed=resumed,
        closed=closed,
        pending=work.pending(connection, row.key),
    )


def commit(connection: sqlite3.Connection, request: Commit) -> Committed:
    """End a Tern with all that it leaves."""
    key, number = request.key, request.tern.number
    version, workflow = threads.release(connection, key, request.fence, number, request.now)
    task = terns.finish(connection, request)
    messages.append(connection, key, number, request.messages, task=task, answer=encode_text(request.tern.answer))
    fresh = usage.book(connection, key, number, request.usage)
    usage.add_to_day(connection, workflow, request.now, fresh, steps=request.steps, tool_calls=request.tool_calls)
    blocks.plan(connection, key, request.blocks)
    work.owe(connection, key, number, request.strategies)
    due = blocks.complete(connection, key, number)
    if request.strategies or any(block.last == number for block in due):
        terns.memory_owed(connection, key, number)
    return Committed(version=version, due=due)


def append(connection: sqlite3.Connection, request: Append) -> Appended:
    """Add messages outside a Tern."""
    row = threads.find(connection, request.workflow, request.thread)
    if row is None:
        row = threads.make(connection, request.workflow, request.thread, request.owner, request.now)
    elif row.owner != encode_optional(request.owner):
        raise foreign_thread(request.workflow, request.thread)
    own = [replace(message, agent=request.agent) for message in request.messages]
    if own:
        messages.append(connection, row.key, 0, own, task=None, answer=None)
        threads.touch(connection, row.key, request.now)
    last, _, _ = conversations.sums(connection, row.key, request.agent)
    return Appended(key=row.key, first=last - len(own) + 1, last=last)


def conversation(connection: sqlite3.Connection, key: int, agent: str, limit: int) -> Conversation:
    """The newest part of one agent's conversation."""
    last, live_tokens, uncounted = conversations.sums(connection, key, agent)
    return Conversation(
        messages=messages.page(connection, key, MessagePage(agent=agent, limit=limit)),
        summaries=summaries.of_agent(connection, key, agent, all_states=False) if agent else (),
        last=last,
        live_tokens=live_tokens,
        uncounted=uncounted,
    )


def write_summary(connection: sqlite3.Connection, request: SummaryWrite) -> Summary:
    """Store a summary with its cost and settle its block."""
    row = threads.get(connection, request.key)
    summary = request.summary
    gone = (
        conversations.live_in_range(connection, row.key, summary.agent, summary.first, summary.last)
        if summary.agent
        else 0
    )
    stored, new = summaries.add(connection, row.key, request.tern, summary, request.now)
    if new:
        conversations.add(connection, row.key, summary.agent, -gone)
    fresh = usage.book(connection, row.key, request.tern, request.usage)
    usage.add_to_day(connection, row.workflow, request.now, fresh)
    changed = new
    if stored.kind == "turns" and stored.agent == "":
        changed = blocks.done(connection, row.key, stored.first, stored.last, tried=new) or new
        terns.memory_settled(connection, row.key, stored.last)
    if changed:
        threads.touch(connection, row.key)
    return stored


def settle(connection: sqlite3.Connection, request: MemoryOutcome) -> None:
    """Record the end of memory work that wrote no summary."""
    row = threads.get(connection, request.key)
    fresh = usage.book(connection, row.key, request.tern, request.usage)
    usage.add_to_day(connection, row.workflow, request.now, fresh)
    if request.work is not None:
        work.tried(connection, row.key, request.work, done=request.done)
        terns.memory_settled(connection, row.key, request.work.tern)
    if request.block is not None:
        blocks.put(connection, row.key, request.block)
        terns.memory_settled(connection, row.key, request.block.last)
        threads.touch(connection, row.key)


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


def state(connection: sqlite3.Connection, ref: ThreadRef, spec: WindowSpec) -> ThreadState:
    """A thread as it stands."""
    row = threads.named(connection, ref)
    return ThreadState(
        info=row.info(),
        key=row.key,
        fence=row.fence,
        version=row.version,
        window=window(connection, row.key, row.last_seq + 1, spec),
        pending=work.pending(connection, row.key),
    )


def terns_with_usage(connection: sqlite3.Connection, key: int, asked: TernPage) -> tuple[Tern, ...]:
    """A page of Terns, each with what was booked for it."""
    rows = terns.page(connection, key, asked)
    return terns.typed(rows, usage.of_terns(connection, key, rows[0][0], rows[-1][0])) if rows else ()
