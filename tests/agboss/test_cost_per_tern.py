"""The cost of a Tern does not grow with the thread: counted in statements, rows and bytes, never timed."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sqlite_cost import Trace, fetched_rows, seed_copies, shape

from agboss import (
    AnswerFinish,
    Compaction,
    Defaults,
    History,
    ModelReply,
    ModelRequest,
    TaskStart,
    agent,
    chain,
    create_app,
    workflow,
)
from agboss_memory import SqliteStore


class Parrot:
    """A model without latency."""

    async def generate(self, request: ModelRequest) -> ModelReply:
        return ModelReply(text="summary" if request.purpose == "compaction" else "an answer of the usual length")


@agent(model="ollama:parrot", prompt="Answer.")
class Talker: ...


@workflow(
    name="talk",
    flow=[chain(TaskStart, Talker, AnswerFinish)],
    defaults=Defaults(history=History(limit=4)),
    compaction=Compaction(every=2, keep=3),
)
class Talk: ...


async def play(path: Path, turns: int, trace: Trace | None = None) -> list[list[str]]:
    """Run Terns in one App over a file; gives the statements of each."""
    store = SqliteStore(path, synchronous="NORMAL", trace=trace)
    made: list[list[str]] = []
    async with create_app(Talk, store=store, models={"ollama:parrot": Parrot()}) as app:
        for _ in range(turns):
            await app.execute("What about it?", thread="t", create_thread=True)
            made.append(trace.take() if trace else [])
    return made


async def test_tern_5000_runs_the_statements_and_reads_the_rows_of_tern_50(tmp_path: Path):
    path, trace = tmp_path / "log.db", Trace()
    await play(path, 46)
    early = await play(path, 4, trace)  # turns 47 to 50: the first reads the window, the others hold it
    early_rows = [fetched_rows(path, statements) for statements in early]
    seed_copies(path, 4990)
    await play(path, 6)
    trace.take()
    late = await play(path, 4, trace)  # turns 4,997 to 5,000
    late_rows = [fetched_rows(path, statements) for statements in late]
    assert [[shape(one) for one in statements] for statements in late] == [
        [shape(one) for one in statements] for statements in early
    ]
    assert late_rows == early_rows


async def test_bytes_written_stay_within_a_tenth_over_fifty_turns(tmp_path: Path):
    sizes: list[int] = []
    path = tmp_path / "log.db"
    for _ in range(3):
        await play(path, 50)
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (pages,) = connection.execute("SELECT sum(pgsize - unused) FROM dbstat").fetchone()
        connection.close()
        sizes.append(pages)
    second, third = sizes[1] - sizes[0], sizes[2] - sizes[1]
    assert abs(third - second) <= second / 10


async def test_every_statement_of_a_run_is_an_index_search(tmp_path: Path):
    path, trace = tmp_path / "log.db", Trace()
    await play(path, 6)
    statements = {
        one
        for tern in await play(path, 4, trace)
        for one in tern
        if one.startswith(("SELECT", "UPDATE")) and "schema" not in one
    }
    connection = sqlite3.connect(path)
    plans = {one: [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {one}")] for one in statements}
    connection.close()
    scans = {one: plan for one, plan in plans.items() if any(step.startswith("SCAN") for step in plan)}
    assert scans == {}
