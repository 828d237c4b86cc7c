"""A path that holds no store and may not become one: refused by name, and nothing is written there."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agboss_memory.errors import StoreError
from agboss_memory.stores import SqliteStore
from agboss_memory.stores.sqlite.migrations import migrate, scripts
from agboss_memory.stores.sqlite.owner import APPLICATION
from agboss_memory.testing.store_requests import run_tern

TABLES = {
    "one of another program": ["CREATE TABLE users (name)", "INSERT INTO users VALUES ('ada')"],
    "one of our name": ["CREATE TABLE threads (name)"],
    "a version table too": [
        "CREATE TABLE schema_version (v)",
        "INSERT INTO schema_version VALUES (3)",
        "CREATE TABLE a (b)",
    ],
    "a version table of another form": ["CREATE TABLE schema_version (v)", "INSERT INTO schema_version VALUES (3)"],
    "a version table with text": ["CREATE TABLE schema_version (version)", "INSERT INTO schema_version VALUES ('1.2')"],
    "a version of ours without its tables": [
        "CREATE TABLE schema_version (version INTEGER NOT NULL)",
        "INSERT INTO schema_version VALUES (3)",
    ],
    "a high version and other tables": [
        "CREATE TABLE schema_version (version INTEGER NOT NULL)",
        "INSERT INTO schema_version VALUES (20260101)",
        "CREATE TABLE users (name)",
    ],
    "a view": ["CREATE VIEW one AS SELECT 1"],
    "a mark of another program": ["PRAGMA application_id=252006674"],
    "a log of its own": ["PRAGMA journal_mode=WAL", "CREATE TABLE users (name)"],
}


def make(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement).fetchall()


def content(folder: Path) -> dict[str, bytes]:
    return {item.name: item.read_bytes() for item in folder.iterdir() if item.is_file()}


def names(folder: Path) -> list[str]:
    return [item.name for item in folder.iterdir()]


async def refused(path: Path) -> StoreError:
    store = SqliteStore(path, synchronous="NORMAL", timeout=0)
    with pytest.raises(StoreError) as caught:
        await store.open()
    assert str(path) in caught.value.message
    assert caught.value.hint
    assert caught.value.data["path"] == str(path)
    return caught.value


@pytest.mark.parametrize("made", TABLES.values(), ids=TABLES.keys())
async def test_a_file_of_another_program_is_left_as_it_is(tmp_path: Path, made: list[str]) -> None:
    make(tmp_path / "their.db", *made)
    before = content(tmp_path)
    error = await refused(tmp_path / "their.db")
    assert error.code == "store.foreign"
    assert "nothing was written" in error.message
    assert content(tmp_path) == before


async def test_what_was_found_is_told_and_not_all_of_it(tmp_path: Path) -> None:
    make(tmp_path / "their.db", *(f'CREATE TABLE "t{n}\n" (x)' for n in range(20)), "PRAGMA application_id=7")
    error = await refused(tmp_path / "their.db")
    assert r"tables 't0\n', 't1\n', 't10\n', 't11\n', 't12\n' and 15 more" in error.message
    assert "application id 7" in error.message
    assert error.data["application_id"] == 7
    assert len(error.data["tables"]) == 20


@pytest.mark.parametrize("ended", [True, False], ids=["ended", "running"])
async def test_what_another_program_has_only_in_its_log_is_seen_and_stays_there(tmp_path: Path, ended: bool) -> None:
    """Its log is not played into the file when ours is the last connection."""
    work = tmp_path / "work"
    work.mkdir()
    other = sqlite3.connect(work / "their.db", isolation_level=None)
    for statement in ("PRAGMA journal_mode=WAL", "CREATE TABLE users (name)", "INSERT INTO users VALUES ('ada')"):
        other.execute(statement).fetchall()
    folder = work
    if ended:  # as a kill leaves it
        folder = tmp_path / "left"
        shutil.copytree(work, folder)
    before = content(folder)
    assert before["their.db-wal"]
    assert (await refused(folder / "their.db")).code == "store.foreign"
    after = content(folder)
    assert {name: after[name] for name in ("their.db", "their.db-wal")} == {
        name: before[name] for name in ("their.db", "their.db-wal")
    }
    assert after.keys() == before.keys()
    assert other.execute("SELECT name FROM users").fetchall() == [("ada",)]
    other.close()


async def test_a_file_of_another_program_that_takes_the_place_of_an_open_one(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db", synchronous="NORMAL")
    await store.open()
    await run_tern(store)
    make(tmp_path / "their.db", "CREATE TABLE users (name)")
    (tmp_path / "s.db").rename(tmp_path / "moved.db")
    (tmp_path / "their.db").rename(tmp_path / "s.db")
    before = (tmp_path / "s.db").read_bytes()
    for _ in range(2):
        with pytest.raises(StoreError) as caught:
            await run_tern(store)
        assert caught.value.code == "store.foreign"
    await store.close()
    assert (tmp_path / "s.db").read_bytes() == before


NEW = {
    "no byte": [],
    "no table": ["PRAGMA user_version=1", "PRAGMA user_version=0"],
    "a version of its own": ["PRAGMA user_version=9"],
    "tables that are gone": ["CREATE TABLE a (b)", "DROP TABLE a"],
    "an empty table of versions": ["CREATE TABLE schema_version (version INTEGER NOT NULL)"],
}


@pytest.mark.parametrize("made", NEW.values(), ids=NEW.keys())
async def test_a_file_without_tables_becomes_a_store(tmp_path: Path, made: list[str]) -> None:
    path = tmp_path / "new.db"
    path.touch()
    make(path, *made)
    store = SqliteStore(path, synchronous="NORMAL")
    for number in (1, 2):
        await store.open()
        assert (await run_tern(store))[0].number == number
        await store.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION,)


@pytest.mark.parametrize("mark", [0, 7])
@pytest.mark.parametrize("version", [number for number, _ in scripts()])
async def test_b110_a_store_is_known_by_its_tables_also_beside_others(tmp_path: Path, version: int, mark: int) -> None:
    """Earlier releases set no mark, and took over files of others; a dump that is read in again has none."""
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrate(connection, path, upto=version)
    make(path, f"PRAGMA application_id={mark}", "CREATE TABLE users (name)")
    store = SqliteStore(path, synchronous="NORMAL")
    await store.open()
    assert (await run_tern(store))[0].number == 1
    assert await store.check() == ()
    await store.close()
    with closing(sqlite3.connect(path)) as connection:
        kept = connection.execute("PRAGMA application_id").fetchone()[0]
    assert kept == mark or (mark == 0 and kept == APPLICATION)


async def test_a_newer_store_without_the_tables_of_today_is_known_by_its_mark(tmp_path: Path) -> None:
    make(
        tmp_path / "s.db",
        f"PRAGMA application_id={APPLICATION}",
        "CREATE TABLE schema_version (version INTEGER NOT NULL)",
        "INSERT INTO schema_version VALUES (999)",
        "CREATE TABLE episodes (x)",
    )
    before = content(tmp_path)
    error = await refused(tmp_path / "s.db")
    assert (error.code, error.data["version"]) == ("store.newer-schema", 999)
    assert content(tmp_path) == before


@given(data=st.binary(max_size=300), sqlite=st.booleans())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_any_bytes_are_refused_and_left_alone(tmp_path: Path, data: bytes, sqlite: bool) -> None:
    data = b"SQLite format 3\x00" + data if sqlite else data or b"x"
    path = tmp_path / "any.db"
    path.write_bytes(data)
    assert (await refused(path)).code == "store.corrupt"
    assert content(tmp_path) == {"any.db": data}


@pytest.mark.parametrize("what", ["folder", "pipe", "device"])
async def test_what_is_no_file_is_named(tmp_path: Path, what: str) -> None:
    path = tmp_path / "place.db"
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/null")
    error = await refused(path)
    assert error.code == "store.no-file"
    assert ("is a folder" if what == "folder" else "is no regular file") in error.message
    assert names(tmp_path) == ["place.db"]


async def test_a_file_in_the_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file" / "log.db", tmp_path / "file" / "more" / "log.db"):
        error = await refused(path)
        assert error.code == "store.no-file"
        assert f"{tmp_path / 'file'} is no folder" in error.message


async def test_a_name_that_is_too_long_or_leads_round(tmp_path: Path) -> None:
    (tmp_path / "round").symlink_to(tmp_path / "round")
    for name in ("x" * 300, "round", "round/s.db"):
        assert (await refused(tmp_path / name)).code == "store.failed"


async def test_a_log_without_its_file_is_not_thrown_away(tmp_path: Path) -> None:
    """SQLite removes a log beside an empty file, and with it what was acknowledged."""
    (tmp_path / "s.db").touch()
    (tmp_path / "s.db-wal").write_bytes(b"x" * 5000)
    before = content(tmp_path)
    error = await refused(tmp_path / "s.db")
    assert error.code == "store.corrupt"
    assert "s.db-wal" in error.hint
    assert content(tmp_path) == before


OPEN = """
import asyncio, os, sys
from pathlib import Path
from agboss_memory.errors import StoreError
from agboss_memory.stores import SqliteStore
from agboss_memory.testing.store_requests import run_tern

