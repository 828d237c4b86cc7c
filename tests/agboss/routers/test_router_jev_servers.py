"""The decision-model router against real servers: a real model, and the reference server with faults."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from servers import process
from typesafe_sdk import AsyncTypeSafeClient, Choice

from agboss.components.settings import JevRouter
from agboss.errors import RouterError
from agboss.routers import RouteByDecision, RouteOption, RouteRequest, build_router, decide

OPTIONS = (
    RouteOption(name="billing", description="Invoices and refunds", examples=("Where is my money?", "Refund me")),
    RouteOption(name="support"),
    RouteOption(name="sales", description="Buying"),
)

pytestmark = pytest.mark.agboss_models


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "or-key")
    monkeypatch.setenv("TYPESAFE_API_KEY", "ts-key")


def asking(task: str = "Refund!", **more: Any) -> RouteRequest:
    return replace(RouteRequest(router="front", task=task, options=OPTIONS), **more)


@pytest.fixture(scope="module")
def sparrow() -> Iterator[str]:
    with process("sparrow-decider", "serve") as url:
        yield url


@pytest.fixture(scope="module")
def mock() -> Iterator[str]:
    with process("jevcompat", "mock") as url:
        yield url


@pytest.mark.parametrize(("task", "name"), [("I want my money back, refund my invoice", "billing")])
async def test_a_real_decision_model_decides(sparrow: str, task: str, name: str) -> None:
    settings = JevRouter(model="jev-latest", base_url=sparrow)
    router = build_router(settings)
    assert isinstance(router, RouteByDecision)
    result = await decide(router, asking(task), settings)
    assert result.next == name
    assert sum(result.probabilities.values()) == pytest.approx(1, abs=0.05)
    assert result.confidence is not None
    assert result.cost == Decimal(0)
    await router.aclose()


async def test_the_official_client_reads_the_same_answer(mock: str) -> None:
    router = build_router(JevRouter(model="jev-latest", base_url=mock))
    assert isinstance(router, RouteByDecision)
    ours = await router.route(asking())
    await router.aclose()
    criteria = {
        "billing": "Invoices and refunds For example: Where is my money?; Refund me",
        "support": None,
        "sales": "Buying",
    }
    question = Choice(instructions="Which route should handle the task?", criteria=criteria)
    async with AsyncTypeSafeClient(api_key="none", base_url=mock) as client:
        official: Any = client
        reply = await official.system_one(state="Refund!", questions={"route": question}, model="jev-latest")
    theirs = reply.choices["route"]
    assert ours.next == theirs.choice
    assert ours.probabilities == pytest.approx(dict(theirs.probabilities))
    assert ours.reported_confidence == pytest.approx(theirs.confidence)
    assert ours.confidence == pytest.approx(theirs.confidence, abs=0.02)


FAULTS: dict[str, str | None] = {
    "wrong-route": "router.http",
    "xssi-200": "router.bad-answer",
    "reject-jev-latest": "router.http",
    "nan": "router.bad-answer",
    "choice-key-case": "router.bad-answer",
    "choice-sum": "router.bad-answer",
    "choice-second": "router.bad-answer",
    "no-null-description": "router.http",
    "plain-content-type": None,
    "text-errors": None,
    "choice-no-confidence": None,
    "confidence-over": None,
    "confidence-margin": None,
    "extra-answer": None,
    "unprefixed-extra": None,
    "float-usage": None,
    "no-usage": None,
}


@pytest.mark.parametrize(("fault", "code"), FAULTS.items())
async def test_faults_of_a_server_are_typed_errors_or_harmless(fault: str, code: str | None) -> None:
    options = (RouteOption(name="Billing", description="Invoices"), RouteOption(name="support"))
    with process("jevcompat", "mock", "--fault", fault) as url:
        router = RouteByDecision(JevRouter(model="jev-latest", base_url=url))
        if code is None:
            assert (await router.route(asking(options=options))).next in {"Billing", "support"}
        else:
            with pytest.raises(RouterError) as caught:
                await router.route(asking(options=options))
            assert caught.value.code == code
        await router.aclose()


@pytest.mark.parametrize("right", [True, False])
async def test_a_server_with_a_key(right: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    with process("jevcompat", "mock", "--key", "right") as url:
        settings = JevRouter(model="jev-latest", base_url=url, api_key_env="MINE")
        monkeypatch.setenv("MINE", "right" if right else "wrong-key")
        router = RouteByDecision(settings)
        if right:
            assert (await router.route(asking())).next
        else:
            with pytest.raises(RouterError) as caught:
                await router.route(asking())
            assert caught.value.code == "router.refused"
            assert "wrong-key" not in str(caught.value)
        await router.aclose()
