"""Server-sent events over a Tern's log, and waiting for a client that may vanish."""

from __future__ import annotations

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agboss.server.log import LoggedEvent, TernLog

PING = 15.0
"""Seconds of silence after which a comment is sent, so that nobody on the way gives up."""

SEND_TIMEOUT = 30.0
"""Seconds in which a client must take a piece, else it counts as gone."""


class EventStream(Response):
    """Sends the events after a number, then ends. The caller has joined the log; this leaves it.

    Args:
        log: The Tern.
        after: Number of the last event that the client has.
    """

    media_type = "text/event-stream"

    def __init__(self, log: TernLog, after: int = 0) -> None:
        super().__init__(headers={"X-Accel-Buffering": "no", "Cache-Control": "no-store"})
        del self.headers["content-length"]
        self._log = log
        self._after = after

    def piece(self, event: LoggedEvent) -> str:
        """An event as it goes over the wire."""
        return f"id: {event.number}\nevent: {event.type}\ndata: {event.data}\n\n"

    def last_piece(self) -> str:
        """What follows the last event."""
        return ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the Tern or the client is at its end."""
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_until_gone, receive, group.cancel_scope)
                await self._send_all(send)
                group.cancel_scope.cancel()
        finally:
            self._log.leave()

    async def _send_all(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        while True:
            events = self._log.after(self._after)
            text = "".join(map(self.piece, events))
            if events:
                self._after = events[-1].number
            elif self._log.ended:
                break
            else:
                with anyio.move_on_after(PING) as waiting:
                    await self._log.change()
                text = ": ping\n\n" if waiting.cancelled_caught else ""
            if text:
                await _send_piece(send, text, more=True)
        await _send_piece(send, self.last_piece(), more=False)


async def until_ended(log: TernLog, receive: Receive) -> bool:
    """Wait for the end of a Tern as a listener that then leaves; False when the client was gone before."""
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_until_gone, receive, group.cancel_scope)
            while not log.ended:
                await log.change()
            group.cancel_scope.cancel()
    finally:
        log.leave()
    return log.ended


async def _until_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def _send_piece(send: Send, text: str, *, more: bool) -> None:
    with anyio.fail_after(SEND_TIMEOUT):
        await send({"type": "http.response.body", "body": text.encode(), "more_body": more})
