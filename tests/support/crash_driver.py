"""Kills the processes of the kill tests, and says what must hold after each kill."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import select
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import crash_worker
from crash_desk import EVERY, answer_of, booked_for, key_in, open_desk
from crash_worker import OWN, THREADS, acknowledged

from agboss_memory import TernStatus
from agboss_memory.stores.copies import TernCopy, ThreadCopy

NAMES = ("a", "b")
PATIENCE = 90
"""Seconds without any line of any process after which the test has failed."""

KEPT = "SELECT task, step_key FROM steps JOIN terns ON terns.thread_key = steps.thread_key AND seq = tern_seq"
HELD = "SELECT key, running FROM threads WHERE running <> 0"
ROW = "SELECT status, answer, usage, said, finished_at, path FROM terns WHERE thread_key = ? AND seq = ?"
ENDED = "SELECT task FROM terns WHERE status <> 'running'"

LOCKED = (sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_BUSY)


class Nursery:
    """Starts processes and waits for their end."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-W", "error", crash_worker.__file__]
        pipe = subprocess.PIPE
        self._program = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)

    def ask(self, **request: Any) -> int:
        assert self._program.stdin
        assert self._program.stdout
        self._program.stdin.write(f"{json.dumps(request)}\n")
        self._program.stdin.flush()
        return int(self._program.stdout.readline())

    def close(self) -> None:
        self._program.communicate(timeout=PATIENCE)


