"""The file is moved, removed or replaced while a store has it open: nothing acknowledged is lost, nothing is made."""

import os
import shutil
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest

from agboss_memory.errors import StoreError, UnknownThreadError
from agboss_memory.stores import SqliteStore, StepWrite, TernPage
from agboss_memory.stores.sqlite.places import CHECKPOINT
from agboss_memory.testing.store_recovery import step
from agboss_memory.testing.store_requests import (
    WIDE,
    admission,
    ending,
    later,
    numbers,
    ref,
    run_tern,
    run_terns,
)

Call = Callable[[SqliteStore], Awaitable[object]]

CALLS: dict[str, Call] = {
    "write": lambda store: store.admit(admission("more")),
    "read": lambda store: store.thread(ref(), WIDE),
    "list": lambda store: store.threads("desk", None, None, 1),
    "check": lambda store: store.check(),
}


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[SqliteStore]:
    store = SqliteStore(tmp_path / "s.db", synchronous="NORMAL", timeout=0)
    await store.open()
    yield store
    await store.close()


async def refused(call: Awaitable[object]) -> str:
    with pytest.raises(StoreError) as caught:
        await call
    assert caught.value.hint
    assert caught.value.data["path"].endswith("s.db")
    return caught.value.code


def tasks(path: Path) -> list[str]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return [row[0] for row in connection.execute("SELECT task FROM terns WHERE status != 'running' ORDER BY seq")]


def names(folder: Path) -> set[str]:
    return {item.name for item in folder.iterdir()}


async def terns(store: SqliteStore) -> list[int]:
    return numbers(await store.terns((await store.thread(ref(), WIDE)).key, TernPage()))


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
async def test_a_moved_file_is_whole_and_nothing_takes_its_place(
    store: SqliteStore, tmp_path: Path, call: Call
) -> None:
    await run_terns(store, 3)
    kept = tasks(tmp_path / "s.db")
    (tmp_path / "s.db").rename(tmp_path / "moved.db")
    for _ in range(2):
        assert await refused(call(store)) == "store.missing"
    assert tasks(tmp_path / "moved.db") == kept
    assert len(kept) == 3
    assert names(tmp_path) - {"moved.db-wal", "moved.db-shm"} == {"moved.db"}


async def test_a_file_that_comes_back_is_gone_on_with(store: SqliteStore, tmp_path: Path) -> None:
    await run_terns(store, 2)
    late = await store.admit(admission("third"))
    (tmp_path / "s.db").rename(tmp_path / "moved.db")
    assert await refused(store.commit(ending(late, task="third"))) == "store.missing"
    (tmp_path / "moved.db").rename(tmp_path / "s.db")
    assert await terns(store) == [1, 2, 3]
    await store.commit(ending(late, task="third"))
    assert await store.check() == ()
    assert tasks(tmp_path / "s.db")[2] == "third"


async def test_another_file_that_comes_later_is_told_once(store: SqliteStore, tmp_path: Path) -> None:
    await run_terns(store, 2)
    (tmp_path / "s.db").rename(tmp_path / "moved.db")
    assert await refused(store.thread(ref(), WIDE)) == "store.missing"
    shutil.copy(tmp_path / "moved.db", tmp_path / "s.db")
    assert await refused(store.thread(ref(), WIDE)) == "store.replaced"
    assert await terns(store) == [1, 2]
    await run_tern(store, "after", now=later(99))
    assert len(tasks(tmp_path / "s.db")) == 3
    assert len(tasks(tmp_path / "moved.db")) == 2


async def test_a_file_that_was_removed_is_not_made_anew(store: SqliteStore, tmp_path: Path) -> None:
    """Only a store that is opened makes a file."""
    await run_terns(store, 2)
    (tmp_path / "s.db").unlink()
    for call in CALLS.values():
        assert await refused(call(store)) == "store.missing"
    assert names(tmp_path) == set()
    await store.close()
    await store.open()
    assert (await run_tern(store))[0].number == 1


