"""``GET /spend``, bound to who asks."""

from asgi import client
from desks import Models, desk, sum_up, yes

from agboss import create_app
from agboss.server import make_server

ADA, BOB = "token-of-ada-0123456789", "token-of-bob-0123456789"


async def test_each_owner_is_told_what_own_threads_spent() -> None:
    async with create_app(desk(), store="memory://", models=Models(yes, sum_up)) as app:
        await app.execute("a", owner="ada")
        await app.execute("b", owner="ada")
        await app.execute("c", owner="bob")
        server = make_server(app, tokens={ADA: "ada", BOB: "bob"})
        calls: list[int] = []
        for token in (ADA, BOB):
            async with client(server, token) as http:
                told = (await http.get("/spend?days=7")).json()
                assert told["first"] < told["last"]
                calls.append(sum(row["calls"] for row in told["rows"]))
        assert calls == [2, 1]
        async with client(server) as http:
            assert (await http.get("/spend")).status_code == 401
        async with client(make_server(app)) as http:  # on loopback, where nobody is known
            told = (await http.get("/spend")).json()
            assert sum(row["calls"] for row in told["rows"]) == 3
            assert set(told["rows"][0]) == {"day", "model", "calls", "inputTokens", "outputTokens", "usd", "unknown"}
            (first, *_) = (await http.get("/threads")).json()["threads"]
            assert "spend" in first
            assert "spend" in (await http.get(f"/threads/{first['id']}")).json()


async def test_days_that_cannot_be_are_refused() -> None:
    async with (
        create_app(desk(), store="memory://", models=Models(yes, sum_up)) as app,
        client(make_server(app)) as http,
    ):
        for days in ("0", "-1", "x", "99999"):
            assert (await http.get(f"/spend?days={days}")).status_code == 400


async def test_an_unknown_agent_is_told_with_those_that_there_are() -> None:
    async with create_app(desk(), store="memory://", models=Models(yes, sum_up)) as app:
        async with client(make_server(app)) as http:
            refused = await http.get("/spend", params={"agent": "nope"})
            assert (refused.status_code, refused.json()["code"]) == (400, "server.which-agent")
            assert refused.json()["hint"] == "name one of: helper"
            assert (await http.get("/spend", params={"agent": "helper"})).status_code == 200
