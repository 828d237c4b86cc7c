"""Costs and windows: who says what a call costs, in which order."""

from __future__ import annotations

import subprocess
import sys
import threading
from decimal import Decimal

import pytest

from agboss.components.model_spec import ModelSpec
from agboss.components.settings import Price
from agboss.models import ModelCatalog, ModelUsage, cost_of, has_price

USED = ModelUsage(input_tokens=1_000, output_tokens=100, cache_read_tokens=400)


def test_the_spec_wins() -> None:
    told = ModelUsage(input_tokens=1_000, output_tokens=100, usd=Decimal(9))
    assert cost_of(ModelSpec("openai:gpt-5-mini", price="free"), told) == (Decimal(0), "free")
    price = Price(input=Decimal("0.3"), output=Decimal("1.1"), cache_read=Decimal("0.07"))
    assert cost_of(ModelSpec("openai:gpt-5-mini", price=price), USED) == (Decimal("0.000318"), "price-table")
    assert cost_of(ModelSpec("x/y", price=Price(input=Decimal("0.3"), output=Decimal("1.1"))), USED) == (
        Decimal("0.00041"),
        "price-table",
    )


def test_then_the_provider() -> None:
    used = ModelUsage(input_tokens=1, usd=Decimal("0.000000123456789012345"))
    assert cost_of(ModelSpec("openai:gpt-5-mini"), used) == (Decimal("0.000000123456789012345"), "api")


@pytest.mark.parametrize("model", ["local:extractive", "embedded:smollm2", "ollama:llama3"])
def test_local_models_are_free(model: str) -> None:
    assert cost_of(ModelSpec(model), USED) == (Decimal(0), "free")
    assert has_price(ModelSpec(model))


def test_what_is_free_by_nature_is_free() -> None:
    assert cost_of(ModelSpec("openai:gpt-5-mini"), ModelUsage(input_tokens=5, free=True)) == (Decimal(0), "free")


@pytest.mark.parametrize(
    "model",
    ["openai:gpt-5-mini", "anthropic:claude-sonnet-4-5", "google:gemini-2.5-flash", "moonshotai/kimi-k2.6"],
)
def test_then_the_table(model: str) -> None:
    before = threading.active_count()
    cost, source = cost_of(ModelSpec(model), USED)
    assert source == "price-table"
    assert cost is not None
    assert 0 < cost < 1
    dearer, _ = cost_of(ModelSpec(model), ModelUsage(input_tokens=1_000, output_tokens=100))
    assert dearer is not None
    assert dearer > cost
    assert has_price(ModelSpec(model))
    assert threading.active_count() == before


def test_the_table_is_exact() -> None:
    cost, _ = cost_of(ModelSpec("openai:gpt-5-mini"), ModelUsage(input_tokens=1_000_000, output_tokens=1))
    assert cost == Decimal("0.25") + Decimal("0.000002")


@pytest.mark.parametrize("model", ["openai:no-such-model", "nobody/nothing", "google:nothing"])
def test_else_it_is_unknown(model: str) -> None:
    assert cost_of(ModelSpec(model), USED) == (None, "unknown")


def test_a_compatible_server_has_no_price_unless_told() -> None:
    spec = ModelSpec("openai-compatible:gpt-5-mini", base_url="http://127.0.0.1:1")
    assert cost_of(spec, USED) == (None, "unknown")
    assert not has_price(spec)
    assert not has_price(ModelSpec("openai:no-such-model"))
    assert has_price(ModelSpec("nobody/nothing")), "OpenRouter reports the cost of every call"


def test_odd_counts_do_not_break_the_table() -> None:
    odd = ModelUsage(input_tokens=1, cache_read_tokens=50, cache_write_tokens=50)
    assert cost_of(ModelSpec("anthropic:claude-sonnet-4-5"), odd)[1] == "price-table"


@pytest.mark.parametrize(
    ("spec", "window"),
    [
        (ModelSpec("openai:gpt-5-mini", context_window=99), 99),
        (ModelSpec("openai:gpt-5-mini"), 400_000),
        (ModelSpec("moonshotai/kimi-k2.6"), 262_144),
        (ModelSpec("openai:no-such-model"), None),
        (ModelSpec("local:extractive"), None),
    ],
)
def test_windows(spec: ModelSpec, window: int | None) -> None:
    assert ModelCatalog().window(spec) == window


def test_importing_models_loads_nothing_heavy() -> None:
    code = (
        "import sys, agboss.models, agboss.routers; "
        "print([m for m in ('pydantic_ai', 'genai_prices', 'httpx2', 'xllamacpp', 'stamina', 'openai') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_without_the_table_prices_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices.data_snapshot", None)
    assert cost_of(ModelSpec("openai:gpt-5-mini"), USED) == (None, "unknown")
    assert ModelCatalog().window(ModelSpec("openai:gpt-5-mini")) is None
