"""The router that asks a chat model."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from agboss.components.settings import LlmRouter
from agboss.errors import RouterError
from agboss.routers import RouteOption, RouteRequest, build_router
from agboss.routers.llm import chosen
from agboss_memory.messages import TernStatus, UsageRecord

OPTIONS = (
    RouteOption(name="billing", description="Invoices", examples=("Refund me",)),
    RouteOption(name="billing-eu"),
)


class Asked:
    def __init__(self, *answers: str, usd: Decimal | None = Decimal("0.01")) -> None:
        self.answers = list(answers)
        self.calls: list[tuple[str, str, dict[str, Any]]] = []
        self.usd = usd

    async def __call__(self, system: str, user: str, schema: dict[str, Any]) -> tuple[str, UsageRecord]:
        self.calls.append((system, user, schema))
        return self.answers.pop(0), UsageRecord(caller="front", model="m", purpose="route", usd=self.usd)


def request(**more: Any) -> RouteRequest:
    return RouteRequest(router="front", task="Refund!", options=OPTIONS, **more)


async def test_one_call_with_options_past_task_and_last_answer() -> None:
    ask = Asked('{"route": "billing-eu"}')
    asked = request(past="Previous turns:\nQ: Hi\nA: Hello", last_answer="Done.", last_status=TernStatus.ANSWERED)
    result = await build_router(LlmRouter(instructions="Pick."), ask=ask).route(asked)
    assert (result.next, result.source, result.cost) == ("billing-eu", "llm", Decimal("0.01"))
    (system, user, schema), *rest = ask.calls
    assert rest == []
    assert system == "Pick.\n\nRoutes:\n- billing: Invoices\n    for example: Refund me\n- billing-eu"
    assert user.index("Previous turns:") < user.index("Task:\nRefund!") < user.index("Done.")
    assert schema["properties"]["route"]["enum"] == ["billing", "billing-eu"]


async def test_one_retry_that_names_the_error() -> None:
    ask = Asked("sales", "billing")
    result = await build_router(LlmRouter(), ask=ask).route(request())
    assert result.next == "billing"
    assert len(result.usage) == 2
    assert result.cost == Decimal("0.02")
    assert "'sales' names no route" in ask.calls[1][1]


async def test_two_wrong_answers_fail_and_carry_their_usage() -> None:
    with pytest.raises(RouterError) as caught:
        await build_router(LlmRouter(), ask=Asked("sales", "x" * 5000)).route(request())
    assert caught.value.code == "router.not-an-option"
    assert len(caught.value.data["usage"]) == 2
    assert len(str(caught.value)) < 600


async def test_an_unknown_price_makes_the_cost_unknown() -> None:
    assert (await build_router(LlmRouter(), ask=Asked("billing", usd=None)).route(request())).cost is None


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ('{"route": "billing"}', "billing"),
        ('```json\n{"route": " billing "}\n```', "billing"),
        ('"billing-eu"', "billing-eu"),
        ("`billing`.", "billing"),
        ("I would take billing-eu here.", "billing-eu"),
        ("billing or billing-eu", None),
        ('{"route": 3}', None),
        ('{"route"', None),
        ("Billing", None),
        ("", None),
        ("{" * 3000 + "}", None),
    ],
)
def test_answers_are_read_leniently_but_never_guessed(answer: str, name: str | None) -> None:
    assert chosen(answer, ["billing", "billing-eu"]) == name
