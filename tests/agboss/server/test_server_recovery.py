"""A server that is killed in the middle of a Tern: the next one ends it, and repeats nothing that was finished."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from desks import Gate, Models, desk, sum_up
from serving import ROOT, Server, serving

from agboss import App, agent, create_app
from agboss.errors import StoreLockedError
from agboss.server import make_server
from agboss.server.recovery import Recovery
from agboss.server.served import ServedApp

SECONDS = float(os.environ.get("AGBOSS_RECOVERY_SECONDS", "30"))
"""How long a server may take to end what was left."""

STREAM = {"Accept": "text/event-stream"}


@contextmanager
def serve(folder: Path, *arguments: str, **variables: str) -> Generator[tuple[Server, httpx2.Client]]:
    named = ("--app", "scripted_desk:Desk", "--store", "sqlite:///kept.db", *arguments)
    paths = f"{ROOT}:{ROOT / 'tests' / 'support'}"
    with serving(folder, *named, PYTHONPATH=paths, DESK_NOTES="notes", **variables) as server:
        with httpx2.Client(base_url=server.url, timeout=SECONDS) as http:
            yield server, http


def killed(folder: Path) -> str:
    """Kill a server while the second tool of a Tern runs; the id of its thread."""
    with serve(folder, DESK_HOLD="B") as (server, http):
        thread: str = http.post("/threads").json()["id"]
        body = {"input": "do A, then B"}
        with http.stream("POST", f"/threads/{thread}/terns", json=body, headers=STREAM) as streamed:
            lines = streamed.iter_lines()
            for tool in ("A", "B"):
                assert any('"tool_started"' in line and f'\\"{tool}\\"' in line for line in lines), tool
            while "begin B" not in notes(folder):
                continue
            server.process.kill()
            server.process.wait(SECONDS)
    return thread


def notes(folder: Path) -> list[str]:
    return (folder / "notes").read_text().splitlines()


def ended(http: httpx2.Client, thread: str) -> dict[str, Any]:
    """The only Tern of a thread, once it has ended."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        (tern,) = http.get(f"/threads/{thread}").json()["terns"]
        if tern["status"] != "running":
            return tern
    raise AssertionError("it never ended")


def test_what_a_killed_server_left_is_ended_without_repeating_a_tool(tmp_path: Path) -> None:
    thread = killed(tmp_path)
    with serve(tmp_path, "--rate-limit", "0") as (server, http):
        tern = ended(http, thread)
        assert (tern["status"], tern["answer"]) == ("answered", "A is done. B is done.")
        after = http.post(f"/threads/{thread}/terns", json={"input": "recall"}).json()
        assert (after["tern"], after["answer"]) == (2, "You said: do A, then B.")
        told = server.stop()
    assert notes(tmp_path) == ["begin A", "done A", "begin B", "begin B", "done B"]
    assert f"turn 1 of thread {thread} was left by a process that is gone; it was resumed: answered" in told
    assert server.process.returncode == 0


def test_a_server_that_is_not_to_resume_leaves_it(tmp_path: Path) -> None:
    thread = killed(tmp_path)
    with serve(tmp_path, "--no-recover") as (_, http):
        after = http.post(f"/threads/{thread}/terns", json={"input": "recall"}).json()
        assert after["tern"] == 2
        terns = http.get(f"/threads/{thread}").json()["terns"]
        assert [tern["status"] for tern in terns] == ["cancelled", "answered"]
    assert notes(tmp_path) == ["begin A", "done A", "begin B"]


def test_a_server_that_is_stopped_while_it_resumes_cancels(tmp_path: Path) -> None:
    thread = killed(tmp_path)
    with serve(tmp_path, "--grace", "0", DESK_HOLD="B") as (server, _):
        while notes(tmp_path).count("begin B") < 2:
            continue
        told = server.stop()
        assert "Traceback" not in told
        assert server.process.returncode == 0
    with serve(tmp_path, "--no-recover") as (_, http):
        assert ended(http, thread)["status"] == "cancelled"


async def test_a_failure_stops_nothing_and_it_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    faults: list[Exception] = [StoreLockedError("store.locked", "secret path"), RuntimeError("secret text")]
    failed = asyncio.Event()

    async def fail(_: App) -> Any:
        fault = faults.pop(0)
        if not faults:
            failed.set()
        raise fault

    monkeypatch.setattr(App, "recover", fail)
    async with create_app(desk(), store="memory://", models=Models(Gate(), sum_up)) as app:
        recovery = Recovery(ServedApp(app), again=0)
        recovery.start()
        await failed.wait()
        await recovery.finish(10)
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert told == [
        f"turns of {app.name} that were left could not be resumed: store.locked",
        f"turns of {app.name} that were left could not be resumed: RuntimeError",
    ]


async def test_the_life_of_an_asgi_server_begins_and_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = asyncio.Event()

    async def hang(_: App) -> Any:
        asked.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(App, "recover", hang)
    app = create_app(desk(), store="memory://", models=Models(Gate(), sum_up))
    server = make_server(app, grace=0)
    async with server.router.lifespan_context(server):
        await asked.wait()


async def test_nothing_to_resume_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    @agent(name="keyed", model="openai:gpt-5-mini")
    class Keyed: ...

    async with create_app(Keyed, store="memory://") as app:
        assert await app.recover() == ()
