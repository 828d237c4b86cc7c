"""The file is moved, removed or replaced while a store has it open: nothing acknowledged is lost, nothing is made."""

import os
import shutil
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest

from agboss_memory.errors import StoreError, ThreadDeletedError, UnknownThreadError
from agboss_memory.stores import Admitted, Append, Enqueue, MemoryClaim, MemoryOutcome, SqliteStore, StepWrite, TernPage
from agboss_memory.stores.sqlite.places import CHECKPOINT
from agboss_memory.stores.views import ViewRecord
from agboss_memory.testing.store_recovery import claim, step
from agboss_memory.testing.store_requests import (
    WIDE,
    admission,
    booked,
    ending,
    later,
    numbers,
    pair,
    ref,
    run_tern,
    run_terns,
    summary_write,
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


LATE: dict[str, Callable[[SqliteStore, Admitted], Awaitable[object]]] = {
    "commit": lambda store, old: store.commit(ending(old)),
    "step": lambda store, old: store.write_step(
        StepWrite(key=old.key, fence=old.fence, number=old.number, step=step("late"), now=later(0))
    ),
    "summary": lambda store, old: store.write_summary(summary_write(old, 1, 2)),
    "cost": lambda store, old: store.settle(
        MemoryOutcome(key=old.key, tern=old.number, now=later(0), usage=(booked("late"),))
    ),
    "views": lambda store, old: store.write_views(
        old.key, (ViewRecord(tern=old.number, agent="desk", call=1, composition="[]"),)
    ),
    "counts": lambda store, old: store.write_counts(old.key, "desk", {1: 7}, "late"),
    "stub": lambda store, old: store.compress_result(old.key, "desk", 1, "late", 1),
    "undo": lambda store, old: store.retire(old.key, 1, later(0)),
    "claim": lambda store, old: store.claim(claim(old, 99)),
    "hold": lambda store, old: store.hold(MemoryClaim(key=old.key, holder="late", now=later(99), window=WIDE)),
    "read": lambda store, old: store.terns(old.key, TernPage()),
    "conversation": lambda store, old: store.conversation(old.key, "desk", 9),
    "page": lambda store, old: store.owing("w", later(99), old.key, 9),
}


@pytest.mark.parametrize("again", [False, True], ids=["untouched", "in use"])
@pytest.mark.parametrize("late", LATE.values(), ids=LATE.keys())
async def test_what_began_in_another_file_reaches_no_thread_of_this_one(
    store: SqliteStore, tmp_path: Path, late: Callable[[SqliteStore, Admitted], Awaitable[object]], again: bool
) -> None:
    """Both files have a thread, and Terns, of the same numbers: text and cost of the one are none of the other's business."""
    other = SqliteStore(tmp_path / "other.db", synchronous="NORMAL")
    await other.open()
    await run_tern(other)
    await run_tern(other, commit={"blocks": pair(1, 2)})
    await other.close()
    await run_tern(store)
    old = await store.admit(admission())
    (tmp_path / "s.db").rename(tmp_path / "away.db")
    (tmp_path / "other.db").rename(tmp_path / "s.db")
    assert await refused(store.threads("w", None, None, 9)) == "store.replaced"
    if again:
        following, _ = await run_tern(store, now=later(50))
        assert following.key != old.key
    before = await store.copy(ref())
    for _ in range(2):
        assert await refused(late(store, old)) == "store.replaced"
    assert await store.copy(ref()) == before
    assert await store.check() == ()
    await run_tern(store, now=later(60))


async def test_work_goes_on_in_the_file_that_is_there_now(store: SqliteStore, tmp_path: Path) -> None:
    """Keys of the new file serve for everything, over pages, renewals and pauses too."""
    await run_terns(store, 1)
    shutil.copy(tmp_path / "s.db", tmp_path / "other.db")
    (tmp_path / "other.db").replace(tmp_path / "s.db")
    assert await refused(store.threads("w", None, None, 9)) == "store.replaced"
    admitted = await store.admit(admission(now=later(50)))
    asked = await store.interrupt(ref())
    assert asked is not None
    assert asked.key == admitted.key
    assert await store.renew("one", later(70)) == (asked,)
    (found,) = await store.resumable("w", later(200), 0, 9)
    assert found.key == admitted.key
    assert await store.resumable("w", later(200), found.key, 9) == ()
    taken = await store.claim(claim(admitted, 200))
    assert (taken.kind, taken.key) == ("admitted", admitted.key)
    await store.commit(ending(taken, strategies=("Facts",), remembers="due"))
    (owing,) = await store.owing("w", later(400), 0, 9)
    state = await store.hold(MemoryClaim(key=owing.key, holder="late", now=later(400), window=WIDE))
    assert state is not None
    assert (state.key, state.fence) == (admitted.key, taken.fence + 1)
    await store.release(state.key, state.fence, state.info.terns)
    said = await store.append(Append(workflow="w", thread="t", agent="desk", messages=(), now=later(401)))
    assert said.key == admitted.key
    assert await store.check() == ()


async def test_a_key_that_nobody_gave_is_of_no_thread(store: SqliteStore) -> None:
    admitted = (await run_tern(store))[0]
    for key in (-1, 0, admitted.key + (1 << 40), 1 << 60):
        assert await store.terns(key, TernPage()) == ()
        with pytest.raises(ThreadDeletedError):
            await store.settle(MemoryOutcome(key=key, tern=1, now=later(0)))


async def test_a_ticket_of_another_file_is_nobodys_place_in_this_one(store: SqliteStore, tmp_path: Path) -> None:
    other = SqliteStore(tmp_path / "other.db", synchronous="NORMAL")
    await other.open()
    first = await other.enqueue(Enqueue(workflow="w", thread="t", holder="other", now=later(0)))
    await other.close()
    ticket = await store.enqueue(Enqueue(workflow="w", thread="t", holder="one", now=later(0)))
    assert ticket == first
    (tmp_path / "other.db").replace(tmp_path / "s.db")
    assert await refused(store.threads("w", None, None, 9)) == "store.replaced"
    busy = await store.admit(admission(ticket=ticket, queue=True, now=later(1)))
    assert (busy.kind, busy.ticket != ticket) == ("busy", True)
    await store.leave(ticket)
    assert (await store.admit(admission(ticket=busy.ticket, queue=True, now=later(1)))).kind == "busy"
    assert await store.renew("one", later(30)) == ()
    late = await store.admit(admission(ticket=busy.ticket, queue=True, now=later(20)))  # the stranger's has ended
    assert late.kind == "admitted"
    await store.leave(busy.ticket)