async def test_a_folder_that_was_moved(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a" / "s.db", synchronous="NORMAL")
    await store.open()
    await run_terns(store, 2)
    (tmp_path / "a").rename(tmp_path / "b")
    assert await refused(store.thread(ref(), WIDE)) == "store.missing"
    assert names(tmp_path) == {"b"}
    (tmp_path / "b").rename(tmp_path / "a")
    assert await terns(store) == [1, 2]
    await store.close()


async def test_closing_a_store_whose_file_was_moved_makes_it_whole(store: SqliteStore, tmp_path: Path) -> None:
    await run_terns(store, 2)
    (tmp_path / "s.db").rename(tmp_path / "moved.db")
    await store.close()
    assert names(tmp_path) == {"moved.db"}
    assert len(tasks(tmp_path / "moved.db")) == 2


async def test_a_log_that_others_read_is_kept_until_they_end(store: SqliteStore, tmp_path: Path) -> None:
    await run_terns(store, 2)
    other = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
    other.execute("BEGIN")
    other.execute("SELECT count(*) FROM terns").fetchone()
    (tmp_path / "s.db").rename(tmp_path / "moved.db")
    assert await refused(store.thread(ref(), WIDE)) == "store.missing"
    assert (tmp_path / "s.db-wal").stat().st_size
    other.execute("ROLLBACK")
    assert await refused(store.thread(ref(), WIDE)) == "store.missing"
    other.close()
    assert not (tmp_path / "s.db-wal").exists()
    assert len(tasks(tmp_path / "moved.db")) == 2


async def test_two_stores_of_one_file_both_let_it_go_whole(store: SqliteStore, tmp_path: Path) -> None:
    second = SqliteStore(tmp_path / "s.db", synchronous="NORMAL")
    await second.open()
    await run_terns(store, 2)
    await run_tern(second, "third", now=later(50))
    (tmp_path / "s.db").rename(tmp_path / "moved.db")
    for each in (store, second):
        assert await refused(each.thread(ref(), WIDE)) == "store.missing"
    assert len(tasks(tmp_path / "moved.db")) == 3
    (tmp_path / "moved.db").rename(tmp_path / "s.db")
    for each in (store, second):
        assert await terns(each) == [1, 2, 3]
    await second.close()


async def test_logs_of_the_next_file_are_left_alone(store: SqliteStore, tmp_path: Path) -> None:
    await run_terns(store, 2)
    shutil.move(tmp_path / "s.db", tmp_path / "moved.db")
    for end in ("-wal", "-shm"):
        (tmp_path / f"s.db{end}").rename(tmp_path / f"moved.db{end}")
    (tmp_path / "s.db-wal").write_bytes(b"not ours")
    assert await refused(store.thread(ref(), WIDE)) == "store.missing"
    assert (tmp_path / "s.db-wal").read_bytes() == b"not ours"
    assert len(tasks(tmp_path / "moved.db")) == 2


async def test_a_file_that_cannot_be_used_in_its_place_is_refused_until_one_can(
    store: SqliteStore, tmp_path: Path
) -> None:
    await run_terns(store, 2)
    (tmp_path / "s.db").rename(tmp_path / "moved.db")
    (tmp_path / "s.db").write_bytes(b"These are my notes. " * 200)
    for _ in range(2):
        assert await refused(store.thread(ref(), WIDE)) == "store.corrupt"
    os.replace(tmp_path / "moved.db", tmp_path / "s.db")  # noqa: PTH105
    assert await terns(store) == [1, 2]


@pytest.mark.parametrize("how", ["commit", "step", "release"])
async def test_a_tern_of_the_file_before_is_told_so_whoever_noticed_first(
    store: SqliteStore, tmp_path: Path, how: str
) -> None:
    """Also after another call was told: the thread is not unknown, its file is gone."""
    admitted = await store.admit(admission("task"))
    calls: dict[str, Call] = {
        "commit": lambda store: store.commit(ending(admitted, task="task")),
        "step": lambda store: store.write_step(
            StepWrite(key=admitted.key, fence=admitted.fence, number=1, step=step(outcome="x"))
        ),
        "release": lambda store: store.release(admitted.key, admitted.fence, 1),
    }
    (tmp_path / "s.db").unlink()
    other = SqliteStore(tmp_path / "s.db", synchronous="NORMAL")
    (tmp_path / "s.db-wal").unlink()
    (tmp_path / "s.db-shm").unlink()
    await other.open()
    assert await refused(store.threads("desk", None, None, 1)) == "store.replaced"
    assert await store.renew("one", later(60)) == ()
    assert await refused(calls[how](store)) == "store.replaced"
    with pytest.raises(UnknownThreadError):
        await store.thread(ref(), WIDE)
    await other.close()


async def test_a_medium_that_fails_while_the_moved_file_is_made_whole(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await run_terns(store, 2)
    (tmp_path / "s.db").rename(tmp_path / "moved.db")
    monkeypatch.setattr("agboss_memory.stores.sqlite.places.CHECKPOINT", "SELECT no_such_function()")
    assert await refused(store.thread(ref(), WIDE)) == "store.failed"
    assert (tmp_path / "s.db-wal").stat().st_size
    monkeypatch.setattr("agboss_memory.stores.sqlite.places.CHECKPOINT", CHECKPOINT)
    assert await refused(store.thread(ref(), WIDE)) == "store.missing"
    assert len(tasks(tmp_path / "moved.db")) == 2