if sys.argv[2] == "nobody":
    os.setgroups([]); os.setgid(65534); os.setuid(65534)

async def main():
    store = SqliteStore(Path(sys.argv[1]))
    try:
        await store.open()
        await run_tern(store)
        print("stored")
    except StoreError as error:
        print(error.code, error.hint)
    await store.close()

asyncio.run(main())
"""


def open_as(path: Path, who: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", OPEN, str(path), who], capture_output=True, text=True, check=True, cwd=Path.cwd()
    )
    return done.stdout


@contextmanager
def reachable(folder: Path) -> Generator[None]:
    """Let others into the folders above."""
    changed = [(item, item.stat().st_mode) for item in (folder, *folder.parents) if not item.stat().st_mode & 0o1]
    for item, mode in changed:
        item.chmod(mode | 0o755)
    yield
    for item, mode in changed:
        item.chmod(mode)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("what", ["file", "folder", "both", "new file", "new folder"])
async def test_what_this_user_may_not_write_is_told_so(tmp_path: Path, what: str) -> None:
    folder = tmp_path / "place"
    folder.mkdir()
    path = folder / "s.db"
    if "new" not in what:
        store = SqliteStore(path)
        await store.open()
        await run_tern(store)
        await store.close()
        path.chmod(0o666 if what == "folder" else 0o444)
    folder.chmod(0o777 if what == "file" else 0o555)
    before = content(folder)
    with reachable(folder):
        told = open_as(path.parent / "a" / "b" / "s.db" if what == "new folder" else path, "nobody")
    assert told.startswith("store.read-only ")
    assert "right to write" in told
    assert {name: data for name, data in content(folder).items() if data and not name.endswith("-shm")} == before
