"""What one Tern costs in the SQLite store: two commits of a thread whose window the caller holds.

Run: ``python benchmarks/store.py [--terns N] [--synchronous NORMAL|FULL]``. Medians of batches; the raw floor, measured
in the same run, is two bare transactions that write one row each. Compare the ratio, not the milliseconds.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from agboss_memory.stores import SqliteStore
from agboss_memory.stores.sqlite import Synchronous
from agboss_memory.stores.sqlite.connection import Connection
from agboss_memory.testing.store_requests import admission, booked, conversation, ending

BATCH = 50


class Sample:
    """CPU of the whole process and wall time per Tern, in milliseconds."""

    def __init__(self) -> None:
        self.cpu: list[float] = []
        self.wall: list[float] = []

    def take(self, cpu: float, wall: float, terns: int) -> None:
        self.cpu.append((time.process_time() - cpu) / terns * 1000)
        self.wall.append((time.perf_counter() - wall) / terns * 1000)

    def __str__(self) -> str:
        return f"cpu {statistics.median(self.cpu):.3f} ms  wall {statistics.median(self.wall):.3f} ms"


async def terns(path: Path, synchronous: Synchronous, count: int, low: Floor) -> tuple[Sample, float]:
    """Terns in batches, each after a batch of the floor, so that both meet the same neighbours on the machine."""
    store = SqliteStore(path, synchronous=synchronous)
    await store.open()
    sample, known = Sample(), None
    before = 0
    for number in range(0, count + BATCH, BATCH):
        if number == BATCH:
            before = used_bytes(path)
        low.batch()
        cpu, wall = time.process_time(), time.perf_counter()
        for place in range(number, number + BATCH):
            task, answer = f"{place:080d}", f"{place:0160d}"
            admitted = await store.admit(admission(task, known=known))
            committed = await store.commit(
                ending(
                    admitted,
                    answer,
                    task=task,
                    messages=conversation(task, answer),
                    usage=(booked(model="openai:gpt-4o-mini"),),
                    steps=2,
                )
            )
            known = committed.version
        if number:
            sample.take(cpu, wall, BATCH)
    size = (used_bytes(path) - before) / count
    await store.close()
    return sample, size


def used_bytes(path: Path) -> int:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (used,) = connection.execute("SELECT sum(pgsize - unused) FROM dbstat").fetchone()
    connection.close()
    return used


class Floor:
    """Two bare transactions per Tern, each with one row."""

    def __init__(self, path: Path, synchronous: Synchronous) -> None:
        self.sample = Sample()
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute(f"PRAGMA synchronous={synchronous}")
        self._connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, body TEXT)")

    def batch(self) -> None:
        cpu, wall = time.process_time(), time.perf_counter()
        for _ in range(2 * BATCH):
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute("INSERT INTO rows (body) VALUES (?)", ("x" * 150,))
            self._connection.execute("COMMIT")
        self.sample.take(cpu, wall, BATCH)

    def close(self) -> None:
        self._connection.close()


async def hops(count: int) -> Sample:
    """Two round trips to a worker thread that do nothing."""
    sample = Sample()
    with tempfile.TemporaryDirectory() as folder:
        connection = Connection(Path(folder) / "x.db", synchronous="NORMAL", timeout=1)
        await connection.open()
        nothing: Callable[[], None] = lambda: None  # noqa: E731
        for _ in range(0, count, BATCH):
            cpu, wall = time.process_time(), time.perf_counter()
            for _ in range(2 * BATCH):
                await connection._call(nothing)
            sample.take(cpu, wall, BATCH)
        await connection.close()
    return sample


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--terns", type=int, default=2000)
    options.add_argument("--synchronous", choices=["NORMAL", "FULL"], default="NORMAL")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        low = Floor(Path(folder) / "floor.db", given.synchronous)
        sample, size = asyncio.run(terns(Path(folder) / "log.db", given.synchronous, given.terns, low))
        low.close()
    print(f"two bare transactions   {low.sample}")
    print(f"two thread hops         {asyncio.run(hops(given.terns))}")
    print(f"a Tern in the store     {sample}  {size:.0f} bytes")
    ratios = (one / other for one, other in zip(sample.cpu, low.sample.cpu[1:], strict=True))
    print(f"ratio to the floor      {statistics.median(ratios):.1f} of CPU")


if __name__ == "__main__":
    main()
