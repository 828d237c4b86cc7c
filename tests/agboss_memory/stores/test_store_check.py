"""The check of a store: every fault that somebody put into the file is found, and nothing is changed."""

import sqlite3
from pathlib import Path

import pytest

from agboss_memory.stores import MemoryStore, SqliteStore, SummaryWrite, TernPage
from agboss_memory.testing.store_attachments import CAT, NOTE, tern_with
from agboss_memory.testing.store_copies import eventful
from agboss_memory.testing.store_requests import admission, ending, later, pair, run_tern, run_terns, summary

FAULTS = {
    "check.tern-gap": "UPDATE messages SET text_ref = 0, content = 'x' WHERE thread_key = 2; "
    "UPDATE terns SET seq = 9 WHERE thread_key = 2 AND seq = 1",
    "check.tern-end": "UPDATE terns SET finished_at = NULL WHERE thread_key = 2 AND seq = 1",
    "check.counter": "UPDATE threads SET last_seq = 9 WHERE key = 2",
    "check.running": "UPDATE terns SET status = 'answered', finished_at = 0 WHERE status = 'running'",
    "check.lease": "UPDATE threads SET lease_until = 9000000000000000 WHERE running",
    "check.stop": "UPDATE threads SET stop = 1 WHERE running",
    "check.message-gap": "UPDATE messages SET seq = 99 WHERE thread_key = 2 AND seq = 3",
    "check.message-tern": "UPDATE messages SET text_ref = 0, content = 'x', tern_seq = 99 WHERE thread_key = 2 AND seq = 3",
    "check.said": "UPDATE terns SET said = NULL WHERE thread_key = 2 AND seq = 1",
    "check.result-twice": "UPDATE messages SET role = 'tool', tool_call_id = 'c' WHERE thread_key = 2",
    "check.sums": "UPDATE conversations SET live_tokens = live_tokens + 1 WHERE thread_key = 2",
    "check.summary-gap": "DELETE FROM summaries WHERE id = 1",
    "check.summary-range": "UPDATE summaries SET to_seq = 99 WHERE id = 2",
    "check.summary-lineage": "UPDATE summaries SET superseded_by = 99 WHERE state = 'superseded'",
    "check.summary-overlap": "UPDATE summaries SET state = 'active' WHERE state = 'superseded'",
    "check.block-range": "UPDATE blocks SET first = 9 WHERE last = 2",
    "check.block-state": "UPDATE blocks SET state = 'due' WHERE last = 4",
    "check.block-overlap": "UPDATE blocks SET first = 2 WHERE last = 4",
    "check.work-tern": "UPDATE work SET tern_seq = 9",
    "check.pending-mark": "UPDATE terns SET memory_pending = 1 WHERE thread_key = 2 AND seq = 1",
    "check.step-left": "INSERT INTO steps VALUES (2, 1, 'desk.tool.1', 0, 'tool', '', '{}')",
    "check.usage-twice": "UPDATE terns SET usage = replace(usage, '\"b\"', '\"a\"') WHERE thread_key = 1",
    "check.ledger": "UPDATE ledger SET tokens = tokens - 1",
    "check.spend": "UPDATE threads SET nano_usd = nano_usd - 999999",
    "check.ticket-end": "INSERT INTO tickets VALUES (9, 'w', 't', 'h', 9000000000000000)",
    "check.orphan-row": "INSERT INTO work VALUES (99, 1, 'Facts', 0)",
    "check.unreadable": "UPDATE terns SET path = '[' WHERE thread_key = 2 AND seq = 1",
}


@pytest.mark.parametrize("code", FAULTS)
async def test_b069_a_fault_in_the_file_is_found(tmp_path: Path, code: str) -> None:
    path = tmp_path / "log.db"
    store = SqliteStore(path, synchronous="NORMAL")
    await store.open()
    await eventful(store)
    await run_terns(store, 2, thread="two")
    assert await store.check() == ()
    with sqlite3.connect(path) as connection:
        for statement in FAULTS[code].split("; "):
            assert connection.execute(statement).rowcount > 0
    connection.close()
    before = path.read_bytes()
    found = await store.check()
    assert code in {item.code for item in found}
    for item in found:
        assert item.what
        assert item.remedy
        assert item.thread in ("", "t", "two")
    assert path.read_bytes() == before
    assert await store.check() == found
    await store.close()