def state_of(pid: int) -> str:
    """The letter that the system shows for a process."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]


class Round:
    """Two processes on one file, killed again and again.

    Args:
        nursery: Starts them.
        folder: An empty folder.
        random: Decides everything.
    """

    def __init__(self, nursery: Nursery, folder: Path, random: random.Random) -> None:
        self.folder = folder
        self.random = random
        self.kills = 0
        self.given_up = 0
        self._nursery = nursery
        self._synchronous = random.choice(("NORMAL", "NORMAL", "NORMAL", "FULL"))
        self._pids: dict[str, int] = {}
        self._read = dict.fromkeys(NAMES, 0)
        self._kept: set[tuple[str, str]] = set()
        os.mkfifo(folder / "bell")
        self._bell = os.open(folder / "bell", os.O_RDWR | os.O_NONBLOCK)

    def start(self, name: str, target: int = 0) -> None:
        self._pids[name] = self._nursery.ask(
            start=name, folder=str(self.folder), target=target, synchronous=self._synchronous
        )

    def progress(self, lines: int) -> None:
        """Wait until the processes have written so many lines, and a random few microseconds more."""
        while lines > 0:
            assert select.select([self._bell], [], [], PATIENCE)[0], self._story("nothing happens any more")
            lines -= len(os.read(self._bell, lines))
        until = time.perf_counter() + self.random.randrange(3000) / 1e6
        while time.perf_counter() < until:
            pass

    def signal(self, name: str, number: signal.Signals) -> None:
        os.kill(self._pids[name], number)

    def freeze(self, name: str) -> None:
        self.signal(name, signal.SIGSTOP)
        while state_of(self._pids[name]) not in "TZ":
            os.sched_yield()

    def kill(self, *names: str) -> None:
        """Kill them, and look at what they left while the others stand still."""
        for name in names:
            self.signal(name, signal.SIGKILL)
            self.kills += 1
        for name in names:
            code = self._nursery.ask(reap=self._pids[name])
            assert code == -signal.SIGKILL, self._story(f"process {name} ended by itself with {code}")
        others = [name for name in NAMES if name not in names]
        while not self._look(others):
            pass

    def _look(self, others: list[str]) -> bool:
        """Read calls and journal while the others stand still. False when one of them holds the file's inner locks."""
        for name in others:
            self.freeze(name)
        try:
            self._no_call_twice()
            self._read_journal()
        except sqlite3.OperationalError as error:
            if not others or error.sqlite_errorcode not in LOCKED:
                raise
            return False
        finally:
            for name in others:
                self.signal(name, signal.SIGCONT)
        return True

    def stop_with_terns(self, name: str) -> list[tuple[int, int]]:
        """Stop a process while it runs Terns and holds no lock of the file; thread keys and numbers of those Terns."""
        while True:
            self.freeze(name)
            try:
                with closing(sqlite3.connect(self.folder / "desk.db", timeout=0, isolation_level=None)) as connection:
                    connection.execute("BEGIN IMMEDIATE")
                    held = connection.execute(HELD).fetchall()
                    connection.execute("ROLLBACK")
                if held:
                    return held
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode not in LOCKED:
                    raise
            self.signal(name, signal.SIGCONT)
            self.progress(1)

    def until_ended(self, held: list[tuple[int, int]]) -> list[tuple[Any, ...]]:
        """Wait until somebody has ended these Terns; their rows then."""
        while True:
            rows = self.rows(held)
            if all(row[0] != "running" for row in rows):
                return rows
            self.progress(1)

    def rows(self, held: list[tuple[int, int]]) -> list[tuple[Any, ...]]:
        """What is stored of Terns, memory work apart."""
        with closing(sqlite3.connect(f"{(self.folder / 'desk.db').as_uri()}?mode=ro", uri=True)) as connection:
            return [connection.execute(ROW, one).fetchone() for one in held]

    def finish(self, target: int) -> None:
        """Let both hold every conversation up to Tern ``target``."""
        for name in NAMES:
            self.start(name, target)
        for name in NAMES:
            code = self._nursery.ask(reap=self._pids[name])
            assert code == 0, self._story(f"process {name} ended with {code}")
        self._no_call_twice()

    def abandon(self) -> None:
        """End what still runs."""
        for pid in self._pids.values():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        os.close(self._bell)

    def furthest(self) -> int:
        """The most Terns that a process was told of in one thread."""
        told = [item for name in NAMES for item in acknowledged(self.folder, name)]
        return max((int(item["key"].rpartition("/")[2]) for item in told), default=0)

    async def check(self, *, ended: bool = False) -> None:
        """What every reader must find. With ``ended`` nothing runs any more."""
        told = [item for name in NAMES for item in acknowledged(self.folder, name)]
        async with open_desk(f"sqlite:///{self.folder}/desk.db") as app:
            copies = {item.id: (await app.threads.export(item.id)).copy for item in await app.threads.list()}
            findings = await app.threads.check()
            assert findings == (), self._story("the check found something")
        for copy in copies.values():
            self._check_terns(copy)
            self._check_summaries(copy, ended=ended)
        for item in told:
            stored: TernCopy = copies[item["thread"]].terns[int(item["tern"]) - 1]
            tern = stored.tern
            assert (key_in(tern.task), tern.status, tern.answer) == (item["key"], item["status"], item["answer"]), item
        if ended:
            self._check_end(copies)

    def _check_terns(self, copy: ThreadCopy) -> None:
        """Numbers without a gap, every key once and in order, every call of an answered Tern booked once."""
        assert [item.tern.number for item in copy.terns] == list(range(1, len(copy.terns) + 1)), copy.thread
        keys = [key_in(item.tern.task) for item in copy.terns]
        streams = NAMES if copy.thread in OWN else ("",)
        for name in streams:
            own = [int(key.rpartition("/")[2]) for key in keys if key.startswith(f"{copy.thread}/{name}")]
            assert own == list(range(1, len(own) + 1)), (copy.thread, keys)
        for item, key in zip(copy.terns, keys, strict=True):
            assert item.idempotency_key == key
            steps = [booked.step_key for booked in item.usage]
            assert len(steps) == len(set(steps)), (key, steps)
            if item.tern.status is TernStatus.ANSWERED:
                assert item.tern.answer == answer_of(key)
                records = [booked.record for booked in item.usage]
                paid = sorted((r.caller, r.purpose, r.usd) for r in records if r.purpose != "compaction")
                assert paid == booked_for(key), (key, paid)
            elif item.tern.error_code == "run.gave-up":
                self.given_up += 1
            else:  # its process was gone, and the other one had a Tern of its own for the thread
                assert item.tern.status in (TernStatus.CANCELLED, TernStatus.RUNNING), item.tern
                assert copy.thread in OWN or item.tern.status is TernStatus.RUNNING, item.tern

    def _check_summaries(self, copy: ThreadCopy, *, ended: bool) -> None:
        """No range twice, no two active ones that overlap, each one paid for."""
        found = [item.summary for item in copy.summaries]
        ranges = [(one.agent, one.kind, one.first, one.last) for one in found]
        assert len(ranges) == len(set(ranges)), (copy.thread, ranges)
        for agent in {one.agent for one in found}:
            active = sorted((one.first, one.last) for one in found if one.agent == agent and one.state == "active")
            assert all(before[1] < after[0] for before, after in itertools.pairwise(active)), active
            caller = agent or "compaction"
            paid = [b for item in copy.terns for b in item.usage if b.record.purpose == "compaction"]
            paid = [b for b in [*paid, *copy.unbound] if b.record.caller == caller]
            made = [one for one in found if one.agent == agent]
            assert len(paid) >= len(made) or not ended, (copy.thread, caller, len(paid), len(made))
        if ended:
            blocks = [(one.first, one.last) for one in found if not one.agent and one.state == "active"]
            full = len(copy.terns) // EVERY * EVERY
            assert sorted(blocks) == [(first, first + EVERY - 1) for first in range(1, full, EVERY)], copy.thread
            assert not copy.work, copy.work

    def _check_end(self, copies: dict[str, ThreadCopy]) -> None:
        assert sorted(copies) == sorted(THREADS)
        assert all(item.tern.status.finished for copy in copies.values() for item in copy.terns)
        with closing(sqlite3.connect(self.folder / "desk.db")) as connection:
            assert connection.execute("SELECT count(*) FROM steps").fetchone() == (0,)

    def _read_journal(self) -> None:
        """Remember what must not be done again: the kept steps, and all that finished Terns did."""
        with closing(sqlite3.connect(f"{(self.folder / 'desk.db').as_uri()}?mode=ro", uri=True)) as connection:
            rows = connection.execute(KEPT).fetchall()
            ended = connection.execute(ENDED).fetchall()
        self._kept |= {(key_in(task), re.sub(r"\.\d+\.", ".", step, count=1)) for task, step in rows}
        self._kept |= {(key_in(task), "") for (task,) in ended}

    def _no_call_twice(self) -> None:
        """No call began since the last look that was kept by then."""
        for name in NAMES:
            path = self.folder / f"{name}.calls"
            lines = path.read_text(encoding="ascii").splitlines() if path.exists() else []
            for line in lines[self._read[name] :]:
                what, key, call = line.split()
                again = {(key, call), (key, "")} & self._kept
                assert what != "begin" or not again, self._story(f"{line!r} in process {name}, though it was kept")
            self._read[name] = len(lines)

    def _story(self, text: str) -> str:
        errors = [path.read_text(encoding="utf-8") for path in sorted(self.folder.glob("*.error"))]
        return "\n".join([text, f"after {self.kills} kills in {self.folder}", *errors])
