"""Faults of the medium in the middle of work: a typed error, nothing half written, the thread usable afterwards."""

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from agboss_memory.errors import StoreError, StoreLockedError
from agboss_memory.stores import SqliteStore, StepWrite, TernPage
from agboss_memory.stores.contract import Admitted
from agboss_memory.stores.sqlite.faults import store_fault
from agboss_memory.testing.store_recovery import step
from agboss_memory.testing.store_requests import (
    WIDE,
    admission,
    booked,
    conversation,
    ending,
    later,
    numbers,
    ref,
    run_tern,
    run_terns,
)

LONG = "x" * 200_000


async def opened(path: Path, **options: float) -> SqliteStore:
    store = SqliteStore(path, synchronous="NORMAL", **options)  # pyright: ignore[reportArgumentType]
    await store.open()
    return store


async def inside(store: SqliteStore, statement: str) -> None:
    """Run a statement on the store's own connection."""
    connection = store._connection  # pyright: ignore[reportPrivateUsage]
    await connection.read(lambda opened: opened.execute(statement).fetchall())


async def usable(store: SqliteStore, number: int) -> None:
    """The thread goes on, and nothing in the file is wrong."""
    admitted, _ = await run_tern(store, "after", "all", now=later(99))
    assert admitted.number == number
    assert numbers(await store.terns(admitted.key, TernPage())) == list(range(1, number + 1))
    assert await store.check() == ()


async def fill(store: SqliteStore) -> None:
    await inside(store, "PRAGMA max_page_count=1")  # SQLite takes the present size instead


@pytest.mark.parametrize("at", ["admission", "step", "commit"])
async def test_b068_a_full_disk(tmp_path: Path, at: str) -> None:
    store = await opened(tmp_path / "log.db")
    await run_terns(store, 2)
    admitted = Admitted(kind="busy", thread="t")
    if at != "admission":
        admitted = await store.admit(admission())
    await fill(store)
    write = StepWrite(key=admitted.key, fence=admitted.fence, number=3, step=step(outcome=LONG))
    calls = {
        "admission": lambda: store.admit(admission(LONG)),
        "step": lambda: store.write_step(write),
        "commit": lambda: store.commit(ending(admitted, LONG, messages=conversation("hi", LONG), usage=(booked(),))),
    }
    with pytest.raises(StoreError) as caught:
        await calls[at]()
    assert (caught.value.code, caught.value.data["path"]) == ("store.disk-full", str(tmp_path / "log.db"))
    await inside(store, "PRAGMA max_page_count=1000000")
    if at != "admission":
        assert await store.steps(admitted.key, 3) == ()
        await store.commit(ending(admitted, LONG))
    await usable(store, 3 if at == "admission" else 4)
    await store.close()


@pytest.mark.parametrize("at", ["admission", "commit"])
async def test_b064_a_locked_file_in_the_middle_of_a_turn(tmp_path: Path, at: str) -> None:
    store = await opened(tmp_path / "log.db", timeout=0)
    await run_terns(store, 2)
    admitted = await store.admit(admission()) if at == "commit" else None
    other = sqlite3.connect(tmp_path / "log.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreLockedError):
        await (store.commit(ending(admitted)) if admitted else store.admit(admission()))
    other.execute("ROLLBACK")
    other.close()
    if admitted:
        await store.commit(ending(admitted))
    await usable(store, 4 if admitted else 3)
    await store.close()


async def test_a_file_that_becomes_read_only(tmp_path: Path) -> None:
    store = await opened(tmp_path / "log.db")
    await run_terns(store, 2)
    await inside(store, "PRAGMA query_only=ON")
    with pytest.raises(StoreError) as caught:
        await store.admit(admission())
    assert caught.value.code == "store.read-only"
    assert (await store.thread(ref(), WIDE)).info.terns == 2
    await inside(store, "PRAGMA query_only=OFF")
    await usable(store, 3)
    await store.close()


def replaced(path: Path, backup: Path) -> None:
    os.replace(backup, path)  # noqa: PTH105


def moved(path: Path, backup: Path) -> None:
    path.rename(path.with_suffix(".old"))
    backup.rename(path)


@pytest.mark.parametrize("how", [replaced, moved])
async def test_a_file_replaced_under_an_open_store(tmp_path: Path, how: Callable[[Path, Path], None]) -> None:
    path, backup = tmp_path / "log.db", tmp_path / "backup.db"
    store = await opened(path)
    await run_terns(store, 2)
    await store.close()
    shutil.copy(path, backup)
    await store.open()
    late = await store.admit(admission("third"))
    how(path, backup)
    with pytest.raises(StoreError) as caught:
        await store.commit(ending(late, task="third"))
    assert caught.value.code == "store.replaced"
    await usable(store, 3)
    await store.close()


async def test_b106_terns_keep_their_order_when_the_clock_jumps_back(tmp_path: Path) -> None:
    store = await opened(tmp_path / "log.db")
    for number, seconds in enumerate((0, -7200, -3600, 60), 1):
        admitted, _ = await run_tern(store, f"q{number}", now=later(seconds))
        assert admitted.number == number
    window = (await store.thread(ref(), WIDE)).window
    assert [tern.task for tern in window.terns] == ["q1", "q2", "q3", "q4"]
    assert await store.check() == ()
    await store.close()


async def test_b063_first_uses_at_once_make_one_thread(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.db", synchronous="NORMAL")
    await asyncio.gather(store.open(), store.open())
    answers = await asyncio.gather(*(store.admit(admission(holder=f"h{n}", queue=True)) for n in range(4)))
    assert len({answer.key for answer in answers}) == 1
    assert sorted(answer.kind for answer in answers) == ["admitted", "busy", "busy", "busy"]
    tickets = [answer.ticket for answer in answers if answer.ticket]
    assert tickets == sorted(tickets)
    await store.close()


@pytest.mark.parametrize("code", [sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL])
def test_every_way_of_being_locked_may_be_tried_again(tmp_path: Path, code: int) -> None:
    """A process that was stopped while it repairs the log file shows as ``locking protocol``."""
    error = sqlite3.OperationalError("locking protocol")
    error.sqlite_errorcode = code
    fault = store_fault(error, tmp_path / "log.db")
    assert isinstance(fault, StoreLockedError)
    assert fault.code == "store.locked"
