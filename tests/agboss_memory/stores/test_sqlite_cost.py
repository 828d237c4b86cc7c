"""What a Tern costs in the file: by index only, the same at Tern 50 and 5,000, and few bytes."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from sqlite_cost import Trace, fetched_rows, seed_copies, shape

from agboss_memory.messages import Block
from agboss_memory.stores import Commit, MessagePage, SqliteStore, TernPage, ThreadRef, WindowSpec
from agboss_memory.testing.store_requests import (
    admission,
    booked,
    conversation,
    ending,
    run_tern,
    run_terns,
    summary_write,
)

_READ = WindowSpec(terns=10, summaries=3)
# Work is deleted when done; blocks by state are for operators.
_READS_ALL = ("FROM work WHERE", "state IN ('due'", "EXISTS (SELECT 1 FROM work AS w WHERE w.thread_key = threads.key)")


async def _one_tern(store: SqliteStore, trace: Trace) -> tuple[list[str], list[str]]:
    """The statements of an admission that reads the window and of a commit, without compaction."""
    trace.take()
    admitted = await store.admit(admission(window=_READ, holder="two"))
    admitting = trace.take()
    await store.commit(ending(admitted, messages=conversation("hi", "hello"), usage=(booked(),)))
    return admitting, trace.take()


async def _fifty(store: SqliteStore) -> None:
    await store.open()
    for number in range(1, 51):
        planned = (Block(first=number - 1, last=number),) if number % 2 == 0 else ()
        values = {"blocks": planned}
        admitted, committed = await run_tern(store, f"q{number}", f"a{number}", commit=values, holder="two")
        for block in committed.due:
            await store.write_summary(summary_write(admitted, block.first, block.last))


async def test_m2_a_tern_costs_the_same_at_50_and_at_5000(tmp_path: Path) -> None:
    path, trace = tmp_path / "log.db", Trace()
    store = SqliteStore(path, synchronous="NORMAL", trace=trace)
    await _fifty(store)
    early = await _one_tern(store, trace)
    early_rows = [fetched_rows(path, statements) for statements in early]
    await _one_tern(store, trace)  # to an even number, where a block ends
    await store.close()
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO blocks SELECT thread_key, 52, 51, 'done', 1, '' FROM blocks LIMIT 1")
        connection.execute("UPDATE summaries SET from_seq = 51, to_seq = 52 WHERE to_seq = 50")
    connection.close()
    seed_copies(path, 5000)
    await store.open()
    late = await _one_tern(store, trace)
    assert [[shape(s) for s in statements] for statements in late] == [
        [shape(s) for s in statements] for statements in early
    ]
    assert [fetched_rows(path, statements) for statements in late] == early_rows
    assert sum(map(len, late)) <= 32
    await store.close()


async def test_a_known_window_is_not_read(tmp_path: Path) -> None:
    trace = Trace()
    store = SqliteStore(tmp_path / "log.db", synchronous="NORMAL", trace=trace)
    await store.open()
    _, committed = await run_tern(store)
    trace.take()
    await store.admit(admission(known=committed.version))
    assert len(trace.take()) <= 7
    await store.close()


async def test_every_statement_searches_by_an_index(tmp_path: Path) -> None:
    path, trace = tmp_path / "log.db", Trace()
    store = SqliteStore(path, synchronous="NORMAL", trace=trace)
    await _fifty(store)
    trace.take()
    _, committed = await run_tern(
        store, commit={"blocks": (Block(first=51, last=51),), "strategies": ("Facts",)}, idempotency_key="k", owner=None
    )
    admitted = await store.admit(admission(idempotency_key="k"))
    stored = await store.write_summary(summary_write(admitted, 51, 51))
    state = await store.thread(ThreadRef(workflow="w", thread="t"), _READ)
    await store.retire(state.key, stored.id, state.info.updated_at)
    await store.threads("w", None, "t", 10)
    await store.threads("w", "me", None, 10)
    await store.messages(state.key, MessagePage(agent="desk"))
    await store.messages(state.key, MessagePage(agent=None, tern=50))
    await store.messages(state.key, MessagePage(agent="desk", tern=50))
    await store.terns(state.key, TernPage(newest=True, limit=3))
    await store.blocks(state.key, ["due"], 10)
    await store.conversation(state.key, "desk", 2)
    await store.message(state.key, "desk", 2)
    await store.compress_result(state.key, "desk", 2, "stub", 1)
    await store.write_counts(state.key, "desk", {1: 2}, "x")
    own = replace(summary_write(admitted, 1, 2).summary, agent="desk", kind="k")
    kept = await store.write_summary(replace(summary_write(admitted, 1, 2), summary=own))
    await store.retire(state.key, kept.id, state.info.updated_at)
    await store.renew("one", state.info.updated_at)
    await store.day_spend("w", "2026-01-31")
    await store.delete_thread(ThreadRef(workflow="w", thread="t"))
    ran = [s for s in trace.take() if not s.startswith(("BEGIN", "COMMIT", "--"))]
    assert committed.due
    assert len({shape(s) for s in ran}) > 15
    connection = sqlite3.connect(path)
    for statement in ran:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
        scans = [step for step in plan if step.startswith("SCAN") and step != "SCAN CONSTANT ROW"]
        assert not scans, (statement, plan)
        whole = [step for step in plan if step.endswith("USING PRIMARY KEY (thread_key=?)")]
        assert not whole or "max(" in statement or any(few in statement for few in _READS_ALL), (statement, plan)
    connection.close()
    await store.close()


async def test_m2_a_tern_takes_few_bytes(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    store = SqliteStore(path, synchronous="NORMAL")

    async def size_after(terns: int) -> int:
        await store.open()
        for number in range(terns):
            task, answer = f"{number:080d}", f"{number:0160d}"
            admitted = await store.admit(admission(task, start="ask", version="1"))
            commit: Commit = ending(
                admitted,
                answer,
                task=task,
                messages=conversation(task, answer),
                usage=(booked(model="openai:gpt-4o-mini"),),
                steps=1,
            )
            await store.commit(commit)
        await store.close()
        return path.stat().st_size

    before = await size_after(100)
    after = await size_after(600)
    assert (after - before) / 600 <= 700


@pytest.mark.parametrize("terns", [200])
async def test_b147_the_file_grows_with_the_terns_only(tmp_path: Path, terns: int) -> None:
    path = tmp_path / "log.db"
    store = SqliteStore(path, synchronous="NORMAL")
    sizes: list[int] = []
    for _ in range(2):
        await store.open()
        await run_terns(store, terns, window=WindowSpec(terns=100))
        await store.close()
        sizes.append(path.stat().st_size)
    assert sizes[1] < 2 * sizes[0]
