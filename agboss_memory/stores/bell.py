"""Wakes those who wait for a thread when it becomes free in this process."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from weakref import WeakValueDictionary


def _wake(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)


class Bell:
    """One per medium and process. It may be rung and waited for in any event loop."""

    def __init__(self) -> None:
        self._sleepers: dict[int, set[asyncio.Future[None]]] = {}

    async def wait(self, key: int, seconds: float) -> None:
        """Sleep until the thread ``key`` is rung for, at most ``seconds``."""
        sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        sleepers = self._sleepers.setdefault(key, set())
        sleepers.add(sleeper)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await sleeper
        finally:
            sleepers.discard(sleeper)
            if not sleepers and self._sleepers.get(key) is sleepers:
                del self._sleepers[key]

    def ring(self, key: int) -> None:
        """The thread may be free."""
        for sleeper in tuple(self._sleepers.get(key, ())):
            with suppress(RuntimeError):  # its event loop is closed: nobody waits any more
                sleeper.get_loop().call_soon_threadsafe(_wake, sleeper)


_shared: WeakValueDictionary[Path, Bell] = WeakValueDictionary()


def bell_of(path: Path) -> Bell:
    """The bell of a file, for all stores of this process that use it."""
    return _shared.setdefault(path, Bell())
