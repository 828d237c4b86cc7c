"""Server-sent events over a Tern's log, and waiting for a client that may vanish."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agboss.server.log import LoggedEvent, TernLog

T = TypeVar("T")

STREAM = "text/event-stream"

PING = 15.0
"""Seconds of silence after which a comment is sent, so that nobody on the way gives up."""

SEND_TIMEOUT = 30.0
"""Seconds in which a client must take a piece, else it counts as gone."""


class EventStream(Response):
    """Sends the events after a number, then ends. The caller has joined the log; this leaves it.

    Args:
        log: The Tern.
        after: Number of the last event that the client has. None = what came before this part of the Tern is not sent.
            One that was never given comes from a process before this: then all is sent.
    """

    media_type = STREAM

    def __init__(self, log: TernLog, after: int | None = None) -> None:
        super().__init__(headers={"X-Accel-Buffering": "no", "Cache-Control": "no-store"})
        del self.headers["content-length"]
        self.log = log
        self._after = after if after is None or after <= log.last else 0

    def piece(self, event: LoggedEvent) -> str:
        """An event as it goes over the wire."""
        return f"id: {event.number}\nevent: {event.type}\ndata: {event.data}\n\n"

    def last_piece(self) -> str:
        """What follows the last event."""
        return ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the Tern or the client is at its end."""
        try:
            await unless_gone(receive, self._send_all(send))
        except TimeoutError:  # it does not take what is sent
            pass
        finally:
            self.log.leave()

    async def _send_all(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        while True:
            events = self.log.after(self.log.before if self._after is None else self._after)
            text = "".join(map(self.piece, events))
            if events:
                self._after = events[-1].number
            elif self.log.ended:
                break
            else:
                with anyio.move_on_after(PING) as waiting:
                    await self.log.change()
                text = ": ping\n\n" if waiting.cancelled_caught else ""
            if text:
                await _send_piece(send, text, more=True)
        await _send_piece(send, self.last_piece(), more=False)


async def until_ended(log: TernLog, receive: Receive) -> bool:
    """Wait for the end of a Tern as a listener that then leaves; False when the client was gone before."""
    try:
        await unless_gone(receive, _ended(log))
    finally:
        log.leave()
    return log.ended


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, T]) -> T | None:
    """What ``work`` gives; it is cancelled, and None comes back, when the client vanishes before."""
    gone, task = asyncio.ensure_future(_until_gone(receive)), asyncio.ensure_future(work)
    try:
        await asyncio.wait((gone, task), return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        gone.cancel()
        task.cancel()
        await asyncio.wait((gone, task))


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _ended(log: TernLog) -> None:
    while not log.ended:
        await log.change()


async def _send_piece(send: Send, text: str, *, more: bool) -> None:
    with anyio.fail_after(SEND_TIMEOUT):
        await send({"type": "http.response.body", "body": text.encode(), "more_body": more})
