"""One Tern at a time per thread, first come first served, within one process."""

from __future__ import annotations

import asyncio
from typing import TypeAlias

from agboss.errors import ThreadBusyError
from agboss_memory.records import Struct

Line: TypeAlias = tuple[str | None, ...]
"""Names a line. The first part says of what kind, so that no id of one kind can meet one of another."""


def thread_line(thread: str) -> Line:
    """The line of a thread."""
    return ("thread", thread)


class _Line(Struct):
    lock: asyncio.Lock
    users: int = 0


class ThreadQueue:
    """Lines of waiting Terns, one per key; a line without users is forgotten.

    asyncio's lock wakes its waiters in the order in which they came.
    """

    def __init__(self) -> None:
        self._lines: dict[Line, _Line] = {}
        self._emptied = asyncio.Event()

    async def drained(self) -> None:
        """Wait until nobody is inside or waiting."""
        while self._lines:
            self._emptied.clear()
            await self._emptied.wait()

    def __len__(self) -> int:
        return len(self._lines)

    async def enter(self, key: Line, wait: float | None) -> None:
        """Wait for one's turn, at most ``wait`` seconds (None = for ever, 0 = not at all). Raises ThreadBusyError."""
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _Line(asyncio.Lock())
        elif wait == 0:
            raise _busy(key, 0)
        line.users += 1
        try:
            if line.users == 1:
                await line.lock.acquire()
            else:  # whoever is not alone may have to wait, also when the lock is free at this moment
                async with asyncio.timeout(wait):
                    await line.lock.acquire()
        except TimeoutError:
            self._forget(key, line)
            raise _busy(key, wait) from None
        except BaseException:
            self._forget(key, line)
            raise

    def busy(self, key: Line) -> bool:
        """Whether somebody is inside or waiting."""
        return key in self._lines

    def leave(self, key: Line) -> None:
        """Let the next one in."""
        line = self._lines[key]
        line.lock.release()
        self._forget(key, line)

    def _forget(self, key: Line, line: _Line) -> None:
        line.users -= 1
        if line.users == 0:
            del self._lines[key]
            if not self._lines:
                self._emptied.set()


def _busy(key: Line, wait: float | None) -> ThreadBusyError:
    return ThreadBusyError(
        "run.thread-busy",
        f"{key[0]} {key[-1]!r} is busy with another Tern" + (f" for more than {wait:g} s" if wait else ""),
        "wait for it, raise queue_timeout, or use thread_policy='enqueue'",
        **{key[0] or "thread": key[-1]},
    )
