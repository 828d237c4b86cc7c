"""Going on with what the process before left: Terns that ran when it was killed."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from agboss.app import App
from agboss.errors import AgbossError
from agboss.server.served import Served

logger = logging.getLogger("agboss.server")

AGAIN = 15.0
"""Seconds after which it is tried a second time: then the leases of processes on other hosts have ended as well."""


class Recovery:
    """Resumes interrupted Terns in the background, when the server has started. A failure stops nothing.

    Args:
        served: Whose Terns they are.
        again: Seconds to the second try.
    """

    def __init__(self, served: Served, again: float = AGAIN) -> None:
        self._served = served
        self._again = again
        self._works = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._work())

    async def finish(self, grace: float) -> None:
        """Let the Tern that runs end within ``grace`` seconds, else cancel it: it is stored as cancelled."""
        if self._task is None or self._task.done():
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._works.acquire()  # and nothing further begins
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _work(self) -> None:
        await self._recover_all()
        await asyncio.sleep(self._again)
        await self._recover_all()

    async def _recover_all(self) -> None:
        async with self._works:
            for name in self._served.names():
                try:
                    async with self._served.app(name) as app:
                        await _recover(app)
                except AgbossError as error:
                    logger.error("turns of %s that were left could not be resumed: %s", name, error.code)
                except Exception as error:
                    logger.error("turns of %s that were left could not be resumed: %s", name, type(error).__name__)


async def _recover(app: App) -> None:
    for result in await app.recover():
        text = "turn %d of thread %s was left by a process that is gone; it was resumed: %s"
        logger.warning(text, result.tern, result.thread, result.status)
