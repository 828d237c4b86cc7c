"""Memory work of two processes on one file: what one is at, the other does not pay for; what a dead one left is done once."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import remembering_desk
from remembering_desk import open_desk

from agboss import App, ModelRequest, ThreadBusyError
from agboss_memory import SqliteStore


class Waiting(SqliteStore):
    """Says when somebody waits for a thread."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, synchronous="NORMAL")
        self.waits = asyncio.Event()

    async def wait(self, key: int, seconds: float) -> None:
        self.waits.set()
        await super().wait(key, seconds)


async def at_once(_: ModelRequest) -> None:
    return


@asynccontextmanager
async def remembering(folder: Path, purpose: str = "compaction", work: str = "inline") -> AsyncGenerator[Process]:
    """Another process, whose memory is at work on Tern 1."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = (sys.executable, remembering_desk.__file__, str(folder), purpose, work)
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, env=environment)
    assert process.stdout
    assert await process.stdout.readline() == b"working\n"
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def calls(folder: Path) -> list[str]:
    return (folder / "calls.txt").read_text(encoding="utf-8").split()


async def ranges(app: App) -> list[tuple[int, int]]:
    return [(one.first, one.last) for one in await app.memory.summaries("t")]


@pytest.mark.parametrize("work", ["inline", "background"])
@pytest.mark.parametrize("purpose", ["memory", "compaction"])
async def test_the_next_turn_waits_for_the_work_of_another_process(tmp_path: Path, purpose: str, work: str) -> None:
    async with remembering(tmp_path, purpose, work) as other:
        store = Waiting(tmp_path / "desk.db")
        async with open_desk(tmp_path, "b", at_once, store=store) as app:
            following = asyncio.create_task(app.execute("Two.", thread="t"))
            await store.waits.wait()
            assert other.stdin
            other.stdin.write(b"\n")
            await other.stdin.drain()
            assert (await following).tern == 2
            assert await other.wait() == 0
            assert calls(tmp_path) == ["a:memory", "a:compaction", "b:memory", "b:compaction"]
            assert await ranges(app) == [(1, 1), (2, 2)]
            assert await app.threads.check() == ()


@pytest.mark.parametrize("purpose", ["memory", "compaction"])
async def test_the_work_of_a_dead_process_is_taken_over(tmp_path: Path, purpose: str) -> None:
    async with remembering(tmp_path, purpose) as other:
        store = Waiting(tmp_path / "desk.db")
        async with open_desk(tmp_path, "b", at_once, store=store) as app:
            following = asyncio.create_task(app.execute("Two.", thread="t"))
            await store.waits.wait()
            other.kill()
            assert (await following).tern == 2
            begun = calls(tmp_path)
            assert begun.count("b:compaction") == 2
            assert begun.count("b:memory") == (2 if purpose == "memory" else 1)
            assert await ranges(app) == [(1, 1), (2, 2)]
            assert await app.threads.check() == ()


@pytest.mark.parametrize("purpose", ["memory", "compaction"])
async def test_recover_does_what_a_dead_process_left_and_nothing_else(tmp_path: Path, purpose: str) -> None:
    async with remembering(tmp_path, purpose) as other, open_desk(tmp_path, "b", at_once) as app:
        begun = calls(tmp_path)
        assert await app.recover() == ()
        with pytest.raises(ThreadBusyError):
            await app.memory.compact("t")
        assert calls(tmp_path) == begun
        other.kill()
        await other.wait()
        async with open_desk(tmp_path, "c", at_once) as third:
            await asyncio.gather(app.recover(), third.recover(), app.recover())
        made = [call[2:] for call in calls(tmp_path)[len(begun) :]]
        assert made == ["memory", "compaction"][purpose == "compaction" :]
        assert await ranges(app) == [(1, 1)]
        done = calls(tmp_path)
        assert await app.recover() == ()
        assert calls(tmp_path) == done
        copy = (await app.threads.export("t")).copy
        assert (copy.work, [block.state for block in copy.blocks]) == ((), ["done"])
        assert await app.threads.check() == ()
