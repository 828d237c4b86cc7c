"""What an App tells of money: per thread whole, per day and model out of the ledger."""

from decimal import Decimal
from typing import Any

import pytest

from agboss import App, InvalidInputError, ModelSpec, Price, agent, create_app
from agboss.models import ModelReply, ModelRequest, ModelUsage

PRICED = ModelSpec("ollama:priced", price=Price(input=Decimal(1), output=Decimal(2)))
COST = Decimal("0.000012")
"""Of one call."""


@agent(name="payer", model=PRICED, prompt="Be brief.")
class Payer: ...


@agent(name="guesser", model="openai:nobody-knows", prompt="Be brief.")
class Guesser: ...


class Answers:
    async def generate(self, request: ModelRequest) -> ModelReply:
        return ModelReply(text="Yes.", usage=ModelUsage(input_tokens=10, output_tokens=1))


def made(kind: type[Any] = Payer, store: str = "memory://") -> App:
    return create_app(kind, store=store, models={"ollama:priced": Answers(), "openai:nobody-knows": Answers()})


async def test_days_and_models_add_up_and_outlive_their_threads() -> None:
    async with made() as app:
        first = await app.execute("a", owner="ada")
        await app.execute("b", thread=first.thread, owner="ada")
        await app.execute("c", owner="bob")
        whole = await app.spend()
        (row,) = whole.rows
        assert (row.model, row.calls, row.input_tokens, row.output_tokens) == ("ollama:priced", 3, 30, 3)
        assert whole.spend == row.usd == 3 * COST
        assert (row.day, whole.last) == (whole.last, whole.last)
        assert (await app.spend(owner="bob")).spend == COST
        assert (await app.spend(owner="nobody")).spend == 0
        await app.threads.delete(first.thread)
        assert (await app.spend(1)).spend == 3 * COST


async def test_a_thread_tells_the_cost_of_all_its_turns_in_a_list_and_alone(tmp_path: Any) -> None:
    async with made(store=f"sqlite:///{tmp_path}/kept.db") as app:
        thread = (await app.execute("a")).thread
        for _ in range(60):
            await app.execute("b", thread=thread)
        assert [info.spend for info in await app.threads.list()] == [61 * COST]
        assert (await app.threads.get(thread, 1)).spend == 61 * COST


async def test_an_unknown_price_makes_the_sum_unknown() -> None:
    async with made(Guesser) as app:
        thread = (await app.execute("a")).thread
        found = await app.spend()
        assert (found.spend, found.rows[0].unknown) == (None, 1)
        assert (await app.threads.get(thread)).spend is None


@pytest.mark.parametrize("days", [0, -1, 4000, True, "a"])
async def test_days_that_cannot_be_are_refused(days: Any) -> None:
    async with made() as app:
        with pytest.raises(InvalidInputError) as refused:
            await app.spend(days)
    assert refused.value.code == "spend.bad-days"
