"""The decision-model router against scripted transports."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from typing import Any

import httpx2
import pytest

from agboss.components.settings import JevRouter
from agboss.errors import MissingExtraError, ModelKeyError, RouterError
from agboss.routers import RouteByDecision, RouteOption, RouteRequest, build_router, decide, decision_key
from agboss.routers.breaker import CircuitBreaker
from agboss.routers.jev_server import server_of
from agboss_memory.messages import TernStatus

OPTIONS = (
    RouteOption(name="billing", description="Invoices and refunds", examples=("Where is my money?", "Refund me")),
    RouteOption(name="support"),
    RouteOption(name="sales", description="Buying"),
)
ANSWER: dict[str, Any] = {
    "id": "dec-1",
    "model": "typesafe/jev-1.13",
    "answers": {
        "route": {
            "type": "choice",
            "choice": "billing",
            "probabilities": {"billing": 0.9, "sales": 0.07, "support": 0.03},
            "confidence": 0.42,
        }
    },
    "usage": {"input_tokens": 100, "output_tokens": 1, "cost": 0.0000042},
}

pytestmark = pytest.mark.agboss_models


def asking(task: str = "Refund!", **more: Any) -> RouteRequest:
    return replace(RouteRequest(router="front", task=task, options=OPTIONS), **more)


class Server:
    """Answers in order; the last answer again and again."""

    def __init__(self, *answers: httpx2.Response | Exception | dict[str, Any]) -> None:
        self.answers = list(answers)
        self.requests: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx2.Response(200, json=answer) if isinstance(answer, dict) else answer

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(request.content) for request in self.requests]

    def router(self, breaker: CircuitBreaker | None = None, **settings: Any) -> RouteByDecision:
        client = httpx2.AsyncClient(transport=httpx2.MockTransport(self))
        built = JevRouter.model_validate({"model": "typesafe/jev-1.13", **settings})
        return RouteByDecision(built, client=client, breaker=breaker, wait=0.0)


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "or-key")
    monkeypatch.setenv("TYPESAFE_API_KEY", "ts-key")


def answering(**changes: Any) -> dict[str, Any]:
    return {**ANSWER, "answers": {"route": {**ANSWER["answers"]["route"], **changes}}}


async def test_openrouter_decisions() -> None:
    server = Server(ANSWER)
    router = server.router(instructions="Who?")
    result = await router.route(asking(thread_id="t1", past="Previous turns:\nQ: Hi\nA: Hello"))
    assert (result.next, result.source) == ("billing", "jev")
    assert result.confidence == pytest.approx((0.9 - 1 / 3) / (1 - 1 / 3))
    assert result.reported_confidence == 0.42
    assert result.cost == Decimal("0.0000042")
    (usage,) = result.usage
    assert (usage.caller, usage.model, usage.purpose, usage.source) == ("front", "typesafe/jev-1.13", "route", "api")
    assert (usage.input_tokens, usage.output_tokens) == (100, 1)
    (sent,) = server.requests
    assert str(sent.url) == "https://openrouter.ai/api/alpha/decisions"
    assert sent.headers["authorization"] == "Bearer or-key"
    assert server.bodies[0] == {
        "model": "typesafe/jev-1.13",
        "session_id": "t1",
        "state": "Previous turns:\nQ: Hi\nA: Hello\n\nTask:\nRefund!",
        "questions": {
            "route": {
                "type": "choice",
                "instructions": "Who?",
                "criteria": {
                    "billing": "Invoices and refunds For example: Where is my money?; Refund me",
                    "support": None,
                    "sales": "Buying",
                },
            }
        },
    }
    await router.aclose()
    await router.aclose()


async def test_typesafe_direct_has_no_session_and_a_list_price() -> None:
    server = Server({**ANSWER, "usage": {"input_tokens": 1000, "output_tokens": 1}})
    router = server.router(model="jev-latest")
    result = await router.route(asking(thread_id="t1"))
    (sent,) = server.requests
    assert str(sent.url) == "https://api.typesafe.ai/v1/systemone"
    assert sent.headers["authorization"] == "Bearer ts-key"
    assert "session_id" not in server.bodies[0]
    assert server.bodies[0]["state"] == "Refund!"
    assert (result.cost, result.usage[0].source) == (Decimal("0.000042"), "price-table")
    await router.aclose()


async def test_a_session_id_is_never_too_long() -> None:
    server = Server(ANSWER)
    router = server.router()
    await router.route(asking(thread_id="t" * 257))
    assert "session_id" not in server.bodies[0]
    await router.aclose()


async def test_the_last_answer_is_part_of_the_state() -> None:
    server = Server(ANSWER)
    router = server.router()
    await router.route(asking(last_answer="Done \ud800.", last_status=TernStatus.ANSWERED))
    assert server.bodies[0]["state"].endswith("ended as answered. Its answer:\nDone \ufffd.")
    await router.aclose()


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        ({"model": "jev-latest", "base_url": "https://openrouter.ai"}, "https://openrouter.ai/api/v1/systemone"),
        ({"model": "typesafe/jev-1.13"}, "https://openrouter.ai/api/alpha/decisions"),
        ({"model": "~typesafe/jev-latest"}, "https://openrouter.ai/api/alpha/decisions"),
        ({"model": "j", "base_url": "https://openrouter.ai/api/v1"}, "https://openrouter.ai/api/v1/systemone"),
        ({"model": "j", "base_url": "https://openrouter.ai/api/alpha/"}, "https://openrouter.ai/api/alpha/decisions"),
        ({"model": "j", "base_url": "http://127.0.0.1:9/"}, "http://127.0.0.1:9/v1/systemone"),
        ({"model": "a/b", "base_url": "http://localhost:9/v1"}, "http://localhost:9/v1/systemone"),
        ({"model": "j", "base_url": "http://h/x", "path": "decide"}, "http://h/x/decide"),
        ({"model": "j", "base_url": "http://h/v1/systemone"}, "http://h/v1/systemone"),
        ({"model": "j", "base_url": "http://h/v1/systemone", "path": ""}, "http://h/v1/systemone"),
    ],
)
def test_addresses(settings: dict[str, Any], url: str) -> None:
    assert server_of(JevRouter(**settings)).url == url


@pytest.mark.parametrize(
    ("settings", "variable"),
    [
        ({"model": "typesafe/jev-1.13"}, "OPENROUTER_API_KEY"),
        ({"model": "jev-latest"}, "TYPESAFE_API_KEY"),
        ({"model": "typesafe/jev-1.13", "api_key_env": "MINE"}, "MINE"),
        ({"model": "j", "base_url": "https://gateway.example", "api_key_env": "MINE"}, "MINE"),
    ],
)
async def test_a_missing_key_is_named(settings: dict[str, Any], variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(variable, raising=False)
    server = Server(ANSWER)
    router = server.router(**settings)
    with pytest.raises(ModelKeyError) as caught:
        await router.route(asking())
    assert variable in str(caught.value)
    assert "--offline" in caught.value.hint
    assert server.requests == []
    await router.aclose()


@pytest.mark.parametrize(
    "base_url", ["http://127.0.0.1:9", "http://[::1]:9", "http://localhost:9", "https://lan.example"]
)
async def test_other_servers_need_no_key(base_url: str) -> None:
    assert decision_key(JevRouter(model="j", base_url=base_url), {}) == ""
    server = Server(ANSWER)
    router = server.router(model="j", base_url=base_url)
    await router.route(asking())
    assert "authorization" not in server.requests[0].headers
    await router.aclose()


async def test_a_loopback_server_is_free() -> None:
    router = Server({**ANSWER, "usage": {}}).router(model="j", base_url="http://127.0.0.1:9")
    result = await router.route(asking())
    assert (result.cost, result.usage[0].source) == (Decimal(0), "free")
    await router.aclose()


async def test_a_server_without_a_price_makes_the_cost_unknown() -> None:
    router = Server({**ANSWER, "usage": {}}).router(model="j", base_url="http://lan.example")
    result = await router.route(asking())
    assert (result.cost, result.usage[0].source) == (None, "unknown")
    await router.aclose()


async def test_probabilities_may_be_missing() -> None:
    router = Server(answering(probabilities=None, confidence=None)).router()
    result = await router.route(asking())
    assert (result.next, result.probabilities, result.confidence) == ("billing", {}, None)
    await router.aclose()


BAD: list[Any] = [
    {"choice": "finance"},
    {"choice": None},
    {"type": "score"},
    {"probabilities": {"billing": 0.1, "sales": 0.9}},
    {"probabilities": {"Billing": 0.9, "sales": 0.1}},
    {"probabilities": {"billing": 0.9, "sales": 0.5}},
    {"probabilities": {"billing": 0.5, "sales": 0.3}},
    {"probabilities": {"billing": 1.5, "sales": -0.5}},
    {"probabilities": {"billing": "1"}},
    {"probabilities": {"billing": True}},
    {"probabilities": {}},
    {"probabilities": []},
]


@pytest.mark.parametrize("changes", BAD, ids=str)
async def test_an_answer_that_cannot_be_right_is_an_error(changes: dict[str, Any]) -> None:
    server = Server(answering(**changes))
    router = server.router()
    with pytest.raises(RouterError) as caught:
        await router.route(asking())
    assert caught.value.code == "router.bad-answer"
    assert caught.value.data["usage"][0].usd == Decimal("0.0000042")
    assert len(server.requests) == 1
    await router.aclose()


@pytest.mark.parametrize(
    "content", [b"", b")]}'{}", b"[]", b'{"answers": []}', b'{"answers": {}, "x": NaN}', b"[" * 99999]
)
async def test_a_body_that_cannot_be_read_is_an_error(content: bytes) -> None:
    router = Server(httpx2.Response(200, content=content)).router()
    with pytest.raises(RouterError) as caught:
        await router.route(asking())
    assert caught.value.code == "router.bad-answer"
    await router.aclose()


async def test_rounded_probabilities_are_accepted() -> None:
    router = Server(answering(probabilities={"billing": 0.33, "sales": 0.33, "support": 0.33})).router()
    assert (await router.route(asking())).confidence == 0.0
    names = [f"option-{number:03}" for number in range(255)]
    many = tuple(RouteOption(name=name) for name in names)
    flat = {"type": "choice", "choice": names[0], "probabilities": dict.fromkeys(names, 0.0)}
    router = Server({**ANSWER, "answers": {"route": flat}}).router()
    assert (await router.route(asking(options=many))).next == names[0]
    with pytest.raises(RouterError) as caught:
        await router.route(asking(options=(*many, RouteOption(name="one-more"))))
    assert caught.value.code == "router.too-many-options"
    await router.aclose()


@pytest.mark.parametrize("status", [408, 429, 500, 503, 524, 529])
async def test_passing_trouble_is_tried_again(status: int) -> None:
    server = Server(httpx2.Response(status, headers={"retry-after": "0"}), httpx2.ReadError("x"), ANSWER)
    router = server.router()
    assert (await router.route(asking())).next == "billing"
    assert len(server.requests) == 3
    await router.aclose()


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422])
@pytest.mark.parametrize(
    "body",
    [
        {"error": {"code": 400, "message": "the or-key is wrong " + "x" * 999}},
        {"detail": [{"loc": ["body"], "msg": "the or-key is wrong", "type": "t"}]},
        {"detail": "the or-key is wrong"},
    ],
)
async def test_other_errors_are_not(status: int, body: dict[str, Any]) -> None:
    server = Server(httpx2.Response(status, json=body))
    router = server.router()
    with pytest.raises(RouterError) as caught:
        await router.route(asking())
    error = caught.value
    assert error.code == ("router.refused" if status in {401, 402, 403} else "router.http")
    assert len(server.requests) == 1
    assert error.data["status"] == status
    assert "the *** is wrong" in error.message
    assert str(status) in error.message
    assert len(error.message) < 450
    await router.aclose()


async def test_attempts_are_bounded() -> None:
    server = Server(httpx2.Response(503, text="down"))
    router = server.router(attempts=2)
    with pytest.raises(RouterError) as caught:
        await router.route(asking())
    assert caught.value.code == "router.http"
    assert len(server.requests) == 2
    await router.aclose()


@pytest.mark.parametrize("form", ["seconds", "date", "naive date"])
async def test_a_long_retry_after_is_not_waited_for(form: str) -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(hours=1))
    value = {"seconds": "3600", "date": later, "naive date": "Thu, 31 Dec 2099 00:00:00 -0000"}[form]
    server = Server(httpx2.Response(429, headers={"retry-after": value}), ANSWER)
    router = server.router()
    with pytest.raises(RouterError):
        await router.route(asking())
    assert len(server.requests) == 1
    await router.aclose()


async def test_a_malformed_retry_after_is_ignored() -> None:
    router = Server(httpx2.Response(429, headers={"retry-after": "soon"}), ANSWER).router()
    assert (await router.route(asking())).next == "billing"
    await router.aclose()


async def test_nobody_listens() -> None:
    settings = JevRouter(model="j", base_url="http://127.0.0.1:1", attempts=2)
    router = RouteByDecision(settings, wait=0.0)
    with pytest.raises(RouterError) as caught:
        await router.route(asking())
    assert caught.value.code == "router.connection"
    await router.aclose()


class Hanging(httpx2.AsyncBaseTransport):
    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError


async def test_a_slow_server_times_out_and_cancellation_passes_through() -> None:
    client = httpx2.AsyncClient(transport=Hanging())
    router = RouteByDecision(JevRouter(model="jev-latest", timeout=0.05, attempts=2), client=client, wait=0.0)
    with pytest.raises(RouterError) as caught:
        await router.route(asking())
    assert caught.value.code == "router.timeout"
    await router.aclose()

    hanging = Hanging()
    router = RouteByDecision(JevRouter(model="jev-latest"), client=httpx2.AsyncClient(transport=hanging))
    running = asyncio.create_task(router.route(asking()))
    await hanging.asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await router.aclose()


async def test_a_failing_server_is_left_alone_for_a_while() -> None:
    now = [0.0]
    breaker = CircuitBreaker(clock=lambda: now[0])
    server = Server(httpx2.Response(503))
    router = server.router(breaker, attempts=1)

    async def fails_with(code: str) -> None:
        with pytest.raises(RouterError) as caught:
            await router.route(asking())
        assert caught.value.code == code

    for _ in range(5):
        await fails_with("router.http")
        now[0] += 10
    await fails_with("router.circuit-open")
    assert len(server.requests) == 5
    now[0] += 21
    await fails_with("router.http")
    await fails_with("router.circuit-open")
    now[0] += 31
    server.answers[:] = [ANSWER]
    assert (await router.route(asking())).next == "billing"
    server.answers[:] = [httpx2.Response(503)]
    for _ in range(4):
        await fails_with("router.http")
    server.answers[:] = [ANSWER]
    assert (await router.route(asking())).next == "billing"
    await router.aclose()


async def test_slow_failures_and_wrong_requests_do_not_open_the_circuit() -> None:
    now = [0.0]
    server = Server(httpx2.Response(503))
    router = server.router(CircuitBreaker(clock=lambda: now[0]), attempts=1)
    for _ in range(10):
        now[0] += 20
        with pytest.raises(RouterError, match="503"):
            await router.route(asking())
    server.answers[:] = [httpx2.Response(400)]
    for _ in range(10):
        with pytest.raises(RouterError, match="400"):
            await router.route(asking())
    await router.aclose()


def test_one_caller_tries_after_the_pause() -> None:
    now = [0.0]
    breaker = CircuitBreaker(failures=1, clock=lambda: now[0])
    assert breaker.wait() == 0
    breaker.failed()
    assert breaker.wait() == 30
    now[0] = 30
    assert breaker.wait() == 0
    assert breaker.wait() > 0
    breaker.abandoned()
    assert breaker.wait() == 0


async def test_min_confidence_uses_the_recomputed_figure() -> None:
    settings = JevRouter(model="typesafe/jev-1.13", min_confidence=0.8, fallback="support")
    server = Server(ANSWER)
    assert (await decide(server.router(), asking(), settings)).next == "billing"
    settings = settings.model_copy(update={"min_confidence": 0.9})
    unsure = await decide(server.router(), asking(), settings)
    assert (unsure.next, unsure.source) == ("support", "fallback")


def test_a_missing_library_names_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(MissingExtraError) as caught:
        build_router(JevRouter(model="jev-latest"))
    assert caught.value.hint == "pip install 'agboss[jev]'"