async def test_more_ledger_than_bookings_is_a_finding_until_a_thread_was_deleted(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.db", synchronous="NORMAL")
    await store.open()
    await run_terns(store, 2)
    with sqlite3.connect(tmp_path / "log.db") as connection:
        connection.execute("UPDATE ledger SET tokens = tokens + 1")
        assert [item.code for item in await store.check()] == ["check.ledger"] or connection.in_transaction
        connection.commit()
    assert [item.code for item in await store.check()] == ["check.ledger"]
    with sqlite3.connect(tmp_path / "log.db") as connection:
        connection.execute(
            "INSERT INTO threads SELECT 2, workflow, 'x', owner, created_at, updated_at, 0, version, fence,"
            " holder, lease_until, running, 0, 0, 0, 0, 0, 0, 0, 0 FROM threads"
        )
        connection.execute("DELETE FROM threads WHERE key = 2")
    connection.close()
    assert await store.check() == ()
    await store.close()


async def test_b110_one_broken_record_does_not_hide_the_others(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.db", synchronous="NORMAL")
    await store.open()
    key = (await run_terns(store, 3)).key
    with sqlite3.connect(tmp_path / "log.db") as connection:
        connection.execute("UPDATE terns SET path = '[', usage = '[[1]]' WHERE seq = 2")
    connection.close()
    terns = await store.terns(key, TernPage())
    assert [(tern.task, tern.answer) for tern in terns] == [("q1", "a1"), ("q2", "a2"), ("q3", "a3")]
    assert [(tern.path, len(tern.usage), tern.error_code) for tern in terns] == [
        (("desk",), 1, ""),
        ((), 0, "store.unreadable"),
        (("desk",), 1, ""),
    ]
    found = await store.check()
    assert ("check.unreadable", "the records of Terns [2] cannot be read") in {(item.code, item.what) for item in found}
    assert (await run_terns(store, 1)).number == 4
    await store.close()


async def test_files_that_are_damaged_or_named_by_nobody_are_found(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.db", synchronous="NORMAL")
    await store.open()
    await tern_with(store, CAT, NOTE)
    assert await store.check() == ()
    place = tmp_path / "log.db.files" / CAT.record().id[:2] / CAT.record().id
    place.write_bytes(b"another cat")
    with sqlite3.connect(tmp_path / "log.db") as connection:
        connection.execute("DELETE FROM files WHERE id = ?", (NOTE.record().id,))
    connection.close()
    found = {item.code: item.what for item in await store.check()}
    assert found.keys() == {"check.file-missing", "check.file-unnamed"}
    assert "'a cat.png'" in found["check.file-missing"]
    await store.close()


async def test_b110_files_of_a_tern_that_cannot_be_read_leave_the_tern(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.db", synchronous="NORMAL")
    await store.open()
    key = (await run_terns(store, 2)).key
    for broken in ("[", "[[1]]", "9"):
        with sqlite3.connect(tmp_path / "log.db") as connection:
            connection.execute("UPDATE terns SET attachments = ? WHERE seq = 1", (broken,))
        connection.close()
        terns = await store.terns(key, TernPage())
        assert [(tern.task, tern.attachments, tern.error_code) for tern in terns] == [
            ("q1", (), "store.unreadable"),
            ("q2", (), ""),
        ]
    await store.close()


async def test_a_damaged_page_is_found(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    store = SqliteStore(path, synchronous="NORMAL")
    await store.open()
    await run_terns(store, 300)
    await store.close()
    content = bytearray(path.read_bytes())
    content[-4096:] = b"\xa5" * 4096
    path.write_bytes(content)
    await store.open()
    found = await store.check()
    assert "check.file-damaged" in {item.code for item in found}
    await store.close()


async def test_the_memory_store_finds_its_own_faults() -> None:
    store = MemoryStore()
    key = await eventful(store)
    assert await store.check() == ()
    thread = store._by_key[key]  # pyright: ignore[reportPrivateUsage]
    thread._sums["desk"][0] += 1  # pyright: ignore[reportPrivateUsage]
    assert [item.code for item in await store.check()] == ["check.sums"]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_b069_a_closed_tern_that_completes_its_block_leaves_a_sound_file(tmp_path: Path, kind: str) -> None:
    """Found by killing: the next Tern closes what a dead process left, and the block of that one becomes due."""
    store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "log.db", synchronous="NORMAL")
    await store.open()
    await run_tern(store, commit={"blocks": pair(1, 2)})
    await store.admit(admission("dies", holder="dead", now=later(1)))
    following = await store.admit(admission("next", holder="two", now=later(30)))
    assert following.closed == (2,)
    assert [(block.first, block.last) for block in await store.blocks(following.key, ("due",), 9)] == [(1, 2)]
    assert await store.check() == ()
    await store.write_summary(SummaryWrite(key=following.key, tern=3, summary=summary(1, 2), now=later(31)))
    await store.commit(ending(following, task="next", now=later(32)))
    assert await store.check() == ()
    await store.close()


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_blocks_that_a_late_plan_makes_due_leave_a_sound_file(tmp_path: Path, kind: str) -> None:
    store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "log.db", synchronous="NORMAL")
    await store.open()
    await run_terns(store, 4)
    await run_tern(store, commit={"blocks": (*pair(1, 2), *pair(3, 4), *pair(5, 6))})
    assert await store.check() == ()
    await store.close()
