"""The store's file goes away under a server: 503 for everybody, and nothing is lost or made."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from asgi import client
from desks import Gate, Models, desk, sum_up, yes

from agboss import AgentDefinition, AgentRuntime, create_app
from agboss.server import make_server
from agboss_memory.errors import StoreCorruptError


def told(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


def count(path: Path) -> int:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as opened:
        return opened.execute("SELECT count(*) FROM terns WHERE status = 'answered'").fetchone()[0]


async def test_a_moved_store_is_told_by_every_call_and_gone_on_with_when_it_is_back(tmp_path: Path) -> None:
    path, moved = tmp_path / "s.db", tmp_path / "moved.db"
    served = create_app(desk(every=None), store=f"sqlite:///{path}", models=Models(yes, sum_up))
    async with served, client(make_server(served)) as http:
        thread = (await http.post("/threads")).json()["id"]
        assert (await http.post(f"/threads/{thread}/terns", json={"input": "Hello."})).status_code == 200
        assert (await http.get("/readyz")).status_code == 200
        path.rename(moved)
        for _ in range(2):
            assert told(await http.get("/readyz")) == (503, "server.not-ready")
            assert told(await http.get(f"/threads/{thread}")) == (503, "store.missing")
            asked = await http.post(f"/threads/{thread}/terns", json={"input": "Again."})
            assert told(asked) == (503, "store.missing")
            assert told(await http.post("/threads")) == (503, "store.missing")
        assert not path.exists()
        assert count(moved) == 1
        moved.rename(path)
        assert (await http.get("/readyz")).status_code == 200
        assert (await http.post(f"/threads/{thread}/terns", json={"input": "Again."})).json()["tern"] == 2
    assert count(path) == 2


async def test_a_store_that_is_cut_off_is_told_by_every_call(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    served = create_app(desk(every=None), store=f"sqlite:///{path}", models=Models(yes, sum_up))
    async with served, client(make_server(served)) as http:
        thread = (await http.post("/threads")).json()["id"]
        assert (await http.post(f"/threads/{thread}/terns", json={"input": "Hello."})).status_code == 200
        os.truncate(path, 0)
        for _ in range(2):
            assert told(await http.get("/readyz")) == (503, "server.not-ready")
            asked = await http.post(f"/threads/{thread}/terns", json={"input": "Again."})
            assert told(asked) == (503, "store.corrupt")
            assert told(await http.get(f"/threads/{thread}")) == (503, "store.corrupt")
        with pytest.raises(StoreCorruptError):
            await served.threads.check()


async def test_agents_from_definitions_are_not_ready_either(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    definitions = [AgentDefinition(name="clerk", model="openai:gpt-5-mini")]
    served = AgentRuntime(definitions, store=f"sqlite:///{path}", models=Models(yes, sum_up))
    async with served, client(make_server(served)) as http:
        assert (await http.get("/readyz")).status_code == 200
        path.rename(tmp_path / "moved.db")
        assert told(await http.get("/readyz")) == (503, "server.not-ready")
        assert not path.exists()


@pytest.mark.parametrize("other", [False, True])
async def test_a_running_tern_is_told_that_its_store_is_gone(tmp_path: Path, other: bool) -> None:
    """Not that its thread is unknown, also when another call noticed first."""
    path = tmp_path / "s.db"
    gate = Gate()
    served = create_app(desk(every=None), store=f"sqlite:///{path}", models=Models(gate, sum_up))
    async with served, client(make_server(served)) as http:
        thread = (await http.post("/threads")).json()["id"]
        asked = asyncio.create_task(http.post(f"/threads/{thread}/terns", json={"input": "Hello."}))
        await gate.reached.wait()
        path.rename(tmp_path / "moved.db")
        if other:
            async with create_app(desk(every=None), store=f"sqlite:///{tmp_path}/n.db", offline=True) as fresh:
                await fresh.threads.create()
            (tmp_path / "n.db").rename(path)
            assert told(await http.get("/readyz")) == (503, "server.not-ready")
        gate.open.set()
        assert told(await asked) == (503, "store.replaced" if other else "store.missing")
