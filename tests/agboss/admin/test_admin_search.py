"""Threads are found by id, by owner, and by what was said lately; what is read has a bound."""

from __future__ import annotations

import pytest
from browsing import browser
from desks import Models, desk, sum_up
from hypothesis import given
from hypothesis import strategies as st

from agboss import App, create_app
from agboss.admin import add_admin
from agboss.admin.searching import GLANCE, LOOKED_THROUGH
from agboss.admin.showing import around
from agboss.app import AppThreads
from agboss.models import ModelRequest
from agboss.server import make_server

ROW = 'data-label="Thread"'


def app() -> App:
    async def echo(request: ModelRequest) -> str:
        return "You said: " + request.messages[-1].content.rpartition("Task:\n")[2]

    return create_app(desk(every=None), store="memory://", models=Models(echo, sum_up))


async def test_what_was_said_is_found_in_whatever_case_with_what_is_around_it() -> None:
    async with app() as served, browser(add_admin(make_server(served))) as pages:
        await served.execute("The <b>ZEBRA</b> of Ada", thread="t", create_thread=True)
        await served.execute("nothing", thread="u", create_thread=True, owner="zebra")
        page = await pages.open("/admin/threads", q="zebra")
        assert ("Threads of owner" in page, page.count(ROW)) == (True, 1)
        assert "in=texts" in page
        page = await pages.open("/admin/threads", **{"q": "zebra", "in": "texts"})
        assert ("was said lately" in page, page.count(ROW), "/admin/threads/t/terns/1" in page) == (True, 1, True)
        assert "&lt;b&gt;ZEBRA&lt;/b&gt; of Ada" in page
        page = await pages.open("/admin/threads", q="t")
        assert "The thread of that id" in page
        page = await pages.open("/admin/threads", q="quagga")
        assert ("nobody said so lately" in page, page.count(ROW)) == (True, 0)


async def test_with_tokens_only_what_is_ones_own_is_looked_through() -> None:
    tokens = {"token-of-ada-0123456789": "ada", "token-of-bob-0123456789": "bob"}
    async with app() as served, browser(add_admin(make_server(served, tokens=tokens))) as pages:
        await served.execute("secret zebra", thread="t", create_thread=True, owner="ada")
        await pages.open("/admin/login")
        await pages.send("/admin/login", {"token": "token-of-bob-0123456789"})
        for query in ({"q": "zebra"}, {"q": "zebra", "in": "texts"}, {"q": "ada"}, {"q": "t"}):
            assert ROW not in await pages.open("/admin/threads", **query)


async def test_what_is_read_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    async with app() as served, browser(add_admin(make_server(served))) as pages:
        await served.execute("old zebra", thread="oldest", create_thread=True)
        for number in range(LOOKED_THROUGH):
            await served.execute("x", thread=f"t{number}", create_thread=True)
        await served.execute("forgotten gnu", thread="long", create_thread=True)
        for _ in range(GLANCE):
            await served.execute("x", thread="long")
        read: list[int] = []
        terns = AppThreads.terns

        async def counted(self: AppThreads, thread: str, *, limit: int) -> object:
            read.append(limit)
            return await terns(self, thread, limit=limit)

        monkeypatch.setattr(AppThreads, "terns", counted)
        for lost in ("zebra", "gnu"):
            read.clear()
            page = await pages.open("/admin/threads", q=lost)
            assert ROW not in page
            assert (len(read), set(read)) == (LOOKED_THROUGH, {GLANCE})
        assert f"newest {GLANCE} Terns of the newest {LOOKED_THROUGH} threads" in page


@given(st.text(), st.text(min_size=1))
def test_around_finds_what_is_there_and_its_length_has_a_bound(text: str, wanted: str) -> None:
    found = around(text, wanted)
    assert bool(found) == (wanted.casefold() in text.casefold()) or not text.strip()
    assert len(found) <= 140 * 7 + 10
