"""Files of older schema versions with data in them: migrated, read, and written on. Class R."""

import json
import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from agboss_memory.attachments import Attachment
from agboss_memory.messages import TernStatus
from agboss_memory.records import replace
from agboss_memory.stores import FileWrite, MemoryOutcome, MessagePage, SpendQuery, SqliteStore
from agboss_memory.stores.sqlite.migrations import applied, migrate, scripts
from agboss_memory.testing.store_requests import NOW, WIDE, admission, all_terns, booked, later, ref, run_tern

NUMBERS = [number for number, _ in scripts()]
NOTE = Attachment.from_bytes(b"buy milk", name="a note.txt")
SPENT = SpendQuery(workflow="w", first="2026-01-01", last="2026-01-31")
MICROS = round(NOW.timestamp() * 1_000_000)


def rows(version: int) -> dict[str, list[dict[str, Any]]]:
    """What a store of that version wrote for two Terns with a summary, and one that its process left running."""
    tern = {
        "thread_key": 1,
        "status": "answered",
        "memory_pending": 0,
        "config_id": 1,
        "started_at": MICROS,
        "finished_at": MICROS,
        "tokens": 5,
        "start": "ask",
        "finish": "done",
        "agent": "desk",
        "path": '["desk"]',
        "error": "",
        "error_code": "",
    }
    message = {
        "thread_key": 1,
        "agent": "desk",
        "token_count": 2,
        "tokenizer": "x",
        "created_at": MICROS,
        "text_ref": 0,
        "extra": None,
    }
    usage = {
        "thread_key": 1,
        "caller": "desk",
        "model": "m",
        "purpose": "answer",
        "source": "price-table",
        "input_tokens": 10,
        "output_tokens": 5,
        "cache_read_tokens": 0,
        "cache_write_tokens": 0,
        "usd": "0.0000015",
        "place": 0,
    }
    made: dict[str, list[dict[str, Any]]] = {
        "threads": [
            {
                "key": 1,
                "workflow": "w",
                "id": "t",
                "owner": None,
                "created_at": MICROS,
                "updated_at": MICROS,
                "last_seq": 3,
                "version": 6,
                "fence": 1,
                "holder": "old",
                "lease_until": MICROS,
                "running": 3,
            }
        ],
        "configs": [{"id": 1, "version": "1", "hash": "abc"}],
        "terns": [
            {**tern, "seq": 1, "task": "q1", "answer": "a\x100000", "idempotency_key": "k"},
            {**tern, "seq": 2, "task": "q2", "answer": "a2"},
            {**tern, "seq": 3, "task": "hi", "answer": "", "status": "running", "finished_at": None, "path": ""},
        ],
        "messages": [
            {**message, "seq": 1, "tern_seq": 1, "place": 0, "role": "user", "text_ref": 1},
            {**message, "seq": 2, "tern_seq": 1, "place": 2, "role": "assistant", "text_ref": 2},
            {**message, "seq": 1, "tern_seq": 1, "place": 1, "role": "user", "agent": 'o"\x10d800', "content": "aside"},
            {**message, "seq": 3, "tern_seq": 2, "place": 0, "role": "user", "text_ref": 1, "token_count": None},
            {**message, "seq": 4, "tern_seq": 2, "place": 1, "role": "assistant", "content": "other"},
        ],
        "usage": [
            {**usage, "tern_seq": 1, "step_key": "desk.model.1"},
            {**usage, "tern_seq": 2, "step_key": "desk.model.1"},
            {**usage, "tern_seq": 2, "step_key": "compact", "place": 1, "purpose": "compaction"},
        ],
        "blocks": [{"thread_key": 1, "first": 1, "last": 2, "state": "done", "attempts": 1, "error": ""}],
        "summaries": [
            {
                "thread_key": 1,
                "id": 1,
                "agent": "",
                "kind": "turns",
                "from_seq": 1,
                "to_seq": 2,
                "state": "active",
                "tern_seq": 2,
                "tokens": 3,
                "model": "m",
                "usd": "0.01",
                "prompt_hash": "p",
                "created_at": MICROS,
                "body": "both",
            }
        ],
        "ledger": [
            {
                "workflow": "w",
                "day": "2026-01-31",
                "model_calls": 3,
                "tool_calls": 0,
                "steps": 2,
                "tokens": 45,
                "micro_usd": 6,
            }
        ],
    }
    if version >= 2:
        sums = {"thread_key": 1, "uncounted": 0}
        made["conversations"] = [
            {**sums, "agent": "desk", "last_seq": 4, "live_tokens": 6, "uncounted": 1},
            {**sums, "agent": 'o"\x10d800', "last_seq": 1, "live_tokens": 2},
        ]
    if version >= 3:
        note = NOTE.record()
        made["terns"][1]["attachments"] = json.dumps([[note.name, note.media_type, note.size, note.id]])
        made["files"] = [{"id": note.id, "thread_key": 1}]
    if version >= 6:
        made["threads"][0]["nano_usd"] = 4500
        sums = {"calls": 3, "input_tokens": 30, "output_tokens": 15, "nano_usd": 4500, "unpriced": 0}
        made["spending"] = [{"workflow": "w", "day": "2026-01-31", "owner": "", "model": "m", **sums}]
    return made


