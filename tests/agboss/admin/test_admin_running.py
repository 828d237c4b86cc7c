"""Threads and Terns from a browser: make, send, watch, cancel, delete, and what each call saw."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from asgi import Streamed, events
from browsing import Browser, browser
from desks import Gate, Models, desk, sum_up, talk, yes
from pydantic import BaseModel

from agboss import (
    AgentDefinition,
    AgentRuntime,
    AnswerFinish,
    App,
    ModelSpec,
    TaskStart,
    agent,
    chain,
    create_app,
    tool,
    workflow,
    workflow_start,
)
from agboss.admin import add_admin
from agboss.models import ModelRequest
from agboss.server import make_server
from agboss.testing import MakeApp, MockLlm, call_tool

SEND = "/admin/threads/t/terns"
KEYS = ("key", "agent")


@tool
def look_up(topic: str) -> str:
    """Look something up.

    Args:
        topic: What.
    """
    return f"{topic} is <b>blue</b>."


def app(answer: Any = yes, **settings: Any) -> App:
    return create_app(desk(every=None), store="memory://", models=Models(answer, sum_up), **settings)


@asynccontextmanager
async def opened_at_last(gate: Gate) -> AsyncGenerator[None]:
    """A test that fails lets the Tern end all the same."""
    try:
        yield
    finally:
        gate.open.set()


async def settled(server: Any) -> None:
    """All Terns of the server have ended."""
    for log in [*server.state.service.runs.running]:
        await asyncio.wait([log.task])


async def send(pages: Browser, task: str, thread: str = "t") -> str:
    await pages.open(f"/admin/threads/{thread}")
    fields = {name: pages.value(name) for name in KEYS}
    return await pages.send(f"/admin/threads/{thread}/terns", fields | {"task": task})


async def test_a_thread_is_made_and_a_tern_run_in_it() -> None:
    async with app() as served, browser(server := add_admin(make_server(served))) as pages:
        await pages.open("/admin/threads")
        page = await pages.send("/admin/threads")
        assert ("New Tern" in page, "Nothing was asked yet." in page) == (True, True)
        (info,) = await served.threads.list()
        await send(pages, "Who <i>is</i> Ada?", info.id)
        await settled(server)
        page = await pages.open(f"/admin/threads/{info.id}")
        assert ("Who &lt;i&gt;is&lt;/i&gt; Ada?" in page, "Yes." in page) == (True, True)


async def test_the_answer_stands_on_the_page_and_a_form_that_is_sent_twice_runs_once() -> None:
    async with app() as served, browser(server := add_admin(make_server(served))) as pages:
        await talk(served, 1)
        page = await pages.open("/admin/threads/t")
        fields = {name: pages.value(name) for name in KEYS} | {"task": "again?"}
        for _ in range(2):
            pages.page = page
            await pages.send(SEND, fields)
            assert pages.status == 200
            await settled(server)
        assert [one.task for one in (await served.threads.get("t")).terns] == ["task 1.", "again?"]
        page = await pages.open("/admin/threads/t")
        assert page.index("Tern 2") < page.index("Tern 1</a>")
        assert pages.value("task") == ""


@pytest.mark.parametrize("task", ["", "  \n "])
async def test_an_empty_task_is_refused(task: str) -> None:
    async with app() as served, browser(add_admin(make_server(served))) as pages:
        await talk(served, 1)
        page = await send(pages, task)
        assert (pages.status, "The Tern did not begin." in page, "run.invalid-input" in page) == (400, True, True)
        assert len((await served.threads.get("t")).terns) == 1


async def test_while_a_tern_runs_its_events_come_and_what_was_written_is_kept() -> None:
    gate = Gate()
    async with app(gate) as served:
        server = add_admin(make_server(served))
        async with browser(server) as pages, opened_at_last(gate):
            await served.threads.create()
            thread = (await served.threads.list())[0].id
            page = await send(pages, "wait for it", thread)
            assert f'data-events="/admin/threads/{thread}/terns/1/events' in page
            assert ("Cancel" in page, 'http-equiv="refresh"' in page, 'id="task"' in page) == (True, True, False)
            assert "has to wait until Tern 1 has ended" in page
            refused = await pages.send(f"/admin/threads/{thread}/terns", {"task": "me too"})
            assert (pages.status, "run.thread-busy" in refused) == (409, True)
            listened = Streamed(server, "GET", f"/admin/threads/{thread}/terns/1/events")
            await listened.until("tern_started")
            gate.open.set()
            told = events((await listened.rest()).partition("\n\n")[2]) or []
            assert told[-1][1] == "ended"
            page = await pages.open(f"/admin/threads/{thread}")
            assert ("Through the gate." in page, "data-events" in page) == (True, False)
            await pages.open(f"/admin/threads/{thread}/terns/9/events")
            assert pages.status == 404


async def test_a_browser_that_leaves_stops_nothing() -> None:
    gate = Gate()
    async with app(gate) as served:
        server = add_admin(make_server(served))
        async with browser(server) as pages, opened_at_last(gate):
            thread = await served.threads.create()
            await send(pages, "wait for it", thread)
            listened = Streamed(server, "GET", f"/admin/threads/{thread}/terns/1/events")
            await listened.until("tern_started")
            await listened.vanish()
            gate.open.set()
            again = Streamed(server, "GET", f"/admin/threads/{thread}/terns/1/events")
            assert "Through the gate." in await again.rest()


async def test_a_running_tern_is_cancelled_and_a_thread_deleted() -> None:
    gate = Gate()
    async with app(gate) as served, browser(add_admin(make_server(served))) as pages, opened_at_last(gate):
        thread = await served.threads.create()
        await send(pages, "wait for it", thread)
        assert pages.value("terns") == "1"
        assert "Nothing was cancelled" in await pages.send(f"/admin/threads/{thread}/cancel", {"terns": "2"})
        page = await pages.send(f"/admin/threads/{thread}/cancel", {"terns": "1"})
        assert ("The Tern was cancelled." in page, ">cancelled<" in page, gate.cancelled) == (True, True, True)
        assert "No Tern was running" in await pages.send(f"/admin/threads/{thread}/cancel")
        await send(pages, "once more", thread)
        page = await pages.open(f"/admin/threads/{thread}/delete")
        assert ("Its 2 Terns" in page, "The Tern that runs now is cancelled." in page) == (True, True)
        page = await pages.send(f"/admin/threads/{thread}/delete")
        assert ("The thread was deleted." in page, "There are no threads yet." in page) == (True, True)
        await pages.open(f"/admin/threads/{thread}/delete")
        assert pages.status == 404


async def test_where_nobody_logs_in_a_tern_is_run_for_the_owner_of_the_thread() -> None:
    async with app() as served, browser(server := add_admin(make_server(served))) as pages:
        await served.execute("a", thread="t", create_thread=True, owner="ada")
        await send(pages, "b")
        assert pages.status == 200
        await settled(server)
        await pages.open("/admin/threads/t")
        assert "Tern 2" in pages.page


async def test_of_another_owner_nothing_can_be_run_watched_or_deleted() -> None:
    tokens = {"token-of-ada-0123456789": "ada", "token-of-bob-0123456789": "bob"}
    async with app() as served, browser(add_admin(make_server(served, tokens=tokens))) as pages:
        await served.execute("a", thread="t", create_thread=True, owner="ada")
        await pages.open("/admin/login")
        await pages.send("/admin/login", {"token": "token-of-bob-0123456789"})
        for path in ("terns", "cancel", "delete"):
            await pages.open("/admin/threads")
            page = await pages.send(f"/admin/threads/t/{path}", {"task": "x"})
            assert (pages.status, "run.unknown-thread" in page) == (404, True)
        for path in ("terns/1/events", "compact/events", "delete", "terns/1/calls/0?agent=helper"):
            await pages.open(f"/admin/threads/t/{path}")
            assert pages.status == 404
        assert len((await served.threads.get("t")).terns) == 1


async def test_starts_with_fields_take_json() -> None:
    class Order(BaseModel):
        boat: str
        number: int

    @workflow_start(input=Order, name="order")
    class OrderStart: ...

    @agent(name="clerk", model="openai:gpt-5-mini")
    class Clerk: ...

    @workflow(name="shop", flow=[chain(TaskStart, Clerk, AnswerFinish), chain(OrderStart, Clerk)])
    class Shop: ...

    async with create_app(Shop, store="memory://", models=Models(yes, sum_up)) as served:
        assert served.starts == {"task-start": None, "order": Order}
        async with browser(server := add_admin(make_server(served))) as pages:
            thread = await served.threads.create()
            page = await pages.open(f"/admin/threads/{thread}")
            assert "order (JSON: boat, number)" in page
            for start, task, status in (
                ("task-start", "plain", 200),
                ("order", '{"boat": "Ada", "number": 2}', 200),
                ("order", "two boats", 400),
                ("order", '{"boat": "Ada"}', 400),
                ("nowhere", "x", 400),
            ):
                await settled(server)
                await pages.open(f"/admin/threads/{thread}")
                fields = {"key": pages.value("key"), "task": task, "start": start}
                page = await pages.send(f"/admin/threads/{thread}/terns", fields)
                assert pages.status == status, page
                assert status == 200 or pages.value("task") == task
            terns = (await served.threads.get(thread)).terns
            assert [json.loads(one.task) if one.task[0] == "{" else one.task for one in terns] == [
                "plain",
                {"boat": "Ada", "number": 2},
            ]


async def test_what_each_call_of_a_tern_saw_is_a_link_away(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    config = {"kind": "full"}

    @agent(name="helper", model=ModelSpec("ollama:test"), prompt="Be brief.", tools=[look_up], memory_config=config)
    class Helper: ...

    mock_llm(Helper).then_return("one", call_tool(look_up, topic="sky"), "two")
    async with agboss_app(Helper) as served, browser(add_admin(make_server(served))) as pages:
        await talk(served, 2)
        page = await pages.open("/admin/threads/t/terns/2")
        assert [f"/terns/2/calls/{call}?agent=helper" in page for call in range(3)] == [True, True, False]
        page = await pages.open("/admin/threads/t/terns/2/calls/0", agent="helper")
        assert ("task 2." in page, "sky" in page) == (True, False)
        page = await pages.open("/admin/threads/t/terns/2/calls/1", agent="helper")
        assert "sky is &lt;b&gt;blue&lt;/b&gt;." in page
        assert "→ look_up({&#34;topic&#34;:" in page
        for path in ("terns/2/calls/2?agent=helper", "terns/9/calls/0?agent=helper"):
            await pages.open(f"/admin/threads/t/{path}")
            assert pages.status == 404


async def test_what_a_failed_call_saw_is_a_link_away() -> None:
    async def fail(_: ModelRequest) -> str:
        raise ConnectionError("gone")

    async with app(fail) as served, browser(server := add_admin(make_server(served))) as pages:
        thread = await served.threads.create()
        await send(pages, "try", thread)
        await settled(server)
        page = await pages.open(f"/admin/threads/{thread}/terns/1")
        path = f"/admin/threads/{thread}/terns/1/calls/0?agent=helper"
        assert path in page
        assert "What helper saw in Tern 1, call 1" in await pages.open(path)


async def test_agents_from_definitions_have_threads_of_their_own() -> None:
    definitions = [AgentDefinition(name=name, model="openai:gpt-5-mini") for name in ("cook", "clerk")]
    runtime = AgentRuntime(definitions, store="memory://", models=Models(yes, sum_up))
    async with runtime, browser(add_admin(make_server(runtime))) as pages:
        await pages.open("/admin/threads", agent="cook")
        page = await pages.send("/admin/threads", {"agent": "cook"})
        assert ("New Tern" in page, pages.value("agent")) == (True, "cook")
        (info,) = await runtime.threads("cook").list()
        await pages.send(f"/admin/threads/{info.id}/terns", {"task": "a", "agent": "cook", "key": "k"})
        page = await pages.send(f"/admin/threads/{info.id}/delete", {"agent": "cook"})
        assert "The thread was deleted." in page
        await pages.open("/admin/threads")
        page = await pages.send("/admin/threads", {"agent": "nobody"})
        assert "definition.unknown" in page
