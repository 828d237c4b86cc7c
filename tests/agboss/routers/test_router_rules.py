"""The rules that hold for every router."""

from __future__ import annotations

from typing import Any

import pytest

from agboss.components.settings import FunctionRouter, LlmRouter, Rule, RulesRouter
from agboss.errors import ModelError, RouterError
from agboss.routers import RouteOffline, RouteOption, RouteRequest, RouteResult, build_router, confidence_of, decide
from agboss_memory.messages import TernStatus

BILLING = RouteOption(name="billing", description="Invoices and refunds", examples=("Where is my money?",))
SUPPORT = RouteOption(name="support", description="Broken things")
FINISH = RouteOption(name="answer-finish")


class Named:
    __agboss__ = RouteOption(name="support")


class Unnamed:
    pass


class Heir(Named):
    pass


def asking(task: str, *options: RouteOption, **more: Any) -> RouteRequest:
    return RouteRequest(router="front", task=task, options=options or (BILLING, SUPPORT), **more)


async def route(settings: Any, request: RouteRequest, **more: Any) -> RouteResult:
    return await decide(build_router(settings, name="front", **more), request, settings)


def picks(value: Any, **settings: Any) -> FunctionRouter:
    def pick(request: RouteRequest) -> Any:
        return value

    return FunctionRouter(pick, **settings)


async def test_options_arrive_sorted() -> None:
    seen: list[str] = []

    def pick(request: RouteRequest) -> str:
        seen.extend(option.name for option in request.options)
        return "support"

    await route(FunctionRouter(pick), asking("x", SUPPORT, FINISH, BILLING))
    assert seen == ["answer-finish", "billing", "support"]


async def test_one_option_needs_no_call() -> None:
    result = await route(picks(3), asking("x", SUPPORT))
    assert (result.next, result.source, result.usage) == ("support", "single", ())


async def test_no_option_is_an_error() -> None:
    with pytest.raises(RouterError) as caught:
        await route(picks("x"), RouteRequest(router="front", task="x", options=()))
    assert caught.value.code == "router.no-options"


async def test_the_answer_must_be_an_option() -> None:
    with pytest.raises(RouterError) as caught:
        await route(picks("sales"), asking("x"))
    assert caught.value.code == "router.not-an-option"
    assert "'sales'" in str(caught.value)
    assert "billing, support" in caught.value.hint


@pytest.mark.parametrize("confidence", [0.4, None])
async def test_an_unsure_answer_goes_to_the_fallback_or_fails(confidence: float | None) -> None:
    result = RouteResult(next="billing", confidence=confidence)
    settings = picks(result, min_confidence=0.5)
    with pytest.raises(RouterError) as caught:
        await route(settings, asking("x"))
    assert caught.value.code == "router.unsure"
    found = await route(settings.model_copy(update={"fallback": Named}), asking("x"))
    assert (found.next, found.source, found.confidence) == ("support", "fallback", confidence)


async def test_a_sure_answer_stands() -> None:
    result = RouteResult(next="billing", confidence=0.5)
    settings = picks(result, min_confidence=0.5, fallback="support")
    assert await route(settings, asking("x")) == result


async def test_a_fallback_must_be_an_option() -> None:
    settings = picks(RouteResult(next="billing"), min_confidence=0.5, fallback="sales")
    with pytest.raises(RouterError) as caught:
        await route(settings, asking("x"))
    assert caught.value.code == "router.not-an-option"


async def test_a_function_names_a_component_in_any_way() -> None:
    async def later(request: RouteRequest) -> type:
        return Named

    assert (await route(FunctionRouter(later), asking("x"))).next == "support"
    assert (await route(picks(Named), asking("x"))).next == "support"

    def name_of(target: Any) -> str:
        return "billing"

    assert (await route(picks(3), asking("x"), name_of=name_of)).next == "billing"


@pytest.mark.parametrize("target", [Unnamed, Heir, 3, None])
async def test_a_function_that_names_no_component(target: Any) -> None:
    with pytest.raises(RouterError) as caught:
        await route(picks(target), asking("x"))
    assert caught.value.code == "router.not-a-component"


async def test_a_function_that_raises_is_named() -> None:
    def broken(request: RouteRequest) -> str:
        raise LookupError("no table")

    with pytest.raises(RouterError, match="'front' raised LookupError: no table") as caught:
        await route(FunctionRouter(broken), asking("x"))
    assert isinstance(caught.value.__cause__, LookupError)

    def typed(request: RouteRequest) -> str:
        raise ModelError("model.http", "down")

    with pytest.raises(ModelError):
        await route(FunctionRouter(typed), asking("x"))


RULES = RulesRouter(
    rules=(
        Rule(to="billing", words=("invoice", "money back")),
        Rule(to=Named, pattern=r"(?i)\bbroken?\b"),
    )
)


@pytest.mark.parametrize(
    ("task", "name"),
    [
        ("My INVOICE is wrong", "billing"),
        ("I want my money\n back!", "billing"),
        ("It is BROKEN and the invoice too", "billing"),
        ("it broke", "support"),
    ],
)
async def test_the_first_matching_rule_wins(task: str, name: str) -> None:
    result = await route(RULES, asking(task, past="invoice"))
    assert (result.next, result.source, result.confidence) == (name, "rules", 1.0)


async def test_no_rule_matches() -> None:
    with pytest.raises(RouterError) as caught:
        await route(RULES, asking("invoices"))
    assert caught.value.code == "router.no-match"
    assert (await route(RULES.model_copy(update={"otherwise": "support"}), asking("invoices"))).next == "support"


async def test_local_routers_end_by_rule_after_an_answer() -> None:
    answered = asking("invoice", BILLING, SUPPORT, FINISH, last_status=TernStatus.ANSWERED)
    failed = asking("invoice", BILLING, SUPPORT, FINISH, last_status=TernStatus.FAILED)
    assert (await route(RULES, answered, finish="answer-finish")).next == "answer-finish"
    assert (await route(RULES, answered)).next == "billing"
    assert (await route(RULES, failed, finish="answer-finish")).next == "billing"
    offline = RouteOffline(finish="answer-finish")
    assert (await offline.route(answered)).next == "answer-finish"
    assert (await offline.route(failed)).next == "billing"
    assert (await offline.route(asking("refund please", FINISH, BILLING))).next == "billing"
    assert (await offline.route(asking("x", FINISH))).next == "answer-finish"


async def test_the_offline_router_takes_the_largest_overlap() -> None:
    result = await RouteOffline().route(asking("A thing is broken"))
    assert (result.next, result.source) == ("support", "offline")
    assert result.probabilities == {"billing": 0.0, "support": 1.0}
    settings = picks("x", min_confidence=1.0)
    assert (await decide(RouteOffline(), asking("hello"), settings)).source == "offline"
    tie = await RouteOffline().route(asking("hello"))
    assert (tie.next, tie.confidence) == ("billing", 0.0)


def test_confidence_is_scaled_between_chance_and_certainty() -> None:
    assert confidence_of(1.0, 4) == 1.0
    assert confidence_of(0.25, 4) == 0.0
    assert confidence_of(0.2, 4) == 0.0
    assert confidence_of(0.75, 2) == 0.5
    assert confidence_of(0.3, 1) == 1.0


def test_an_llm_router_without_a_model_is_an_error() -> None:
    with pytest.raises(RouterError) as caught:
        build_router(LlmRouter(), name="front")
    assert caught.value.code == "router.no-model"
