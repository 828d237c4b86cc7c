"""One SQLite connection on one thread of its own, called from any event loop.

A write that has begun always ends. A cancellation that arrives meanwhile is raised when it has ended or, where the
caller must have the result (``keep``), at the caller's next await. A read is given up at once.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal, TypeVar

from agboss_memory.errors import StoreError
from agboss_memory.stores.sqlite.faults import store_fault
from agboss_memory.stores.sqlite.migrations import check_version, migrate
from agboss_memory.stores.sqlite.places import (
    LEAST,
    Extent,
    Opened,
    Place,
    cut_off,
    drop_logs,
    log_size,
    look,
    make_whole,
    missing,
    place_of,
    refuse_cut,
    refuse_place,
    replaced,
)

T = TypeVar("T")
Synchronous = Literal["FULL", "NORMAL"]
Trace = Callable[[str], None]
_Job = tuple[Callable[[], Any], asyncio.AbstractEventLoop, "asyncio.Future[Any]"]

_WAL_RETRY_SECONDS = 0.005


class _Unstoppable(asyncio.Future[T]):
    """A future that no cancellation of its waiter reaches: the task notes it and learns of it at the result."""

    def cancel(self, msg: Any | None = None) -> bool:
        return False


def _answer(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def _work(jobs: SimpleQueue[_Job | None]) -> None:
    while (job := jobs.get()) is not None:
        call, loop, future = job
        result, error = None, None
        try:
            result = call()
        except BaseException as raised:
            error = raised
        with suppress(RuntimeError):  # the caller's loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_answer, future, result, error)
        del job, call, loop, future, result, error


async def _outlast(future: asyncio.Future[T]) -> T:
    """Wait for ``future`` whatever happens to this task; a cancellation is handed on afterwards."""
    try:
        return await future
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or not future.done():
            raise
        # The message must survive: cancel scopes know their own cancellation by it.
        task.uncancel()
        task.cancel(*error.args)
        return future.result()


def _enter_wal(connection: sqlite3.Connection, timeout: float) -> None:
    # SQLite does not wait for other starters when it changes the journal mode: do it here.
    deadline = time.monotonic() + timeout
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
            time.sleep(_WAL_RETRY_SECONDS)
        else:
            return


class Connection:
    """A connection whose statements run on its own daemon thread, one call after the other.

    Args:
        path: The database file. Its folder is made when it is missing.
        synchronous: ``FULL`` or ``NORMAL``.
        timeout: How long to wait for a lock, in seconds.
        trace: Called on the connection's thread with every statement that runs.
    """

    def __init__(self, path: Path, *, synchronous: Synchronous, timeout: float, trace: Trace | None = None) -> None:
        self.path = path
        self._synchronous: Synchronous = synchronous
        self._timeout = timeout
        self._trace = trace
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[_Job | None] | None = None
        self._users: list[asyncio.AbstractEventLoop] = []  # the event loop of every open that was not closed yet
        self._connection: sqlite3.Connection | None = None
        self._opened = Opened()
        self._extent: Extent = (0, 0)  # of the file when it was last known to be whole
        self._away = False  # the file was let go because it was no longer at its path
        self.files = 0
        """How often another file was found at the path; counts on the connection's thread."""

    async def open(self) -> None:
        """Connect and migrate, or share the connection that is open already. A failed open leaves nothing behind."""
        loop = asyncio.get_running_loop()
        with self._lock:
            self._users.append(loop)
            jobs = self._jobs
            if jobs is None:
                jobs = self._jobs = SimpleQueue[_Job | None]()
                self._start(jobs)
        try:
            await self._call(self._enter, keep=True)
        except BaseException:
            self._leaves(loop)
            self._stop()
            raise

    def _start(self, jobs: SimpleQueue[_Job | None]) -> None:
        worker = threading.Thread(target=_work, args=(jobs,), name=f"agboss-sqlite {self.path.name}", daemon=True)
        worker.start()
        # Not at exit: a close that runs there as well still needs the thread, and a daemon ends by itself.
        weakref.finalize(self, jobs.put, None).atexit = False

    async def close(self) -> None:
        """End one open; the last one closes the file and ends the thread. Closing what is closed is allowed."""
        if self._leaves(asyncio.get_running_loop()) or self._jobs is None:
            return
        try:
            await self._call(self._leave, keep=True)
        finally:
            self._stop()

    def _leaves(self, loop: asyncio.AbstractEventLoop) -> bool:
        """One user fewer; says whether others are left. Those of a closed event loop can never close."""
        with self._lock:
            left = [one for one in self._users if not one.is_closed()]
            if loop in left:
                left.remove(loop)
            elif left and len(left) == len(self._users):
                left.pop()
            self._users = left
            return bool(left)

    def _stop(self) -> None:
        """End the thread, unless somebody has opened again meanwhile."""
        with self._lock:
            if self._jobs is not None and not self._users:
                self._jobs.put(None)
                self._jobs = None

    async def read(self, call: Callable[[sqlite3.Connection], T], *, since: int | None = None) -> T:
        """Run ``call`` on one snapshot of the file. ``since``: see ``write``."""
        loop = asyncio.get_running_loop()
        return await self._call(lambda: self._run("BEGIN", call, since), loop.create_future())

    async def write(
        self, call: Callable[[sqlite3.Connection], T], *, keep: bool = False, since: int | None = None
    ) -> T:
        """Run ``call`` in a transaction that is committed when it returns and rolled back when it raises.

        Args:
            call: What to do.
            keep: Give the result even when the task was cancelled meanwhile; the caller must await again soon.
            since: What ``files`` was when that began of which this is a part; None = it begins with this call.
        """
        return await self._call(lambda: self._run("BEGIN IMMEDIATE", call, since), keep=keep)

    async def _call(self, call: Callable[[], T], future: asyncio.Future[T] | None = None, *, keep: bool = False) -> T:
        loop = asyncio.get_running_loop()
        future = future or _Unstoppable(loop=loop)
        with self._lock:
            if self._jobs is None:
                raise StoreError(
                    "store.closed", f"The store in {self.path} is not open.", "Open it first.", path=str(self.path)
                )
            self._jobs.put((call, loop, future))
        try:
            return await (_outlast(future) if keep else future)
        except (sqlite3.Error, OSError) as error:
            raise store_fault(error, self.path) from error

    def _run(self, begin: str, call: Callable[[sqlite3.Connection], T], since: int | None = None) -> T:
        here, extent = look(self.path)
        self._follow(here)
        if since not in (None, self.files):
            raise replaced(self.path)
        if here is not None and extent[0] < LEAST:  # a connection must not look: SQLite would take it for a new file
            raise cut_off(self.path, extent[0], "not even its first page is left")
        return self._transaction(begin, call, extent)

    def _follow(self, here: Place) -> None:
        """Let go of a file that nobody can find any more, and take the one that is there; none is made."""
        # What is written to such a file would be acknowledged and lost; what is read from it is old.
        if self._connection is not None and here != self._opened.file:
            self._let_go(here)
        if not self._away:
            return
        if here is None:
            raise missing(self.path)
        before = self._opened.file
        self._connect("rw")
        if self._opened.file != before:
            self.files += 1
            raise replaced(self.path)

    def _let_go(self, here: Place) -> None:
        if self._connection is not None and not make_whole(self._connection):
            raise missing(self.path) if here is None else replaced(self.path)  # the next call tries again
        self._disconnect()
        drop_logs(self.path, self._opened)
        self._away = True

    def _enter(self) -> None:
        if self._connection is None and not self._away:
            self._connect("rwc")

    def _leave(self) -> None:
        """Close the file. One that was moved is made whole first, unless others use it still: then they do that."""
        moved = self._connection is not None and place_of(self.path) != self._opened.file
        if self._connection is not None and moved and make_whole(self._connection):
            self._disconnect()
            drop_logs(self.path, self._opened)
        self._disconnect()
        self._away = False

    def _transaction(self, begin: str, call: Callable[[sqlite3.Connection], T], extent: Extent) -> T:
        connection = self._connection
        if connection is None:
            raise StoreError(
                "store.closed", f"The store in {self.path} is closed.", "Open it again.", path=str(self.path)
            )
        connection.execute(begin)
        try:
            if extent != self._extent:  # once per checkpoint, not per Tern
                self._extent = refuse_cut(connection, self.path, self._extent)
            result = call(connection)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return result

    def _connect(self, mode: Literal["rw", "rwc"]) -> None:
        refuse_place(self.path)
        if mode == "rwc":
            self.path.parent.mkdir(parents=True, exist_ok=True)
        if log_size(self.path):  # the last connection that may write plays the log into the file, whose ever it is
            with closing(self._reach("ro")) as peeking:
                check_version(peeking, self.path)
        connection = self._reach(mode)
        try:
            connection.set_trace_callback(self._trace)
            check_version(connection, self.path)  # before anything is written to a file that may not be ours
            _enter_wal(connection, self._timeout)
            connection.execute(f"PRAGMA synchronous={self._synchronous}")
            connection.execute("PRAGMA foreign_keys=ON")
            migrate(connection, self.path)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        self._opened, self._away = Opened.at(self.path), False
        self._extent = look(self.path)[1]

    def _reach(self, mode: Literal["ro", "rw", "rwc"]) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self.path.as_uri()}?mode={mode}",
            uri=True,
            timeout=self._timeout,
            isolation_level=None,
            check_same_thread=False,
        )

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