def written(path: Path, version: int) -> None:
    """A file as that version left it."""
    connection = sqlite3.connect(path, isolation_level=None)
    migrate(connection, path, upto=version)
    assert max(applied(connection)) == version
    for table, items in rows(version).items():
        for values in items:
            marks = ", ".join("?" * len(values))
            connection.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", tuple(values.values()))
    connection.close()


@pytest.mark.parametrize("version", NUMBERS)
async def test_b110_b113_a_file_of_any_older_version_is_read_and_goes_on(tmp_path: Path, version: int) -> None:
    path = tmp_path / "log.db"
    written(path, version)
    if version >= 4:  # what that migration makes of older rows, later versions wrote themselves
        with sqlite3.connect(path) as connection:
            connection.execute("""UPDATE terns SET said = '["desk",1,2,"o\\"\\u0010d800",1,1]' WHERE seq = 1""")
            connection.execute("""UPDATE terns SET said = '["desk",3,4]' WHERE seq = 2""")
        connection.close()
    store = SqliteStore(path, synchronous="NORMAL")
    await store.open()
    if version >= 3:
        await store.files.write(FileWrite(data=NOTE.data))
    assert await store.check() == ()
    state = await store.thread(ref(), WIDE)
    assert [(tern.task, tern.answer) for tern in state.window.terns] == [("q1", "a\x00"), ("q2", "a2")]
    assert [(item.text, str(item.usd)) for item in state.window.summaries] == [("both", "0.01")]
    said = await store.messages(state.key, MessagePage(agent=None, tern=1))
    assert [(item.agent, item.content) for item in said] == [("desk", "q1"), ('o"\ud800', "aside"), ("desk", "a\x00")]
    assert state.info.spend == Decimal("0.0000045")
    assert [(row.day, row.calls, row.usd) for row in await store.spend(SPENT)] == [("2026-01-31", 3, state.info.spend)]
    talk = await store.conversation(state.key, "desk", 9)
    assert (talk.last, talk.live_tokens, talk.uncounted) == (4, 6, 1)
    stored = await all_terns(store, state.key)
    assert [len(tern.usage) for tern in stored] == [1, 2, 0]
    assert [tern.attachments for tern in stored] == [(), (NOTE.record(),) if version >= 3 else (), ()]
    again = await store.admit(admission("q1", idempotency_key="k"))
    assert (again.kind, again.number) == ("repeat", 1)
    following, _ = await run_tern(store, "q4", "a4", now=later(99))
    assert (following.number, following.closed) == (4, (3,))
    terns = await all_terns(store, state.key)
    assert [tern.status for tern in terns[2:]] == [TernStatus.CANCELLED, TernStatus.ANSWERED]
    assert await store.check() == ()
    copy = await store.copy(ref())
    await store.delete_thread(ref())
    assert store.files.lost([NOTE.record().id]) == [NOTE.record().id]
    await store.restore(copy)
    assert await store.copy(ref()) == copy
    await store.close()


