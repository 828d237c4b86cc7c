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
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal, TypeVar

from agboss_memory.errors import StoreError
from agboss_memory.stores.sqlite.faults import store_fault
from agboss_memory.stores.sqlite.migrations import check_version, migrate

T = TypeVar("T")
Synchronous = Literal["FULL", "NORMAL"]
Trace = Callable[[str], None]
_Job = tuple[Callable[[], Any], asyncio.AbstractEventLoop, "asyncio.Future[Any]"]

_Place = tuple[int, int] | None

_WAL_RETRY_SECONDS = 0.005


def _place(path: Path) -> _Place:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


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
        self._connection: sqlite3.Connection | None = None
        self._opened: tuple[_Place, _Place] = (None, None)  # of the file and of its log

    async def open(self) -> None:
        """Connect and migrate. Opening twice is allowed. A failed open leaves nothing behind."""
        with self._lock:
            if self._jobs is not None:
                return
            jobs: SimpleQueue[_Job | None] = SimpleQueue()
            self._jobs = jobs
        worker = threading.Thread(target=_work, args=(jobs,), name=f"agboss-sqlite {self.path.name}", daemon=True)
        worker.start()
        # Not at exit: a close that runs there as well still needs the thread, and a daemon ends by itself.
        weakref.finalize(self, jobs.put, None).atexit = False
        try:
            await self._call(self._connect, keep=True)
        except BaseException:
            self._stop()
            raise

    async def close(self) -> None:
        """Close the file and end the thread. Closing twice is allowed."""
        with self._lock:
            if self._jobs is None:
                return
        try:
            await self._call(self._disconnect, keep=True)
        finally:
            self._stop()

    def _stop(self) -> None:
        with self._lock:
            if self._jobs is not None:
                self._jobs.put(None)
                self._jobs = None

    async def read(self, call: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``call`` on one snapshot of the file."""
        loop = asyncio.get_running_loop()
        return await self._call(lambda: self._transaction("BEGIN", call), loop.create_future())

    async def write(self, call: Callable[[sqlite3.Connection], T], *, keep: bool = False) -> T:
        """Run ``call`` in a transaction that is committed when it returns and rolled back when it raises.

        Args:
            call: What to do.
            keep: Give the result even when the task was cancelled meanwhile; the caller must await again soon.
        """
        return await self._call(lambda: self._write(call), keep=keep)

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

    def _write(self, call: Callable[[sqlite3.Connection], T]) -> T:
        # What is written to a file that nobody can find any more would be acknowledged and lost.
        if self._connection is not None and _place(self.path) != self._opened[0]:
            self._disconnect()
            self._drop_log()
            self._connect()
            raise StoreError(
                "store.replaced",
                f"{self.path} was moved, removed or replaced while it was open; nothing was stored.",
                "Try again: from now on the file that is there now is used. Stop the programs before you move files.",
                path=str(self.path),
            )
        return self._transaction("BEGIN IMMEDIATE", call)

    def _drop_log(self) -> None:
        """Remove the write-ahead log of the file that is gone: SQLite would play it into the new one."""
        log = Path(f"{self.path}-wal")
        if self._opened[1] is not None and _place(log) == self._opened[1]:
            for left in (log, Path(f"{self.path}-shm")):
                left.unlink(missing_ok=True)

    def _transaction(self, begin: str, call: Callable[[sqlite3.Connection], T]) -> T:
        connection = self._connection
        if connection is None:
            raise StoreError(
                "store.closed", f"The store in {self.path} is closed.", "Open it again.", path=str(self.path)
            )
        connection.execute(begin)
        try:
            result = call(connection)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return result

    def _connect(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=self._timeout, isolation_level=None, check_same_thread=False)
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
        self._opened = (_place(self.path), _place(Path(f"{self.path}-wal")))

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
