"""``agboss serve`` as a process: it starts, it stops gently, and it notices who has gone."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2
import pytest
from desks import desk
from serving import Server, serving

from agboss import TernStatus, create_app

DESK = """\
import asyncio

from agboss import AnswerFinish, ActionContext, TaskStart, action, chain, workflow


@action(name="waiter")
class Waiter:
    async def run(self, ctx: ActionContext) -> str:
        if ctx.task == "wait":
            await asyncio.Event().wait()
        if ctx.task == "read":
            await asyncio.to_thread(lambda: open("pipe").read())
        return "Done."


@workflow(name="desk", flow=chain(TaskStart, Waiter, AnswerFinish))
class Waiting: ...
"""
STREAM = {"Accept": "text/event-stream"}


@contextmanager
def waiting(folder: Path, *arguments: str) -> Generator[tuple[Server, httpx2.Client]]:
    (folder / "waiting.py").write_text(DESK, encoding="utf-8")
    with serving(folder, "--app", "waiting:Waiting", "--store", "sqlite:///kept.db", *arguments) as server:
        with httpx2.Client(base_url=server.url, timeout=30) as http:
            yield server, http


def new_thread(http: httpx2.Client) -> str:
    made: str = http.post("/threads").json()["id"]
    return made


def until(lines: Any, text: str) -> None:
    assert any(text in line for line in lines), text


async def statuses(folder: Path, thread: str) -> list[TernStatus]:
    async with create_app(desk(), store=f"sqlite:///{folder / 'kept.db'}", offline=True) as app:
        return [tern.status for tern in (await app.threads.get(thread)).terns]


def test_a_client_that_closes_its_connection_cancels_its_tern(tmp_path: Path) -> None:
    with waiting(tmp_path) as (_, http):
        thread = new_thread(http)
        path = f"/threads/{thread}/terns"
        with http.stream("POST", path, json={"input": "wait"}, headers=STREAM) as streamed:
            until(streamed.iter_lines(), "node_started")
        after = http.post(path, json={"input": "go"})  # gets the thread when the first has ended
        assert (after.status_code, after.json()["tern"]) == (200, 2)
        terns = http.get(f"/threads/{thread}").json()["terns"]
        assert [tern["status"] for tern in terns] == ["cancelled", "answered"]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
async def test_a_server_that_is_stopped_lets_its_terns_end(tmp_path: Path, how: signal.Signals) -> None:
    os.mkfifo(tmp_path / "pipe")
    with waiting(tmp_path) as (server, http):
        thread = new_thread(http)
        with http.stream("POST", f"/threads/{thread}/terns", json={"input": "read"}, headers=STREAM) as streamed:
            lines = streamed.iter_lines()
            until(lines, "node_started")
            server.process.send_signal(how)
            Thread(target=(tmp_path / "pipe").write_text, args=("go",)).start()
            assert [line for line in lines if line.startswith("event: ")][-1] == "event: ended"
        server.process.communicate(timeout=30)
        assert server.process.returncode == 0
    assert await statuses(tmp_path, thread) == [TernStatus.ANSWERED]


async def test_what_does_not_end_in_time_is_stored_as_cancelled(tmp_path: Path) -> None:
    with waiting(tmp_path, "--grace", "0") as (server, http):
        thread = new_thread(http)
        body = {"input": "wait", "detach": True}
        with http.stream("POST", f"/threads/{thread}/terns", json=body, headers=STREAM) as streamed:
            until(streamed.iter_lines(), "node_started")
        told = server.stop()
        assert "Traceback" not in told
    assert await statuses(tmp_path, thread) == [TernStatus.CANCELLED]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("grace", ["0", "1"])
async def test_clients_of_terns_that_a_stop_cancels_are_told(tmp_path: Path, how: signal.Signals, grace: str) -> None:
    with waiting(tmp_path, "--grace", grace) as (server, http):
        whole, streamed = new_thread(http), new_thread(http)
        answers: list[httpx2.Response] = []

        def ask() -> None:
            answers.append(httpx2.post(f"{server.url}/threads/{whole}/terns", json={"input": "wait"}, timeout=30))

        asking = Thread(target=ask)
        asking.start()
        while "agboss_terns_running 1" not in http.get("/metrics").text:
            pass
        with http.stream("POST", f"/threads/{streamed}/terns", json={"input": "wait"}, headers=STREAM) as events:
            lines = events.iter_lines()
            until(lines, "node_started")
            server.process.send_signal(how)
            told = [line for line in lines if line]
        asking.join(30)
        _, log = server.process.communicate(timeout=30)
    assert told[-2] == "event: failed"
    assert json.loads(told[-1].removeprefix("data: "))["code"] == "run.cancelled"
    assert answers[0].headers["content-type"] == "application/problem+json"
    assert (answers[0].status_code, answers[0].json()["code"]) == (409, "run.cancelled")
    assert "the server is stopping" in answers[0].json()["detail"]
    assert "Traceback" not in log
    assert server.process.returncode == 0
    for thread in (whole, streamed):
        assert await statuses(tmp_path, thread) == [TernStatus.CANCELLED]


def test_other_machines_are_served_with_a_token_only(tmp_path: Path) -> None:
    token = "a-token-that-is-long-enough"
    refused = _failed(tmp_path, "--host", "0.0.0.0")
    assert refused["code"] == "server.no-token"
    with serving(tmp_path, "--host", "0.0.0.0", AGBOSS_TOKENS=f"ada={token}") as server:
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        assert httpx2.get(f"{url}/threads").status_code == 401
        answer = httpx2.post(f"{url}/threads", headers={"Authorization": f"Bearer {token}", "Host": "desk.example"})
        assert answer.status_code == 201
        told = server.stop()
    assert token not in told


def test_a_folder_of_definitions_is_served_with_the_tools_of_a_module(tmp_path: Path) -> None:
    folder = tmp_path / "agent-definitions"
    folder.mkdir()
    definition = {"name": "clerk", "model": "local:extractive", "tools": [{"name": "look_up"}]}
    (folder / "clerk.json").write_text(json.dumps(definition), encoding="utf-8")
    arguments = ("--definitions", "agent-definitions", "--store", "memory://")
    with serving(tmp_path, *arguments, "--tools", "desk") as server:
        (agent,) = httpx2.get(f"{server.url}/agents").json()["agents"]
        assert (agent["name"], agent["tools"], agent["kind"]) == ("clerk", ["look_up"], "summarizing_window")
    assert _failed(tmp_path, "--definitions", "nowhere")["code"] == "definition.no-folder"


@pytest.mark.parametrize("declared", [True, False])
def test_a_cookie_goes_over_https_alone_when_the_declared_proxy_says_so(tmp_path: Path, declared: bool) -> None:
    with serving(tmp_path, "--admin", *(("--proxy", "127.0.0.1") if declared else ())) as server:
        answer = httpx2.get(f"{server.url}/admin/threads", headers={"X-Forwarded-Proto": "https"})
        assert ("Secure" in answer.headers["set-cookie"]) == declared
        assert "Secure" not in httpx2.get(f"{server.url}/admin/threads").headers["set-cookie"]


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        told = _failed(tmp_path, "--port", server.url.rpartition(":")[2])
    assert told["code"] == "server.cannot-listen"


def _failed(folder: Path, *arguments: str) -> dict[str, Any]:
    import subprocess

    from serving import COMMAND, DESK, ROOT

    (folder / "desk.py").write_text(DESK, encoding="utf-8")
    app = () if "--definitions" in arguments else ("--app", "desk:Helper")
    done = subprocess.run(
        [*COMMAND, "serve", *app, "--json", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode in (1, 2), done.stderr
    return json.loads(done.stdout)["error"]
