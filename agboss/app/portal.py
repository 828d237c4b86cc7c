"""The event loop of a script: it runs in a thread of its own, and scripts call into it."""

from __future__ import annotations

from concurrent.futures import Future
from threading import Thread

import anyio
from anyio.from_thread import BlockingPortal


class ScriptLoop:
    """An event loop in a thread, until ``stop``.

    ``anyio.from_thread.start_blocking_portal`` would wait for its thread when it is forgotten; in a forked child, which
    has not got the thread, that would never end.
    """

    def __init__(self) -> None:
        started: Future[BlockingPortal] = Future()
        self._thread = Thread(target=_run, args=(started,), name="agboss-script", daemon=True)
        self._thread.start()
        self.portal = started.result()

    def stop(self) -> None:
        """Let the loop end and wait for it."""
        self.portal.call(self.portal.stop)
        self._thread.join()


def _run(started: Future[BlockingPortal]) -> None:
    try:
        anyio.run(_serve, started)
    except BaseException as error:
        if started.done():
            raise
        started.set_exception(error)


async def _serve(started: Future[BlockingPortal]) -> None:
    async with BlockingPortal() as portal:
        started.set_result(portal)
        await portal.sleep_until_stopped()
