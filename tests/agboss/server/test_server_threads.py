"""Threads over HTTP, and who may see them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from asgi import client
from desks import Models, desk, sum_up, yes

from agboss import App, create_app
from agboss.server import make_server

ADA, BOB = "ada-token-0123456789", "bob-token-0123456789"
TOKENS = {ADA: "ada", BOB: "bob"}


def app() -> App:
    return create_app(desk(), store="memory://", models=Models(yes, sum_up))


async def test_a_thread_from_its_making_to_its_end() -> None:
    async with app() as served, client(make_server(served)) as http:
        made = await http.post("/threads")
        assert made.status_code == 201
        thread = made.json()["id"]
        assert made.headers["location"] == f"/threads/{thread}"
        assert (await http.get(f"/threads/{thread}")).json()["terns"] == []

        ran = await http.post(f"/threads/{thread}/terns", json={"input": "task 1."})
        assert ran.status_code == 200
        assert {key: ran.json()[key] for key in ("thread", "tern", "status", "answer", "path")} == {
            "thread": thread,
            "tern": 1,
            "status": "answered",
            "answer": "Yes.",
            "path": ["task-start", "helper", "answer-finish"],
        }
        shown = (await http.get(f"/threads/{thread}")).json()
        assert [(tern["number"], tern["task"], tern["answer"]) for tern in shown["terns"]] == [(1, "task 1.", "Yes.")]
        assert shown["owner"] is None

        exported = await http.get(f"/threads/{thread}/export")
        assert exported.headers["content-type"] == "application/jsonl"
        kinds = [json.loads(line)["type"] for line in exported.text.splitlines()]
        assert (kinds[0], kinds[-1], kinds.count("tern"), kinds.count("message")) == ("thread", "end", 1, 2)

        assert (await http.delete(f"/threads/{thread}")).status_code == 204
        assert (await http.get(f"/threads/{thread}")).status_code == 404


async def test_m161_what_belongs_to_a_deleted_thread_is_gone_and_others_are_untouched() -> None:
    async with app() as served, client(make_server(served)) as http:
        gone, kept = [(await http.post("/threads")).json()["id"] for _ in range(2)]
        for thread in (gone, kept):
            for number in (1, 2):
                await http.post(f"/threads/{thread}/terns", json={"input": f"task {number}."})
        before = (await http.get(f"/threads/{kept}/export")).content
        assert (await http.delete(f"/threads/{gone}")).status_code == 204
        for path in ("", "/export", "/memory", "/terns/1/events"):
            assert (await http.get(f"/threads/{gone}{path}")).status_code == 404
        assert (await http.delete(f"/threads/{gone}")).status_code == 404
        assert (await http.get(f"/threads/{kept}/export")).content == before
        await served.execute("task 1.", thread=gone, create_thread=True)
        rows = (await http.get(f"/threads/{gone}/memory")).json()["messages"]
        assert [row["firstTern"] for row in rows if row["firstTern"]] == [1]


async def test_an_export_can_be_taken_in_again() -> None:
    async with app() as served, client(make_server(served)) as http:
        thread = (await http.post("/threads")).json()["id"]
        for number in (1, 2):
            await http.post(f"/threads/{thread}/terns", json={"input": f"task {number}."})
        exported = (await http.get(f"/threads/{thread}/export")).text
        async with app() as other:
            taken = await other.threads.import_(exported.splitlines())
            assert taken == await served.threads.get(thread)
            (summary,) = await other.memory.summaries(thread)
    assert (summary.first, summary.last, summary.text) == (1, 2, "In short.")


async def test_threads_are_listed_page_by_page() -> None:
    async with app() as served, client(make_server(served)) as http:
        made = [(await http.post("/threads")).json()["id"] for _ in range(5)]
        found: list[str] = []
        cursor: str | None = None
        pages = 0
        while cursor is not None or not pages:
            query: dict[str, Any] = {"limit": 2} | ({} if cursor is None else {"cursor": cursor})
            page = (await http.get("/threads", params=query)).json()
            found += [thread["id"] for thread in page["threads"]]
            cursor, pages = page["next"], pages + 1
        assert (found, pages) == (made[::-1], 3)
        refused = await http.get("/threads", params={"cursor": "nobody"})
        assert (refused.status_code, refused.json()["code"]) == (400, "server.bad-query")


async def test_an_owner_sees_own_threads_only_and_a_foreign_one_is_a_missing_one() -> None:
    async with app() as served:
        server = make_server(served, tokens=TOKENS)
        async with client(server, ADA) as ada, client(server, BOB) as bob:
            thread = (await ada.post("/threads")).json()["id"]
            await ada.post(f"/threads/{thread}/terns", json={"input": "My secret."})
            assert (await ada.get(f"/threads/{thread}")).json()["owner"] == "ada"
            assert (await bob.get("/threads")).json()["threads"] == []
            assert [item["id"] for item in (await ada.get("/threads")).json()["threads"]] == [thread]
            requests = [
                ("GET", "", None),
                ("GET", "/export", None),
                ("GET", "/memory", None),
                ("GET", "/memory/explain", None),
                ("GET", "/terns/1/events", None),
                ("GET", "/tool-results/m-1", None),
                ("POST", "/memory/compact", None),
                ("POST", "/memory/undo", None),
                ("POST", "/memory/what-if", {"config": {"kind": "full"}}),
                ("POST", "/terns", {"input": "Hello?"}),
                ("POST", "/cancel", None),
                ("DELETE", "", None),
            ]
            for method, path, body in requests:
                foreign = await bob.request(method, f"/threads/{thread}{path}", json=body)
                missing = await bob.request(method, f"/threads/nobody{path}", json=body)
                assert (foreign.status_code, foreign.content) == (404, missing.content), (method, path)
                assert foreign.json()["code"] == "run.unknown-thread"
            foreign = await bob.get("/threads", params={"cursor": thread})
            missing = await bob.get("/threads", params={"cursor": "nobody"})
            assert (foreign.status_code, foreign.content) == (400, missing.content)
            assert len((await ada.get(f"/threads/{thread}")).json()["terns"]) == 1


@pytest.mark.parametrize("name", ["a/b", "50%", "a%2Fb", "ü ñ", "?x=1#y", "日本", "."])
async def test_any_id_can_be_asked_for(name: str) -> None:
    from urllib.parse import quote

    async with app() as served, client(make_server(served)) as http:
        await served.execute("task 1.", thread=name, create_thread=True)
        path = "/threads/" + quote(name, safe="").replace(".", "%2E")
        found = await http.get(path)
        assert (found.status_code, found.json().get("id")) == (200, name)
        assert (await http.get(f"{path}/memory")).json()["thread"] == name


@pytest.mark.parametrize("name", ["%00", "x" * 513, "%FF"])
async def test_an_id_that_cannot_be_is_refused(name: str) -> None:
    async with app() as served, client(make_server(served)) as http:
        assert (await http.get(f"/threads/{name}")).status_code in (400, 404)


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "limit=-1", "limit=1e3", "limit=99999999999999999999"])
async def test_a_number_that_is_none_is_refused(query: str) -> None:
    async with app() as served, client(make_server(served)) as http:
        refused = await http.get(f"/threads?{query}")
        assert (refused.status_code, refused.json()["code"]) == (400, "server.bad-query")
