"""Tokens, names, origins, sizes and rates: what is refused before anything is done."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from asgi import Streamed, client
from desks import Models, desk, sum_up, yes
from hypothesis import given
from hypothesis import strategies as st

from agboss import App, create_app
from agboss.errors import InvalidInputError
from agboss.server import make_server
from agboss.server.limits import RateLimit
from agboss.server.settings import check_address, check_proxy, is_loopback, parse_tokens

TOKEN = "a-token-that-is-long-enough"


def app() -> App:
    return create_app(desk(), store="memory://", models=Models(yes, sum_up))


@pytest.mark.parametrize("token", [None, "wrong-token-wrong-token", TOKEN[:-1], TOKEN + "x", "", "\xff\xfe"])
async def test_without_the_token_nothing_is_answered(token: str | None) -> None:
    async with app() as served:
        server = make_server(served, tokens={TOKEN: "ada"})
        async with client(server) as http:
            headers = [] if token is None else [(b"Authorization", b"Bearer " + token.encode("latin-1"))]
            for method, path in (("GET", "/threads"), ("POST", "/threads"), ("GET", "/metrics"), ("GET", "/nope")):
                refused = await http.request(method, path, headers=headers)
                assert (refused.status_code, refused.json()["code"]) == (401, "server.unauthorized")
                assert refused.headers["www-authenticate"] == "Bearer"
                assert TOKEN not in refused.text
            for path in ("/healthz", "/readyz", "/openapi.json"):
                assert (await http.get(path)).status_code == 200


async def test_another_scheme_is_no_token() -> None:
    async with app() as served, client(make_server(served, tokens={TOKEN: "ada"})) as http:
        for value in (TOKEN, f"Basic {TOKEN}", f"Token {TOKEN}"):
            assert (await http.get("/threads", headers={"Authorization": value})).status_code == 401
        assert (await http.get("/threads", headers={"Authorization": f"bearer {TOKEN}"})).status_code == 200


async def test_without_tokens_nobody_owns_a_thread() -> None:
    async with app() as served, client(make_server(served)) as http:
        thread = (await http.post("/threads", headers={"Authorization": f"Bearer {TOKEN}"})).json()["id"]
        assert (await http.get(f"/threads/{thread}")).json()["owner"] is None


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "[::2]:80"])
async def test_a_foreign_name_is_refused(host: str) -> None:
    async with app() as served, client(make_server(served)) as http:
        refused = await http.get("/healthz", headers={"Host": host})
        assert (refused.status_code, refused.json()["code"]) == (421, "server.bad-host")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:8000", "[::1]"])
async def test_names_of_loopback_are_ours(host: str) -> None:
    async with app() as served, client(make_server(served)) as http:
        assert (await http.get("/healthz", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost.evil.example", "http://localhost:1"]
)
async def test_a_page_of_another_site_may_not_call(origin: str) -> None:
    async with app() as served, client(make_server(served)) as http:
        refused = await http.post("/threads", headers={"Origin": origin})
        assert (refused.status_code, refused.json()["code"]) == (403, "server.bad-origin")
        assert (await http.get("/threads")).json()["threads"] == []


async def test_a_page_that_is_allowed_may_call_and_reads_the_answer() -> None:
    async with app() as served:
        async with client(make_server(served, allowed_origins=["https://desk.example/"])) as http:
            asked = {"Origin": "https://desk.example", "Access-Control-Request-Method": "POST"}
            assert (await http.options("/threads", headers=asked)).status_code == 200
            made = await http.post("/threads", headers={"Origin": "https://desk.example"})
            assert made.headers["access-control-allow-origin"] == "https://desk.example"
            assert (await http.post("/threads", headers={"Origin": "http://localhost"})).status_code == 201


async def test_a_body_has_a_bound_whatever_is_announced() -> None:
    async with app() as served:
        server = make_server(served, max_body=100)
        async with client(server) as http:
            thread = (await http.post("/threads")).json()["id"]
            path = f"/threads/{thread}/terns"
            refused = await http.post(path, json={"input": "x" * 200})
            assert (refused.status_code, refused.json()["code"]) == (413, "server.too-large")
            liar = Streamed(server, "POST", path, {"input": "x" * 200}, content_length="1")
            assert "server.too-large" in await liar.rest()
            assert (await http.get(f"/threads/{thread}")).json()["terns"] == []


async def test_a_client_that_is_too_fast_is_told_when_to_come_back() -> None:
    async with app() as served:
        server = make_server(served, tokens={TOKEN: "ada", TOKEN[::-1]: "bob"}, rate_limit=3)
        async with client(server, TOKEN) as ada, client(server, TOKEN[::-1]) as bob, client(server) as nobody:
            answers = [(await ada.get("/threads")).status_code for _ in range(4)]
            assert answers == [200, 200, 200, 429]
            assert 0 < int((await ada.get("/threads")).headers["retry-after"]) <= 20
            assert (await bob.get("/threads")).status_code == 200
            assert [(await nobody.get("/threads")).status_code for _ in range(4)] == [401, 401, 401, 429]


@given(st.lists(st.floats(0, 5), min_size=1, max_size=200), st.integers(1, 60))
def test_no_minute_sees_more_than_twice_the_rate(pauses: list[float], rate: int) -> None:
    now = 0.0
    limit = RateLimit(rate, clock=lambda: now)
    passed: list[float] = []
    for pause in pauses:
        now += pause
        if limit.wait("x") == 0:
            passed.append(now)
    for start in passed:
        assert sum(start <= moment < start + 60 for moment in passed) <= 2 * rate


def test_few_clients_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    from agboss.server import limits

    monkeypatch.setattr(limits, "MOST_CLIENTS", 2)
    limit = RateLimit(1, clock=lambda: 0.0)
    assert [limit.wait(name) for name in "abc"] == [0, 0, 0]
    assert limit.wait("c") > 0
    assert limit.wait("a") == 0


async def test_every_answer_carries_what_keeps_browsers_careful() -> None:
    async with app() as served, client(make_server(served)) as http:
        for answer in (await http.get("/healthz"), await http.get("/nope"), await http.get("/", headers={"Host": "x"})):
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
            assert answer.headers["cache-control"] == "no-store"


async def test_an_unexpected_fault_is_told_and_logged_without_its_text(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with app() as served, client(make_server(served)) as http:

        async def broken(**_: Any) -> None:
            raise RuntimeError("password=hunter2")

        monkeypatch.setattr(served.threads, "create", broken)
        with caplog.at_level(logging.DEBUG):
            failed = await http.post("/threads")
    assert (failed.status_code, failed.json()["code"]) == (500, "server.unexpected")
    assert "hunter2" not in failed.text + caplog.text
    assert "RuntimeError at " in caplog.text


def test_only_loopback_is_served_without_a_token() -> None:
    for host in ("127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost", "LocalHost"):
        assert is_loopback(host)
        check_address(host, tokens=False)
    for host in ("0.0.0.0", "::", "192.168.1.1", "example.org", "localhost.example.org", ""):
        check_address(host, tokens=True)
        with pytest.raises(InvalidInputError) as caught:
            check_address(host, tokens=False)
        assert caught.value.code == "server.no-token"


@pytest.mark.parametrize(
    "settings",
    [
        {"tokens": {"short": "ada"}},
        {"tokens": {"with a space in it all along": "ada"}},
        {"tokens": {"ünïcödé-tökén-0123456789": "ada"}},
        {"tokens": {TOKEN: None}},
        {"tokens": {TOKEN: ""}},
        {"max_body": -1},
        {"rate_limit": float("nan")},
        {"grace": "10"},
    ],
)
def test_settings_that_cannot_be_are_refused_and_no_token_is_shown(settings: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        make_server(app(), **settings)
    assert not any(token in str(caught.value) for token in settings.get("tokens", ()))


def test_only_apps_and_runtimes_are_served() -> None:
    with pytest.raises(InvalidInputError, match="got a type"):
        make_server(desk())  # type: ignore[arg-type]


def test_tokens_from_the_environment() -> None:
    assert parse_tokens("") == {}
    assert parse_tokens(" ada=one=1 , bob=two,") == {"one=1": "ada", "two": "bob"}
    for wrong in ("justatoken", "=x", "ada=", "a=x,b=x"):
        with pytest.raises(InvalidInputError) as caught:
            parse_tokens(wrong)
        assert "justatoken" not in str(caught.value)


async def test_whoever_watches_the_server_is_not_slowed_down() -> None:
    async with app() as served, client(make_server(served, rate_limit=1)) as http:
        for path in ("/healthz", "/readyz", "/metrics") * 3:
            assert (await http.get(path)).status_code == 200
        assert [(await http.get("/threads")).status_code for _ in "12"] == [200, 429]


def test_a_proxy_is_an_address_or_a_network() -> None:
    for fine in ("", "127.0.0.1", "::1", "10.0.0.0/8, 192.168.1.7"):
        check_proxy(fine)
    for wrong in ("proxy.example", "10.0.0.0/99", "127.0.0.1,", "*"):
        with pytest.raises(InvalidInputError) as caught:
            check_proxy(wrong)
        assert caught.value.code == "server.bad-setting"
