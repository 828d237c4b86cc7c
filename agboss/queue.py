"""One Tern at a time per thread, first come first served, within one process."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from agboss.errors import AgbossError, ThreadBusyError
from agboss_memory.stores.contract import Store

logger = logging.getLogger("agboss")

Line: TypeAlias = tuple[str | None, ...]
"""Names a line. The first part says of what kind, so that no id of one kind can meet one of another."""


def thread_line(thread: str) -> Line:
    """The line of a thread."""
    return ("thread", thread)


class ThreadQueue:
    """Lines of waiting Terns, one per key; a line without users is forgotten.

    Whoever finds no line is inside at once, which costs one entry of a dictionary. The others wait in the order in
    which they came, and each gets its turn from the one before it.
    """

    def __init__(self) -> None:
        self._lines: dict[Line, deque[asyncio.Future[None]] | None] = {}
        self._emptied = asyncio.Event()
        self._refusal: Callable[[], Exception] | None = None

    def refuse(self, refusal: Callable[[], Exception]) -> None:
        """Raise what ``refusal`` gives for everybody who waits, or would have to; those inside stay."""
        self._refusal = refusal
        for waiting in self._lines.values():
            for turn in waiting or ():
                if not turn.done():
                    turn.set_exception(refusal())

    def check(self) -> None:
        """Raises what waiting is refused with, if it is."""
        if self._refusal is not None:
            raise self._refusal()

    async def drained(self) -> None:
        """Wait until nobody is inside or waiting."""
        while self._lines:
            self._emptied.clear()
            await self._emptied.wait()

    def __len__(self) -> int:
        return len(self._lines)

    def take(self, key: Line) -> bool:
        """Enter a line in which nobody is; False when somebody is."""
        if key in self._lines:
            return False
        self._lines[key] = None
        return True

    async def enter(self, key: Line, wait: float | None) -> None:
        """Wait for one's turn, at most ``wait`` seconds (None = for ever, 0 = not at all). Raises ThreadBusyError."""
        if self.take(key):
            return
        self.check()
        if wait == 0:
            raise _busy(key, 0)
        await self.wait(key, self.stand(key), wait, asyncio.get_running_loop().time())

    def stand(self, key: Line) -> asyncio.Future[None]:
        """Get the last place of a line in which somebody is; ``wait`` for it, or ``give_up``."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._lines[key]
        if waiting is None:
            waiting = self._lines[key] = deque()
        waiting.append(turn)
        return turn

    async def wait(self, key: Line, turn: asyncio.Future[None], seconds: float | None, since: float) -> None:
        """Wait for the turn of a place, at most ``seconds`` after ``since`` (None = for ever). Raises ThreadBusyError."""
        try:
            async with asyncio.timeout_at(None if seconds is None else since + seconds):
                await turn
        except BaseException as error:
            self.give_up(key, turn)
            if isinstance(error, TimeoutError):
                raise _busy(key, seconds) from None
            raise

    def give_up(self, key: Line, turn: asyncio.Future[None]) -> None:
        """Leave a place; a turn that has come is the next one's."""
        waiting = self._lines.get(key)
        if turn.done() and not turn.cancelled() and turn.exception() is None:
            self.leave(key)
        elif waiting and turn in waiting:
            waiting.remove(turn)

    def leave(self, key: Line) -> None:
        """Let the next one in."""
        waiting = self._lines[key]
        while waiting:
            turn = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        del self._lines[key]
        if not self._lines:
            self._emptied.set()


async def give_back(store: Store, ticket: int) -> None:
    """Give a ticket back that no admission took. A store that refuses is told: the ticket ends by itself."""
    try:
        await asyncio.shield(store.leave(ticket))
    except AgbossError as error:
        logger.warning("a place in line is given back later: %s", error.message)


def _busy(key: Line, wait: float | None) -> ThreadBusyError:
    return ThreadBusyError(
        "run.thread-busy",
        f"{key[0]} {key[-1]!r} is busy with another Tern" + (f" for more than {wait:g} s" if wait else ""),
        "wait for it, raise queue_timeout (thread_policy='enqueue' waits, 'reject' does not), or cancel it",
        **{key[0] or "thread": key[-1]},
    )
