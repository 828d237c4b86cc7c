"""What somebody wrote, and how much of it, on SQLite: nothing acts, and what is read and sent has a bound."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from browsing import browser
from desks import Models, desk, sum_up, talk
from sqlite_cost import Trace, fetched_rows, seed_copies

from agboss import App, agent, create_app
from agboss.admin import add_admin
from agboss.admin.searching import GLANCE, THREADS
from agboss.admin.threads import TERNS
from agboss.models import ModelRequest
from agboss.server import make_server

HOSTILE = (
    "</textarea></title><script>alert(1)</script>\"'><img src=x onerror=y>{{ 7 * 7 }}\x00\u202eevil\u2066\u200f"
    "\ud800&amp;</pre><svg onload=z><style>*{display:none}</style><!--"
)
BAD = ("<script>alert", "<img", "<svg onload", "<style>", "<!--", "\x00", "\u202e", "\u2066", "\ud800")
MARKUP = BAD[:5]
"""What a field must not let out; characters it keeps as they were typed."""
FIVE = "long <b> \u202e" * 500_000
LARGEST_PAGE = 200_000
"""Bytes of any page but that of one whole text."""


@pytest.fixture
def trace(monkeypatch: pytest.MonkeyPatch) -> Trace:
    """All statements of every connection that is opened from now on."""
    seen = Trace()
    connect = sqlite3.connect

    def traced(*arguments: Any, **keywords: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **keywords)
        connection.set_trace_callback(seen)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    return seen


def app(path: Path, answer: str, component: type[Any] | None = None) -> App:
    async def say(_: ModelRequest) -> str:
        return answer

    workflow = desk(every=2) if component is None else component
    return create_app(workflow, store=f"sqlite:///{path}", models=Models(say, sum_up))


@pytest.mark.parametrize("own", [False, True])
async def test_on_no_page_what_somebody_wrote_acts(tmp_path: Path, own: bool) -> None:
    @agent(name="helper", model="openai:gpt-5-mini", prompt=HOSTILE, memory_config={"kind": "full"})
    class Helper: ...

    async with app(tmp_path / "a.db", HOSTILE, Helper if own else None) as served:
        for _ in range(5):
            run = await served.execute(HOSTILE, thread="t", create_thread=True, owner="<i>ada")
            assert run.answer == HOSTILE
        async with browser(add_admin(make_server(served))) as pages:
            paths = [
                "threads",
                "threads?q=evil",
                "threads/t",
                "threads/t/terns/1",
                "threads/t/terns/2/calls/0?agent=helper",
            ]
            paths += [f"threads/t/memory?number={number}" for number in (-1, -100, 1, 2)]
            paths += ["threads/t/delete", "agents", "agents/helper"]
            for path in paths:
                page = await pages.open(f"/admin/{path}")
                assert pages.status == 200, path
                assert not [bad for bad in BAD if bad in page], path
                assert (" 49" not in page, "<i>" not in page) == (True, True)
            await pages.open("/admin/threads/t")
            sent = HOSTILE.replace("\ud800", "")  # no browser can send it
            for target in ("what-if", "terns"):
                page = await pages.send(f"/admin/threads/t/{target}", {"config": sent, "task": "x", "start": sent})
                assert pages.status == 400
                assert not [bad for bad in MARKUP if bad in page], target


async def test_five_megabytes_are_cut_on_pages_and_whole_as_a_file(tmp_path: Path) -> None:
    async with app(tmp_path / "a.db", FIVE) as served, browser(add_admin(make_server(served))) as pages:
        await talk(served, 5)
        for path in (
            "threads",
            "threads/t",
            "threads?q=long",
            "threads/t/terns/3/calls/0?agent=helper",
            "threads/t/delete",
        ):
            page = await pages.open(f"/admin/{path}")
            assert (pages.status, len(page.encode()) < LARGEST_PAGE) == (200, True), (path, len(page))
            assert "\u202e" not in page
        for path in ("terns/3", "memory?number=5"):
            page = await pages.open(f"/admin/threads/t/{path}")
            assert (pages.status, len(page.encode()) < 5_000_000) == (200, True)
        assert FIVE in await pages.open("/admin/threads/t/memory", number=5, download=1)


async def test_of_ten_thousand_terns_a_page_reads_as_much_as_of_a_hundred(tmp_path: Path, trace: Trace) -> None:
    path = tmp_path / "a.db"
    cost: dict[int, dict[str, tuple[int, int]]] = {}
    for upto in (100, 10_000):
        async with app(path, "Yes.") as served:
            if upto == 100:
                await talk(served, 2)
        seed_copies(path, upto)
        async with app(path, "Yes.") as served, browser(add_admin(make_server(served))) as pages:
            cost[upto] = {}
            for target in (
                "threads",
                "threads?q=nowhere",
                "threads/t",
                "threads/t?before=60",
                "threads/t?summaries=60",
                "threads/t/terns/50",
                "threads/t/memory?number=50",
                "threads/t/memory?number=-100",
            ):
                trace.take()
                page = await pages.open(f"/admin/{target}")
                statements = trace.take()
                assert (pages.status, len(page.encode()) < LARGEST_PAGE) == (200, True), target
                rows = fetched_rows(path, [one for one in statements if "pragma" not in one.lower()])
                cost[upto][target] = (len(statements), sum(rows))
            page = await pages.open("/admin/threads/t")
            assert f"{upto:,} Terns" in page
            assert page.count('<a href="/admin/threads/t/terns/') == TERNS
    assert cost[100] == cost[10_000]
    assert max(rows for _, rows in cost[10_000].values()) < 200
    assert max(statements for statements, _ in cost[10_000].values()) < 60


async def test_a_list_reads_the_same_for_every_thread(tmp_path: Path, trace: Trace) -> None:
    path = tmp_path / "a.db"
    async with app(path, "Yes.") as served, browser(add_admin(make_server(served))) as pages:
        counts: list[int] = []
        for number in range(THREADS + 10):
            await served.execute("x", thread=f"t{number}", create_thread=True)
            trace.take()
            await pages.open("/admin/threads")
            counts.append(len(trace.take()))
        assert counts[-1] == counts[THREADS]
        assert counts[-1] <= 10 + 6 * THREADS
        assert GLANCE <= 20
