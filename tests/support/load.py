"""Many streaming clients at one real server: each has a thread and a secret of its own, and checks all that it is sent.

``python tests/support/load.py`` runs it by hand and prints what was measured. ``AGBOSS_LOAD_CLIENTS`` (20) clients work for
``AGBOSS_LOAD_SECONDS`` (5) seconds; an answer has ``AGBOSS_LOAD_PIECES`` (20) pieces; one Tern of ``AGBOSS_LOAD_VANISH``
(10) is left by its client in the middle. Nothing may take longer than ``AGBOSS_LOAD_PATIENCE`` (60) seconds. From the
first 40 % of the time to its end the server may grow by ``AGBOSS_LOAD_GROWTH`` (40) MB, whatever the number of Terns.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from serving import ROOT, Server, serving

CLIENTS = int(os.environ.get("AGBOSS_LOAD_CLIENTS", "20"))
SECONDS = float(os.environ.get("AGBOSS_LOAD_SECONDS", "5"))
PIECES = int(os.environ.get("AGBOSS_LOAD_PIECES", "20"))
VANISH = int(os.environ.get("AGBOSS_LOAD_VANISH", "10"))
PATIENCE = float(os.environ.get("AGBOSS_LOAD_PATIENCE", "60"))
GROWTH = float(os.environ.get("AGBOSS_LOAD_GROWTH", "40"))
WARM_UP = 0.4
"""Part of the time after which memory is measured first."""

ARGUMENTS = ("--app", "scripted_desk:Teller", "--rate-limit", "0", "--store", "sqlite:///load.db")
PATHS = f"{ROOT}:{ROOT / 'tests' / 'support'}"


@dataclass
class Measured:
    """What a run came to; memory is the server's resident set in MB."""

    clients: int
    seconds: float = 0.0
    terns: int = 0
    vanished: int = 0
    events: int = 0
    pieces: int = 0
    first_piece_ms: list[float] = field(default_factory=list[float])
    warm_mb: float = 0.0
    end_mb: float = 0.0

    def told(self) -> dict[str, Any]:
        waits = sorted(self.first_piece_ms)
        return {
            "clients": self.clients,
            "seconds": round(self.seconds, 1),
            "terns/s": round(self.terns / self.seconds, 1),
            "events/s": round(self.events / self.seconds),
            "pieces": self.pieces,
            "terns": self.terns,
            "vanished": self.vanished,
            "first piece ms (median, p99)": [round(waits[len(waits) * part // 100]) for part in (50, 99)],
            "rss MB (warm, end)": [round(self.warm_mb, 1), round(self.end_mb, 1)],
        }


class Client:
    """One client with its thread. Speaks as much HTTP as it needs, so that the server is what is measured."""

    def __init__(self, url: str, number: int) -> None:
        place = urlsplit(url)
        self._host, self._port = place.hostname or "", place.port or 0
        self._number = number
        self.measured = Measured(clients=1)
        self._rng = random.Random(number)
        self.thread = ""
        self.ended: list[tuple[str, str]] = []
        """Status and answer of each of its Terns, as they must be stored."""

    async def begin(self) -> None:
        """The first Tern, in a thread of its own."""
        async with asyncio.timeout(PATIENCE):
            self.thread = json.loads(await self.whole("POST", "/threads", {}))["id"]
            await self._talk()

    async def work(self, until: float) -> None:
        """Tern after Tern."""
        while time.monotonic() < until:
            async with asyncio.timeout(PATIENCE):
                if VANISH and self._rng.randrange(VANISH) == 0:
                    await self._vanish()
                else:
                    await self._talk()

    async def check(self) -> None:
        """What is stored is what it was told, and nothing of anybody else."""
        async with asyncio.timeout(PATIENCE):
            stored = json.loads(await self.whole("GET", f"/threads/{self.thread}?last=500"))["terns"]
        found = [(tern["status"], tern["answer"]) for tern in stored]
        wrong = [pair for pair in zip(found, self.ended[-len(found) :], strict=True) if pair[0] != pair[1]]
        assert not wrong, (self.thread, wrong)
        assert [tern["number"] for tern in stored][-1] == len(self.ended)

    async def _talk(self) -> None:
        secret = f"s{self._number}-{len(self.ended)}"
        expected = "".join(f"{secret}-{piece} " for piece in range(PIECES))
        pieces: list[str] = []
        names: list[str] = []
        begun = time.monotonic()
        async for number, name, data in self._events(f"stream {PIECES} {secret}"):
            names.append(name)
            assert number == len(names), (self.thread, names)
            assert data.get("thread", self.thread) == self.thread
            if name == "text_delta":
                if not pieces:
                    self.measured.first_piece_ms.append((time.monotonic() - begun) * 1000)
                pieces.append(data["text"])
        assert "".join(pieces) == expected, (self.thread, pieces)
        assert names[-2:] == ["answered", "ended"], (self.thread, names)
        self.ended.append(("answered", expected))
        self.measured.terns += 1
        self.measured.events += len(names)
        self.measured.pieces += len(pieces)

    async def _vanish(self) -> None:
        secret = f"s{self._number}-{len(self.ended)}"
        async for _, name, data in self._events(f"hang {secret}"):
            if name == "text_delta":
                assert data["text"] == f"{secret}-0 "
                break
        self.ended.append(("cancelled", f"{secret}-0 "))
        self.measured.vanished += 1

    async def _events(self, task: str) -> AsyncGenerator[tuple[int, str, Any]]:
        body = {"input": task}
        buffer = ""
        pieces = self._pieces("POST", f"/threads/{self.thread}/terns", body, Accept="text/event-stream")
        try:
            async for piece in pieces:
                buffer += piece.decode()
                *blocks, buffer = buffer.split("\n\n")
                for block in blocks:
                    if not block.startswith(":"):
                        fields = dict(line.split(": ", 1) for line in block.splitlines())
                        yield int(fields["id"]), fields["event"], json.loads(fields["data"])
        finally:
            await pieces.aclose()

    async def whole(self, method: str, path: str, body: Any = None) -> bytes:
        """A request and the whole body of its answer."""
        return b"".join([piece async for piece in self._pieces(method, path, body)])

    async def _pieces(self, method: str, path: str, body: Any = None, **headers: str) -> AsyncGenerator[bytes]:
        """The body of the answer, chunk by chunk; leaving the loop closes the connection."""
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            content = b"" if body is None else json.dumps(body).encode()
            lines = [f"{method} {path} HTTP/1.1", f"Host: {self._host}", f"Content-Length: {len(content)}"]
            lines += [f"{name}: {value}" for name, value in headers.items()]
            writer.write("\r\n".join([*lines, "Connection: close", "", ""]).encode() + content)
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            assert head.split(" ", 2)[1][0] == "2", head
            if "transfer-encoding: chunked" not in head:
                yield await reader.read(-1)
                return
            while size := int(await reader.readline(), 16):
                yield await reader.readexactly(size)
                await reader.readexactly(2)
        finally:
            writer.close()


def resident_mb(server: Server) -> float:
    """Resident memory of the server."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def running_terns(text: str) -> int:
    """Terns that run now, out of the server's metrics."""
    return int(text.partition("\nagboss_terns_running ")[2].split()[0])


async def load(server: Server) -> Measured:
    """Let all clients work at the same time, then check what is stored."""
    clients = [Client(server.url, number) for number in range(CLIENTS)]
    for client in clients:  # one after the other: the server loads what it needs before anything is measured
        await client.begin()
    measured, begun = Measured(clients=CLIENTS), time.monotonic()
    for client in clients:
        client.measured = measured

    async def watch() -> None:
        await asyncio.sleep(SECONDS * WARM_UP)
        measured.warm_mb = resident_mb(server)

    async with asyncio.TaskGroup() as group:
        group.create_task(watch())
        for client in clients:
            group.create_task(client.work(begun + SECONDS))
    measured.seconds = time.monotonic() - begun
    measured.end_mb = resident_mb(server)
    await all_ended(server)
    for client in clients:
        await client.check()
    return measured


async def all_ended(server: Server) -> None:
    """Wait until no Tern runs any more: those of clients that have just vanished are being stored."""
    looker = Client(server.url, -1)
    async with asyncio.timeout(PATIENCE):
        while running_terns((await looker.whole("GET", "/metrics")).decode()):
            continue  # each look is a request, which gives the server its time


def main() -> None:
    with TemporaryDirectory() as folder:
        with serving(Path(folder), *ARGUMENTS, PYTHONPATH=PATHS) as server:
            measured = asyncio.run(load(server))
            told = server.stop()
    sys.stdout.write(json.dumps(measured.told(), indent=2) + "\n" + told)


if __name__ == "__main__":
    main()
