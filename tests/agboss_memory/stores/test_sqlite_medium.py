"""What can be wrong with a file, and what can happen to a call."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from agboss_memory.errors import StoreCorruptError, StoreError, StoreLockedError, StoreVersionError
from agboss_memory.stores import MemoryOutcome, MessagePage, PendingWork, SqliteStore, TernPage
from agboss_memory.stores.sqlite.faults import store_fault
from agboss_memory.testing.store_requests import (
    NOW,
    WIDE,
    admission,
    conversation,
    ending,
    numbers,
    pair,
    ref,
    run_tern,
    summary_write,
)


def _workers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("agboss-sqlite")]


async def _refused(path: Path, kind: type[StoreError], code: str, **options: float) -> StoreError:
    before = set(_workers())
    store = SqliteStore(path, **options)  # pyright: ignore[reportArgumentType]
    with pytest.raises(kind) as caught:
        await store.open()
    assert caught.value.code == code
    assert str(path) in caught.value.message
    assert caught.value.hint
    for worker in set(_workers()) - before:
        worker.join(10)
        assert not worker.is_alive()
    return caught.value


async def test_not_a_database(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    path.write_bytes(b"These are my notes, not a database. " * 200)
    before = path.read_bytes()
    await _refused(path, StoreCorruptError, "store.corrupt")
    assert path.read_bytes() == before


async def test_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    store = SqliteStore(path, synchronous="NORMAL")
    await store.open()
    for number in range(60):
        await run_tern(store, f"{number}" * 50)
    await store.close()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    path.write_bytes(content)

    async def use() -> None:
        await store.open()
        await store.thread(ref(), WIDE)

    with pytest.raises(StoreCorruptError):
        await use()
    await store.close()


async def test_a_newer_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE schema_version (version INTEGER NOT NULL)")
        connection.execute("INSERT INTO schema_version VALUES (999)")
    connection.close()
    before = path.read_bytes()
    error = await _refused(path, StoreVersionError, "store.newer-schema")
    assert error.data["version"] == 999
    assert path.read_bytes() == before


async def test_an_empty_version_table_is_migrated(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE schema_version (version INTEGER NOT NULL)")
    connection.close()
    store = SqliteStore(path)
    await store.open()
    assert (await run_tern(store))[0].number == 1
    await store.close()
    await store.open()
    assert (await run_tern(store))[0].number == 2
    await store.close()


async def test_a_locked_file(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    store = SqliteStore(path, timeout=0)
    await store.open()
    admitted, _ = await run_tern(store)
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreLockedError) as caught:
            await store.admit(admission())
        assert caught.value.code == "store.locked"
        assert "timeout" in caught.value.hint
        assert len(await store.terns(admitted.key, TernPage())) == 1
        other.execute("ROLLBACK")
    other.close()
    assert (await store.admit(admission())).number == 2
    await store.close()


async def test_a_locked_new_file(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        await _refused(path, StoreLockedError, "store.locked", timeout=0.01)
    other.close()


async def test_a_file_in_the_place_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    await _refused(tmp_path / "file" / "log.db", StoreError, "store.no-file")
    await _refused(tmp_path, StoreError, "store.no-file")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o500)  # noqa: PTH101
    await _refused(tmp_path / "log.db", StoreError, "store.read-only")


def test_faults_of_a_read_only_and_of_a_full_file(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.commit()
        connection.execute("PRAGMA max_page_count=3")
        with pytest.raises(sqlite3.OperationalError) as full:
            connection.execute("INSERT INTO t VALUES (zeroblob(100000))")
    connection.close()
    assert store_fault(full.value, path).code == "store.disk-full"
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    with pytest.raises(sqlite3.OperationalError) as read_only:
        connection.execute("INSERT INTO t VALUES (1)")
    connection.close()
    assert store_fault(read_only.value, path).code == "store.read-only"
    assert store_fault(PermissionError("no"), path).code == "store.read-only"
    assert store_fault(sqlite3.OperationalError("no such table"), path).code == "store.failed"


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.db")
    for _ in range(2):
        with pytest.raises(StoreError) as caught:
            await store.admit(admission())
        assert caught.value.code == "store.closed"
        await store.open()
        await store.close()
        await store.close()


def test_two_processes_may_open_a_new_file_at_once(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from agboss_memory.stores import SqliteStore\n"
        "from agboss_memory.testing.store_requests import run_tern\n"
        "async def main():\n"
        "    store = SqliteStore(Path(sys.argv[1]))\n"
        "    print('ready', flush=True)\n"
        "    input()\n"
        "    await store.open()\n"
        "    await run_tern(store, thread=sys.argv[2])\n"
        "    await store.close()\n"
        "asyncio.run(main())\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    started = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", code, str(tmp_path / "log.db"), f"t{n}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for n in range(3)
    ]
    for process in started:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    for process in started:
        assert process.communicate()[1] == ""
        assert process.returncode == 0


async def test_b064_three_stores_on_one_file(tmp_path: Path) -> None:
    stores = [SqliteStore(tmp_path / "log.db", synchronous="NORMAL", timeout=30) for _ in range(3)]
    await asyncio.gather(*(store.open() for store in stores))

    async def turn(number: int) -> int:
        store, thread = stores[number % 3], f"t{number % 5}"
        while True:
            admitted = await store.admit(admission(f"q{number}", thread=thread, holder=f"h{number}"))
            if admitted.kind == "admitted":
                break
        said = conversation(f"q{number}", f"a{number}")
        await store.commit(ending(admitted, f"a{number}", task=f"q{number}", messages=said))
        return admitted.key

    keys = set(await asyncio.gather(*(turn(number) for number in range(60))))
    assert len(keys) == 5
    for key in keys:
        terns = await stores[0].terns(key, TernPage())
        assert numbers(terns) == list(range(1, 13))
        assert [t.answer for t in terns] == [t.task.replace("q", "a") for t in terns]
        said = await stores[1].messages(key, MessagePage(agent="desk"))
        assert [m.number for m in said] == list(range(1, 25))
        assert [m.content for m in said] == [text for t in terns for text in (t.task, t.answer)]
    for store in stores:
        await store.close()


async def test_b065_a_late_write_finds_no_new_thread_under_its_key(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.db")
    await store.open()
    late = await store.admit(admission())
    await store.delete_thread(ref())
    fresh, _ = await run_tern(store)
    assert fresh.key > late.key
    with sqlite3.connect(tmp_path / "log.db") as connection:
        for table in ("terns", "messages", "conversations"):
            keys = connection.execute(f"SELECT DISTINCT thread_key FROM {table}").fetchall()
            assert keys == [(fresh.key,)]
    connection.close()
    await store.close()


async def test_b068_a_cancelled_admission_is_finished_and_its_result_kept(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    store = SqliteStore(path)
    await store.open()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    seen: list[object] = []

    async def turn() -> None:
        seen.append(await store.admit(admission()))
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            seen.append(error.args)
            raise

    task = asyncio.create_task(turn())
    await asyncio.sleep(0)  # it has asked the worker, which waits for the lock
    task.cancel("stop")
    await asyncio.sleep(0)
    assert not task.done()
    other.execute("ROLLBACK")
    other.close()
    with pytest.raises(asyncio.CancelledError):
        await task
    admitted, reason = seen
    assert reason == ("stop",)
    info = (await store.thread(ref(), WIDE)).info
    assert (info.terns, info.running) == (1, True)
    await store.commit(ending(admitted))  # pyright: ignore[reportArgumentType]
    await store.close()


async def test_b068_a_time_out_during_a_commit_leaves_a_whole_tern(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    store = SqliteStore(path)
    await store.open()
    admitted = await store.admit(admission())
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    asyncio.get_running_loop().call_later(0.05, other.execute, "ROLLBACK")
    reached: list[bool] = []

    async def turn() -> None:
        async with asyncio.timeout(0.01):
            await store.commit(ending(admitted, messages=conversation("hi", "hello")))
            reached.append(True)
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await turn()
    other.close()
    assert reached == [True]
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    assert (await store.thread(ref(), WIDE)).window.terns[0].answer == "hello"
    assert len(await store.messages(admitted.key, MessagePage(agent="desk"))) == 2
    await store.close()


def test_a_store_serves_several_event_loops(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.db")
    asyncio.run(store.open())
    for number in (1, 2):
        assert asyncio.run(run_tern(store))[0].number == number
    asyncio.run(store.close())


async def test_memory_work_is_marked_in_the_file(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.db")
    await store.open()
    reader = sqlite3.connect(tmp_path / "log.db")

    def pending() -> list[int]:
        return [row[0] for row in reader.execute("SELECT memory_pending FROM terns ORDER BY seq")]

    await run_tern(store)
    admitted, _ = await run_tern(store, commit={"blocks": pair(1, 2), "strategies": ("Facts",)})
    assert pending() == [0, 1]
    await store.write_summary(summary_write(admitted, 1, 2))
    assert pending() == [0, 1]
    work = PendingWork(tern=2, strategy="Facts")
    await store.settle(MemoryOutcome(key=admitted.key, tern=2, now=NOW, work=work, done=True))
    assert pending() == [0, 0]
    reader.close()
    await store.close()
