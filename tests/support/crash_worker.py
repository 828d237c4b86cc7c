"""Starts the processes that are killed: ``python crash_worker.py``, one request as JSON on a line, one answer each.

``{"start": "a", "folder": F, "target": N, "synchronous": S}`` forks a process that holds ten conversations and answers
with its number; it ends by itself when each has N Terns, 0 = never. ``{"reap": P}`` waits for the end of a process and
answers with its exit code. Forked from a program that has loaded everything, a process starts in milliseconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import crash_desk
from crash_desk import Notes, open_desk

import agboss_memory.stores.sqlite
from agboss import AgbossError, App, RunResult
from agboss.errors import LeaseLostError, StoreLockedError, ThreadBusyError

T = TypeVar("T")

THREADS = tuple(f"t{number}" for number in range(10))
OWN = THREADS[7:]
"""Threads in which every process has Terns of its own. In the others both ask for the same ones."""

TRY_AGAIN = (StoreLockedError, LeaseLostError, ThreadBusyError)
"""What a careful caller answers by asking again, with the same key."""


def key_of(thread: str, name: str, number: int) -> str:
    """The key of a process's Tern; the number counts from 1."""
    return f"{thread}/{name}/{number}" if thread in OWN else f"{thread}/{number}"


def acknowledged(folder: Path, name: str) -> list[dict[str, Any]]:
    """What a process was told, in order. A last line that was cut off was not told."""
    path = folder / f"{name}.acks"
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


async def insist(call: Callable[[], Awaitable[T]]) -> T:
    """Ask until the store is free and the thread ours."""
    while True:
        try:
            return await call()
        except TRY_AGAIN:
            continue


async def talk(app: App, acks: Notes, thread: str, name: str, first: int, target: int) -> None:
    """Hold one conversation from Tern ``first`` on."""
    number = first
    while not target or number <= target:
        key = key_of(thread, name, number)

        async def ask(key: str = key) -> RunResult:
            task = f"Find what belongs to [{key}]"
            try:
                return await app.execute(task, thread=thread, create_thread=True, idempotency_key=key)
            except TRY_AGAIN:
                raise
            except AgbossError as error:
                if not isinstance(error.run, RunResult):
                    raise
                return error.run

        result = await insist(ask)
        told = {
            "key": key,
            "thread": result.thread,
            "tern": result.tern,
            "status": result.status,
            "answer": result.answer,
        }
        acks.write(json.dumps(told))
        number += 1


async def work(folder: Path, name: str, target: int, synchronous: str) -> None:
    """Go on with what was left, then with all conversations at the same time."""
    told = acknowledged(folder, name)
    acks = Notes(folder / f"{name}.acks")
    async with open_desk(f"sqlite:///{folder}/desk.db?synchronous={synchronous}") as app:
        await insist(app.recover)
        async with asyncio.TaskGroup() as group:
            for thread in THREADS:
                first = 1 + sum(item["thread"] == thread for item in told)
                group.create_task(talk(app, acks, thread, name, first, target))


def fork(request: dict[str, Any]) -> int:
    """Start a process that works. Returns its number."""
    process = os.fork()
    if process:
        return process
    code = 1
    folder, name = Path(request["folder"]), request["start"]
    try:
        os.close(0)
        os.close(1)
        crash_desk.notes = Notes(folder / f"{name}.calls", folder / "bell")
        asyncio.run(work(folder, name, request["target"], request["synchronous"]))
        code = 0
    except BaseException:
        (folder / f"{name}.error").write_text(traceback.format_exc(), encoding="utf-8")
    os._exit(code)


async def load() -> None:
    """Load everything that a Tern loads, so that the processes need not."""
    async with open_desk("memory://") as app:
        await app.execute("Find what belongs to [t0/1]")
    assert agboss_memory.stores.sqlite.SqliteStore


def main() -> None:
    asyncio.run(load())
    for line in sys.stdin:
        request = json.loads(line)
        if "reap" in request:
            _, status = os.waitpid(request["reap"], 0)
            answer = os.waitstatus_to_exitcode(status)
        else:
            answer = fork(request)
        print(answer, flush=True)


if __name__ == "__main__":
    main()
