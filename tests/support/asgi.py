"""Requests to an ASGI application within the process: whole ones, and ones that are read piece by piece."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2


def client(application: Any, token: str | None = None) -> httpx2.AsyncClient:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    transport = httpx2.ASGITransport(application)
    return httpx2.AsyncClient(transport=transport, base_url="http://localhost", headers=headers)


class Streamed:
    """One request whose answer is read while it is written, and whose client may vanish."""

    def __init__(self, application: Any, method: str, path: str, body: Any = None, **headers: str) -> None:
        sent = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        self._scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(b"host", b"localhost"), *sent],
            "client": ("127.0.0.1", 1),
            "server": ("localhost", 80),
        }
        self._body = b"" if body is None else json.dumps(body).encode()
        self.asked = asyncio.Event()
        """The body was read, and the connection is watched."""
        self._gone = asyncio.Event()
        self._read = False
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.status = 0
        self._task = asyncio.ensure_future(self._run(application))

    async def _run(self, application: Any) -> None:
        try:
            await application(self._scope, self._receive, self._send)
        finally:
            self._pieces.put_nowait(None)

    async def _receive(self) -> dict[str, Any]:
        if not self._read:
            self._read = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        self.asked.set()
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message.get("body"):
            self._pieces.put_nowait(message["body"])

    async def until(self, text: str) -> str:
        """Read until ``text`` was seen."""
        seen = ""
        while text not in seen:
            piece = await asyncio.wait_for(self._pieces.get(), 20)
            assert piece is not None, f"the answer ended without {text!r}: {self.status} {seen}"
            seen += piece.decode()
        return seen

    async def rest(self) -> str:
        """Read to the end."""
        seen = ""
        while (piece := await asyncio.wait_for(self._pieces.get(), 20)) is not None:
            seen += piece.decode()
        await self._task
        return seen

    async def vanish(self) -> None:
        """The client closes the connection; waits until the server has noticed."""
        self._gone.set()
        await asyncio.wait_for(self._task, 20)


def events(text: str) -> list[tuple[int, str, Any]]:
    """Number, type and data of server-sent events."""
    found: list[tuple[int, str, Any]] = []
    for block in text.replace("\r\n", "\n").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line and not line.startswith(":"))
        if fields:
            found.append((int(fields["id"]), fields["event"], json.loads(fields["data"])))
    return found
