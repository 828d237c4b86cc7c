"""One store object with several users: it is open until the last of them closes it."""

import asyncio
from pathlib import Path

import pytest

from agboss_memory.errors import StoreError
from agboss_memory.stores import SqliteStore
from agboss_memory.testing.store_requests import WIDE, ref, run_tern


async def is_closed(store: SqliteStore) -> bool:
    try:
        await store.thread(ref(), WIDE)
    except StoreError as error:
        return error.code == "store.closed"
    return False


async def test_the_last_one_closes_it(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.db", synchronous="NORMAL")
    await asyncio.gather(store.open(), store.open(), store.open())
    await run_tern(store)
    for _ in range(2):
        await store.close()
        assert not await is_closed(store)
    await store.close()
    assert await is_closed(store)
    assert not (tmp_path / "log.db-wal").exists()


async def test_an_open_that_fails_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "log.db").mkdir()
    store = SqliteStore(tmp_path / "log.db", synchronous="NORMAL")
    both = await asyncio.gather(store.open(), store.open(), return_exceptions=True)
    assert [type(one) for one in both] == [StoreError, StoreError]
    (tmp_path / "log.db").rmdir()
    await store.open()
    await run_tern(store)
    await store.close()
    assert await is_closed(store)


async def test_whoever_opens_while_the_last_one_closes_has_it_open(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.db", synchronous="NORMAL")
    await store.open()
    for _ in range(20):
        await asyncio.gather(store.close(), store.open())
        await run_tern(store)
    await store.close()
    assert await is_closed(store)


@pytest.mark.parametrize("others", [0, 1])
def test_users_of_a_closed_event_loop_keep_it_open_for_nobody(tmp_path: Path, others: int) -> None:
    """Their program ended without a close: scripts run one loop after the other."""
    store = SqliteStore(tmp_path / "log.db", synchronous="NORMAL")
    asyncio.run(store.open())

    async def again() -> None:
        for _ in range(others):
            await store.open()
        await store.open()
        await run_tern(store)
        for _ in range(others):
            await store.close()
            assert not await is_closed(store)
        await store.close()
        assert await is_closed(store)

    asyncio.run(again())


async def test_one_may_be_closed_from_another_loop(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.db", synchronous="NORMAL")
    await store.open()
    await run_tern(store)
    await asyncio.to_thread(lambda: asyncio.run(store.close()))
    assert await is_closed(store)
