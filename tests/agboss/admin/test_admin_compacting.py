"""Compact in the background: progress, the end told once, and nobody who leaves stops it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest
from asgi import Streamed
from browsing import browser
from desks import Models, desk, sum_up, talk, yes

from agboss import App, CompactProgress, agent, create_app
from agboss.admin import add_admin, memory
from agboss.admin.compacting import MOST_ENDED, Compactions
from agboss.app import AppMemory
from agboss.models import ModelRequest
from agboss.server import make_server
from agboss.server.served import Place, ServedApp

SEND = "/admin/threads/t/compact"
WATCH = f"{SEND}/events"


class Steps:
    """A summariser that fails until it is told to work, then waits to be let on, call by call."""

    def __init__(self) -> None:
        self.working = False
        self.fails_at = 0
        self.calls = 0
        self._let = asyncio.Semaphore(0)
        self.reached = asyncio.Event()

    async def __call__(self, _: ModelRequest) -> str:
        if not self.working:
            raise ConnectionError("10.0.0.7 is down")
        self.reached.set()
        await self._let.acquire()
        self.calls += 1
        if self.calls == self.fails_at:
            raise ConnectionError("10.0.0.7 is down")
        return f"Part {self.calls} in short."

    def step(self, times: int = 1) -> None:
        for _ in range(times):
            self._let.release()


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "PATIENCE", 0.0)


async def with_due_blocks(steps: Steps) -> App:
    """An App whose thread has three blocks to summarise."""
    app = create_app(desk(every=2, limit=2), store="memory://", models=Models(yes, steps))
    await app.__aenter__()
    await talk(app, 6)
    steps.working = True
    return app


def states(text: str) -> list[tuple[str, int, int]]:
    """Event, value and maximum of each piece."""
    found: list[tuple[str, int, int]] = []
    for block in text.split("\n\n"):
        if block.startswith("event"):
            name, data = block.split("\n")
            told = json.loads(data.removeprefix("data: "))
            found.append((name.removeprefix("event: "), told.get("value", 0), told.get("max", 0)))
    return found


async def test_the_page_shows_how_far_it_is_and_the_end_once() -> None:
    steps = Steps()
    app = await with_due_blocks(steps)
    server = add_admin(make_server(app))
    async with browser(server) as pages:
        await pages.open("/admin/threads/t")
        page = await pages.send(SEND, {"agent": "helper"})
        await steps.reached.wait()
        page = await pages.open("/admin/threads/t")
        assert "Compacting: 0 of 3 blocks done, 0 model calls so far." in page
        assert f'data-events="{WATCH}?agent=helper"' in page
        assert ('http-equiv="refresh"' in page, '<progress max="3" value="0"' in page) == (True, True)
        watched = Streamed(server, "GET", WATCH)
        await watched.until("0 of 3")
        steps.step()
        await watched.until("1 of 3")
        assert "Compacting: 1 of 3 blocks done" in await pages.open("/admin/threads/t")
        steps.step(9)
        told = states(await watched.rest())
        assert told[-1] == ("done", 3, 3)
        page = await pages.open("/admin/threads/t")
        assert "Compacted: 3 new summaries stand for 6 Terns." in page
        assert "The view went from" in page
        assert "data-events" not in page
        assert "Compacted:" not in await pages.open("/admin/threads/t")
        assert states((await pages.http.get(WATCH)).text) == [("done", 0, 0)]
    await app.aclose()


async def test_another_browser_watches_and_is_not_told_the_end_of_the_first() -> None:
    steps = Steps()
    app = await with_due_blocks(steps)
    server = add_admin(make_server(app))
    async with browser(server) as pages, browser(server) as others:
        await pages.open("/admin/threads/t")
        await pages.send(SEND, {"agent": "helper"})
        await steps.reached.wait()
        await others.open("/admin/threads/t")
        await others.send(SEND)  # joins
        assert "Compacting:" in await others.open("/admin/threads/t")
        watched = Streamed(server, "GET", WATCH)
        await watched.until("0 of 3")
        await watched.vanish()
        rest = Streamed(server, "GET", WATCH)
        steps.step(9)
        await rest.rest()
        assert "Compacted:" not in await others.open("/admin/threads/t")
        assert "Compacted:" in await pages.open("/admin/threads/t")
        assert steps.calls == 3
    await app.aclose()


async def test_a_failure_on_the_way_says_what_stays() -> None:
    steps = Steps()
    steps.fails_at = 2
    app = await with_due_blocks(steps)
    server = add_admin(make_server(app))
    async with browser(server) as pages:
        await pages.open("/admin/threads/t")
        await pages.send(SEND, {"agent": "helper"})
        steps.step(9)
        await Streamed(server, "GET", WATCH).rest()
        page = await pages.open("/admin/threads/t")
        assert ("Compact failed" in page, "stays: 1 summary." in page, "compaction." in page) == (True, True, True)
        assert ('role="alert"' in page, "10.0.0.7" in page) == (True, False)
        assert len(await app.memory.summaries("t")) == 1
    await app.aclose()


async def test_while_it_works_a_task_is_refused_and_kept() -> None:
    steps = Steps()
    app = await with_due_blocks(steps)
    server = add_admin(make_server(app))
    async with browser(server) as pages:
        page = await pages.open("/admin/threads/t")
        await pages.send(SEND, {"agent": "helper"})
        await steps.reached.wait()
        pages.page = page
        page = await pages.send("/admin/threads/t/terns", {"task": "now?", "agent": "helper"})
        assert (pages.status, "Compact is at work" in page) == (409, True)
        steps.step(9)
        await Streamed(server, "GET", WATCH).rest()
        assert "New Tern" in await pages.open("/admin/threads/t")
    await app.aclose()


async def test_when_the_server_stops_it_gets_its_time_and_is_stopped_then() -> None:
    for let_on in (True, False):
        steps = Steps()
        app = await with_due_blocks(steps)
        server = add_admin(make_server(app, grace=30 if let_on else 0.01))
        async with server.router.lifespan_context(server):
            async with browser(server) as pages:
                await pages.open("/admin/threads/t")
                await pages.send(SEND, {"agent": "helper"})
                await steps.reached.wait()
                if let_on:
                    steps.step(9)
        async with create_app(desk(), store="memory://", models=Models(yes, sum_up)):
            assert steps.calls == (3 if let_on else 0)


async def test_a_fault_is_told_without_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    async with create_app(desk(), store="memory://", models=Models(yes, sum_up)) as app:
        await talk(app, 1)
        server = add_admin(make_server(app))
        async with browser(server) as pages:

            async def broken(*_: object, **__: object) -> None:
                raise RuntimeError("password=hunter2")

            monkeypatch.setattr(AppMemory, "compact", broken)
            await pages.open("/admin/threads/t")
            page = await pages.send(SEND)  # it is told here if it fails while the form waits, else on the next page
            await Streamed(server, "GET", WATCH).rest()
            page += await pages.open("/admin/threads/t")
            assert ("server.unexpected" in page, "hunter2" in page) == (True, False)


async def test_what_is_remembered_of_ended_ones_is_bounded() -> None:
    async with create_app(desk(), store="memory://", models=Models(yes, sum_up)) as app:
        jobs = Compactions(ServedApp(app))
        place = Place(workflow="desk", agent=None)
        for number in range(MOST_ENDED + 5):
            job = jobs.start(place, f"nowhere-{number}", None, "s")
            assert job.task is not None
            await job.task
        assert jobs.take_note(place, "nowhere-0", "s") is None
        note = jobs.take_note(place, f"nowhere-{MOST_ENDED + 4}", "s")
        assert note is not None
        assert (note.failed, note.code) == (True, "run.unknown-thread")
        await jobs.finish(1)


async def test_the_app_tells_progress_of_both_kinds_of_memory() -> None:
    told: list[CompactProgress] = []
    steps = Steps()
    app = await with_due_blocks(steps)
    steps.step(9)
    report = await app.memory.compact("t", progress=told.append)
    assert len(report.summaries) == 3
    assert [(one.calls, one.summaries, one.blocks) for one in told] == [
        (0, 0, 3),
        (1, 0, 3),
        (1, 1, 3),
        (2, 1, 3),
        (2, 2, 3),
        (3, 2, 3),
        (3, 3, 3),
    ]
    await app.aclose()

    @agent(name="helper", model="openai:gpt-5-mini", memory_config={"kind": "auto_compact"})
    class Helper: ...

    told.clear()
    answer: Callable[[ModelRequest], Awaitable[str]] = yes
    async with create_app(Helper, store="memory://", models=Models(answer, sum_up)) as app:
        await talk(app, 3)
        await app.memory.compact("t", progress=told.append)
    assert [(one.calls, one.summaries, one.blocks) for one in told] == [(1, 0, 0), (1, 1, 0)]
