"""The file is cut off while a store has it open: the first call says so, and what is legal raises no alarm."""

import os
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlite_cost import Trace

from agboss_memory.errors import StoreCorruptError
from agboss_memory.stores import SqliteStore, TernPage
from agboss_memory.testing.store_requests import WIDE, admission, ending, numbers, ref, run_tern, run_terns

CALLS: dict[str, Callable[[SqliteStore], Awaitable[object]]] = {
    "admit": lambda store: store.admit(admission("more")),
    "thread": lambda store: store.thread(ref(), WIDE),
    "list": lambda store: store.threads("w", None, None, 1),
    "check": lambda store: store.check(),
}
LONG = "some words that take room. " * 200


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[SqliteStore]:
    store = SqliteStore(tmp_path / "s.db", synchronous="NORMAL", timeout=0)
    await store.open()
    yield store
    await store.close()


def new(folder: Path) -> Path:
    return folder / f"s.db{len(list(folder.iterdir()))}"


def outside(path: Path, *statements: str) -> None:
    """What another program does with the file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement).fetchall()


def checkpoint(path: Path) -> None:
    outside(path, "PRAGMA wal_checkpoint(TRUNCATE)")


async def refused(call: Awaitable[object]) -> StoreCorruptError:
    with pytest.raises(StoreCorruptError) as caught:
        await call
    assert caught.value.code == "store.corrupt"
    assert "backup" in caught.value.hint
    assert "s.db" in caught.value.message
    return caught.value


@pytest.mark.parametrize("size", [0, 50, 511, 512, 3000, 4096, 8192])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
async def test_the_first_call_and_all_that_follow_are_refused(
    store: SqliteStore, tmp_path: Path, size: int, call: Callable[[SqliteStore], Awaitable[object]]
) -> None:
    """Also when nothing was called since all of it went from the log into the file."""
    await run_terns(store, 4)
    checkpoint(tmp_path / "s.db")
    os.truncate(tmp_path / "s.db", size)
    await refused(call(store))
    for again in CALLS.values():
        await refused(again(store))


@pytest.mark.parametrize("size", [0, 4096, 40960])
async def test_a_tern_that_runs_is_not_acknowledged(store: SqliteStore, tmp_path: Path, size: int) -> None:
    await run_terns(store, 4)
    late = await store.admit(admission("late"))
    checkpoint(tmp_path / "s.db")
    os.truncate(tmp_path / "s.db", size)
    error = await refused(store.commit(ending(late, task="late")))
    assert "cut off" in error.message


async def test_a_file_that_was_there_before_and_has_new_terns_in_its_log(tmp_path: Path) -> None:
    """The log is longer than what is missing: only reading the file tells."""
    path = tmp_path / "s.db"
    store = SqliteStore(path, synchronous="NORMAL")
    await store.open()
    await run_tern(store, LONG)
    await store.close()
    await store.open()
    whole = path.stat().st_size
    await run_terns(store, 12)
    os.truncate(path, 4096 * 3)
    assert (tmp_path / "s.db-wal").stat().st_size > whole
    for _ in range(2):
        await refused(store.admit(admission("more")))
    await store.close()


async def test_a_file_that_is_put_back_in_its_place_is_gone_on_with(store: SqliteStore, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    await run_terns(store, 3)
    checkpoint(path)
    kept = path.read_bytes()
    os.truncate(path, 4096)
    await refused(store.thread(ref(), WIDE))
    path.write_bytes(kept)
    state = await store.thread(ref(), WIDE)
    assert numbers(await store.terns(state.key, TernPage())) == [1, 2, 3]


async def test_a_cut_file_that_is_opened_again_is_refused_and_an_empty_one_is_new(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = SqliteStore(path, synchronous="NORMAL")
    await store.open()
    await run_terns(store, 3)
    await store.close()
    for size in (4096, 100, 10):
        os.truncate(path, size)
        await refused(store.open())
    os.truncate(path, 0)
    await store.open()
    assert (await run_tern(store))[0].number == 1
    await store.close()


async def test_a_file_that_another_process_made_smaller_is_whole(store: SqliteStore, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    for number in range(8):
        await run_tern(store, LONG, thread=f"t{number}")
    checkpoint(path)
    for number in range(1, 8):
        await store.delete_thread(ref(thread=f"t{number}"))
    before = path.stat().st_size
    outside(path, "VACUUM")
    checkpoint(path)
    assert path.stat().st_size < before
    outside(path, *("CREATE TABLE more (x)", "INSERT INTO more VALUES (zeroblob(50000))"))  # the log knows more pages
    assert (await run_tern(store, "q", thread="t0"))[0].number == 2
    assert await store.check() == ()


async def test_nothing_more_is_asked_while_the_file_stays_as_it_is(tmp_path: Path) -> None:
    trace = Trace()
    store = SqliteStore(tmp_path / "s.db", synchronous="NORMAL", trace=trace)
    await store.open()
    await run_terns(store, 2)
    asked = [text for text in trace.take() if "page_" in text]
    await run_terns(store, 20)
    assert [text for text in trace.take() if "page_" in text] == []
    assert asked == []
    checkpoint(tmp_path / "s.db")
    await run_terns(store, 20)
    assert len([text for text in trace.take() if "page_count" in text]) == 1
    await store.close()


STEPS = st.lists(
    st.sampled_from(
        ["tern", "long", "delete", "vacuum", "passive", "truncate", "read", "other", "touch", "hold", "free"]
    ),
    max_size=14,
)


@given(steps=STEPS)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_whatever_others_may_do_with_the_file_raises_no_alarm(tmp_path: Path, steps: list[str]) -> None:
    path = new(tmp_path)
    store, second = (SqliteStore(path, synchronous="NORMAL", timeout=0) for _ in range(2))
    await store.open()
    await second.open()
    holding = sqlite3.connect(path, isolation_level=None)
    for place, what in enumerate(steps):
        if what in ("tern", "long", "other"):
            await run_tern(
                second if what == "other" else store, LONG if what == "long" else "q", thread=f"t{place % 3}"
            )
        elif what == "delete":
            for thread in await store.threads("w", None, None, 1):
                await store.delete_thread(ref(thread=thread.id))
        elif what == "read":
            await second.threads("w", None, None, 9)
        elif what == "touch":
            os.utime(path)
        elif what == "hold" and not holding.in_transaction:
            holding.execute("BEGIN")
            holding.execute("SELECT count(*) FROM terns").fetchone()
        elif what == "free" and holding.in_transaction:
            holding.execute("ROLLBACK")
        elif what in ("vacuum", "passive", "truncate"):
            outside(path, "VACUUM" if what == "vacuum" else f"PRAGMA wal_checkpoint({what})")
    holding.close()
    assert await store.check() == ()
    await run_tern(second, "last", thread="last")
    await second.close()
    await store.close()


@given(size=st.integers(0, 30), terns=st.integers(0, 6), moved=st.booleans())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_a_cut_is_told_or_nothing_is_lost(tmp_path: Path, size: int, terns: int, moved: bool) -> None:
    """Whatever is cut off and whatever is in the log: an acknowledged Tern is never gone."""
    path = new(tmp_path)
    store = SqliteStore(path, synchronous="NORMAL")
    await store.open()
    await run_terns(store, 2)
    await store.close()
    await store.open()
    await run_terns(store, terns)
    if moved:
        checkpoint(path)
    os.truncate(path, min(size * 4096, path.stat().st_size))
    with suppress(StoreCorruptError):
        admitted, _ = await run_tern(store, "after")
        await store.close()
        await store.open()
        assert admitted.number == terns + 3
        assert numbers(await store.terns(admitted.key, TernPage())) == list(range(1, admitted.number + 1))
        assert await store.check() == ()
    await store.close()
