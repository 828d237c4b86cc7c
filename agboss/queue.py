"""One Tern at a time per thread, first come first served, within one process."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from agboss.errors import ThreadBusyError


@dataclass(slots=True)
class _Line:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class ThreadQueue:
    """Lines of waiting Terns, one per key; a line without users is forgotten.

    asyncio's lock wakes its waiters in the order in which they came.

    Args:
        what: What the keys are, for errors.
    """

    def __init__(self, what: str = "thread") -> None:
        self._what = what
        self._lines: dict[str, _Line] = {}

    def __len__(self) -> int:
        return len(self._lines)

    async def enter(self, key: str, wait: float | None) -> None:
        """Wait for one's turn, at most ``wait`` seconds (None = for ever, 0 = not at all). Raises ThreadBusyError."""
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _Line()
        elif wait == 0:
            raise self._busy(key, 0)
        line.users += 1
        try:
            if wait is None or line.users == 1:
                await line.lock.acquire()
            else:
                async with asyncio.timeout(wait):
                    await line.lock.acquire()
        except TimeoutError:
            self._forget(key, line)
            raise self._busy(key, wait) from None
        except BaseException:
            self._forget(key, line)
            raise

    def leave(self, key: str) -> None:
        """Let the next one in."""
        line = self._lines[key]
        line.lock.release()
        self._forget(key, line)

    def _forget(self, key: str, line: _Line) -> None:
        line.users -= 1
        if line.users == 0:
            del self._lines[key]

    def _busy(self, key: str, wait: float | None) -> ThreadBusyError:
        return ThreadBusyError(
            "run.thread-busy",
            f"{self._what} {key!r} is busy with another Tern" + (f" for more than {wait:g} s" if wait else ""),
            "wait for it, raise queue_timeout, or use thread_policy='enqueue'",
            thread=key,
        )
