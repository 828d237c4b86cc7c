"""Who may see the pages, what a form needs, and what every page carries."""

from __future__ import annotations

from typing import Any

import pytest
from browsing import browser
from desks import Models, desk, sum_up, yes

from agboss import App, create_app
from agboss.admin import add_admin
from agboss.admin.sessions import COOKIE, LASTS, MOST, Note, Sessions
from agboss.server import make_server
from agboss.server.settings import digest

ADA, BOB = "token-of-ada-0123456789", "token-of-bob-0123456789"
TOKENS = {ADA: "ada", BOB: "bob"}


def app() -> App:
    return create_app(desk(), store="memory://", models=Models(yes, sum_up))


async def log_in(pages: Any, token: str) -> str:
    await pages.open("/admin/login")
    return await pages.send("/admin/login", {"token": token})


@pytest.mark.parametrize("path", ["compact", "undo", "what-if"])
async def test_a_form_without_the_token_of_its_page_does_nothing(path: str) -> None:
    async with app() as served, browser(add_admin(make_server(served))) as pages:
        await served.execute("a", thread="t", create_thread=True)
        await pages.open("/admin/threads/t")
        for data in ({}, {"form_token": ""}, {"form_token": "0" * 64}, {"form_token": "\xff"}):
            refused = await pages.http.post(f"/admin/threads/t/{path}", data=data)
            assert (refused.status_code, "server.bad-form" in refused.text) == (403, True)
        async with browser(pages.http._transport.app) as other:  # pyright: ignore
            await other.open("/admin/threads/t")
            other.page = pages.page
            await other.send(f"/admin/threads/t/{path}")
            assert other.status == 403
        assert (await pages.http.get(f"/admin/threads/t/{path}")).status_code in (404, 405)


async def test_every_answer_is_strict_and_its_cookie_is_unseen_by_scripts() -> None:
    async with app() as served, browser(add_admin(make_server(served))) as pages:
        for path in ("/admin/threads", "/admin/nowhere", "/admin/static/admin.js", "/admin/agents"):
            answer = await pages.http.get(path)
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert answer.headers["referrer-policy"] == "same-origin"
            assert " style=" not in answer.text
            assert " onclick=" not in answer.text
            assert (answer.headers["x-frame-options"], answer.headers["cache-control"]) == ("DENY", "no-store")
        pages.http.cookies.clear()
        cookie = (await pages.http.get("/admin/threads")).headers["set-cookie"]
        assert all(part in cookie for part in ("HttpOnly", "SameSite=strict", "Path=/admin"))
        for planted in ("x", "ada", "a" * 500):
            answer = await pages.http.get("/admin/threads", headers={"Cookie": f"{COOKIE}={planted}"})
            assert planted not in answer.headers["set-cookie"].partition(";")[0].partition("=")[2] or planted == "x"


async def test_with_tokens_nothing_is_seen_without_a_login() -> None:
    async with app() as served, browser(add_admin(make_server(served, tokens=TOKENS))) as pages:
        await served.execute("secret of ada", thread="t", create_thread=True, owner="ada")
        for path in ("/admin/", "/admin/threads", "/admin/threads/t", "/admin/agents", "/admin/nowhere"):
            page = await pages.open(path)
            assert ("Log in" in page, "secret" in page) == (True, False)
        await pages.open("/admin/login")
        assert (await pages.http.post("/admin/threads/t/compact")).headers["location"] == "/admin/login"
        assert (await pages.http.get("/threads")).status_code == 401
        assert "not known" in await log_in(pages, "wrong-token-0123456789")
        assert "not known" in await log_in(pages, "\xff")
        assert "<h1>Threads" in await log_in(pages, f" {ADA} ")
        assert "secret of ada" in await pages.open("/admin/threads/t")
        assert ADA not in pages.page
        assert (await pages.http.get("/threads")).status_code == 401  # the cookie opens pages only
        await pages.send("/admin/logout")
        assert "Log in" in await pages.open("/admin/threads/t")


async def test_a_thread_of_another_owner_looks_missing() -> None:
    async with app() as served, browser(add_admin(make_server(served, tokens=TOKENS))) as pages:
        await served.execute("a", thread="t", create_thread=True, owner="ada")
        await log_in(pages, BOB)
        assert 'data-label="Thread"' not in pages.page
        foreign, missing = await pages.open("/admin/threads/t"), await pages.open("/admin/threads/x")
        assert (pages.status, foreign) == (404, missing)
        for query in ({"q": "t"}, {"q": "ada"}, {"after": "t"}):
            assert 'data-label="Thread"' not in await pages.open("/admin/threads", **query)
        for path in ("/admin/threads/t/terns/1", "/admin/threads/t/memory?number=1"):
            await pages.open(path)
            assert pages.status == 404
        await pages.open("/admin/threads")
        assert "run.unknown-thread" in await pages.send("/admin/threads/t/what-if", {"config": "{}"})


async def test_a_header_opens_the_pages_too() -> None:
    async with app() as served, browser(add_admin(make_server(served, tokens=TOKENS))) as pages:
        pages.http.headers["Authorization"] = f"Bearer {ADA}"
        assert "<h1>Threads" in await pages.open("/admin/")


async def test_a_fault_of_ours_is_told_without_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    async with app() as served, browser(add_admin(make_server(served))) as pages:

        async def broken(*_: object, **__: object) -> None:
            raise RuntimeError("password=hunter2")

        monkeypatch.setattr(served.threads, "list", broken)
        page = await pages.open("/admin/threads")
        assert (pages.status, "server.unexpected" in page, "hunter2" in page) == (500, True, False)


async def test_a_form_has_a_bound() -> None:
    async with app() as served, browser(add_admin(make_server(served, max_body=9000))) as pages:
        await served.execute("a", thread="t", create_thread=True)
        await pages.open("/admin/threads/t")
        assert "server.too-large" in await pages.send("/admin/threads/t/what-if", {"config": "x" * 10_000})
        many = {f"f{n}": "" for n in range(600)}
        assert (await pages.http.post("/admin/threads/t/what-if", data=many)).status_code == 400


def test_a_login_ends_and_what_is_remembered_is_bounded() -> None:
    now = 0.0
    sessions = Sessions({digest(ADA): "ada"}, clock=lambda: now)
    session = sessions.log_in(ADA)
    assert session is not None
    assert sessions.owner(session) == "ada"
    now = LASTS
    assert sessions.owner(session) is None
    for number in range(MOST + 1):
        sessions.tell(str(number), Note(text="x"))
    assert (sessions.take_note("0"), sessions.take_note("1")) == (None, Note(text="x"))
    assert sessions.take_note("1") is None