async def test_what_was_spent_before_is_added_up(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    store = SqliteStore(path, synchronous="NORMAL")
    await store.open()
    for owner in (None, "ada", "o\x10\ud800"):
        usage = (booked("a"), booked("b", model="x\ud800", usd=None), booked("c", purpose="tool", usd=Decimal("2.5")))
        admitted, _ = await run_tern(store, thread=f"of {owner!a}", owner=owner, commit={"usage": usage})
        await store.settle(MemoryOutcome(key=admitted.key, tern=1, now=NOW, usage=(booked("d"),)))
    await store.restore(replace(await store.copy(ref(thread="of None", owner=None)), thread="copied"))
    listed, spent = await store.threads("w", None, None, 9), await store.spend(SPENT)
    owned = await store.spend(replace(SPENT, owner="o\x10\ud800"))
    await store.close()
    with sqlite3.connect(path) as connection:
        for what in ("TABLE spending", "COLUMN nano_usd", "COLUMN unpriced"):
            connection.execute(f"{'' if 'TABLE' in what else 'ALTER TABLE threads '}DROP {what}")
        connection.execute("DELETE FROM schema_version WHERE version = 6")
    connection.close()
    await store.open()
    assert await store.threads("w", None, None, 9) == listed
    assert (await store.spend(SPENT), await store.spend(replace(SPENT, owner="o\x10\ud800"))) == (spent, owned)
    assert [(row.model, row.calls, row.usd, row.unknown) for row in owned] == [
        ("m", 3, Decimal("2.500003"), 0),
        ("x\ud800", 1, 0, 1),
    ]
    await store.close()


def schema(path: Path) -> list[tuple[str, str]]:
    with sqlite3.connect(path) as connection:
        made = connection.execute("SELECT type, name FROM sqlite_schema ORDER BY name").fetchall()
    connection.close()
    return made


def test_a_migration_that_comes_late_is_applied(tmp_path: Path) -> None:
    """A number below the newest that the file has not had, as two lines of work that meet leave one."""
    whole, late = tmp_path / "whole.db", tmp_path / "late.db"
    for path in (whole, late):
        connection = sqlite3.connect(path, isolation_level=None)
        migrate(connection, path)
        if path == late:
            number = NUMBERS[-1]
            assert applied(connection) == set(NUMBERS)
            connection.execute("DELETE FROM schema_version")
            connection.executemany("INSERT INTO schema_version VALUES (?)", [(n,) for n in NUMBERS if n != 2])
            connection.execute("DROP TABLE conversations")
            connection.execute("DROP INDEX summaries_live")
            migrate(connection, path)
            assert applied(connection) == set(NUMBERS)
            assert number == NUMBERS[-1]
        connection.close()
    assert schema(whole) == schema(late)


def test_a_table_that_holds_the_newest_number_alone_means_all_before(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    connection = sqlite3.connect(path, isolation_level=None)
    migrate(connection, path, upto=2)
    connection.execute("DELETE FROM schema_version")
    connection.execute("INSERT INTO schema_version VALUES (2)")
    assert applied(connection) == {1, 2}
    migrate(connection, path)
    assert applied(connection) == set(NUMBERS) | {1, 2}
    connection.close()


def test_a_migration_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    connection = sqlite3.connect(path, isolation_level=None)
    migrate(connection, path, upto=2)
    connection.execute("CREATE TABLE tickets (x)")
    before = schema(path)
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, path)
    assert (applied(connection), schema(path)) == ({1, 2}, before)
    connection.close()
