"""What a call costs and how large a window is: the spec's own word, the provider's figure, then the price table.

The table is that of genai-prices, read offline from the installed package; nothing here updates it.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING

from agboss.components.model_spec import ModelSpec
from agboss.models.chat import ModelUsage
from agboss_memory.messages import UsageSource

if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot
    from genai_prices.types import ModelInfo, Provider

    from agboss.components.settings import Price

FREE_PROVIDERS = frozenset({"local", "embedded", "ollama"})
"""Providers whose models run on one's own machine."""

_TABLE_PROVIDERS = frozenset({"openai", "anthropic", "google", "openrouter"})
_VENDOR_TABLES = {"mistralai": "mistral", "z-ai": "zai", "meta-llama": "meta", "amazon": "aws"}
"""Vendors that OpenRouter and the price table spell differently."""
_PER_MILLION = -6


def cost_of(spec: ModelSpec, usage: ModelUsage) -> tuple[Decimal | None, UsageSource]:
    """US dollars of one call and where the figure comes from.

    Order: ``spec.price``, the provider's own figure (``api``), a model that is free by nature, the price table.
    ``(None, "unknown")`` when none of them knows.
    """
    if spec.price is not None:
        return (Decimal(0), "free") if spec.price == "free" else (_by_price(spec.price, usage), "price-table")
    if usage.usd is not None:
        return usage.usd, "api"
    if usage.free or spec.provider in FREE_PROVIDERS:
        return Decimal(0), "free"
    price = _by_table(spec, usage)
    return (None, "unknown") if price is None else (price, "price-table")


def has_price(spec: ModelSpec) -> bool:
    """Whether the cost of this model's calls will be known, so that a limit in US dollars can hold."""
    if spec.price is not None or spec.provider in FREE_PROVIDERS or spec.provider == "openrouter":
        return True
    return next(_entries(spec), None) is not None


def table_window(spec: ModelSpec) -> int | None:
    """Context window in tokens by the price table, for an OpenRouter id also the vendor's own; None = unknown."""
    windows = (model.context_window for _, model in _entries(spec, vendors=True))
    return next((window for window in windows if window), None)


def _by_price(price: Price, usage: ModelUsage) -> Decimal:
    cached = min(usage.cache_read_tokens, usage.input_tokens)
    cached_price = price.input if price.cache_read is None else price.cache_read
    total = price.input * (usage.input_tokens - cached) + cached_price * cached + price.output * usage.output_tokens
    return total.scaleb(_PER_MILLION)


def _by_table(spec: ModelSpec, usage: ModelUsage) -> Decimal | None:
    for provider, model in _entries(spec):
        from genai_prices import Usage

        cached = min(usage.cache_read_tokens, usage.input_tokens)
        counted = Usage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=cached,
            cache_write_tokens=min(usage.cache_write_tokens, usage.input_tokens - cached),
        )
        try:
            return model.calc_price(counted, provider).total_price
        except (LookupError, ValueError):
            continue
    return None


def _entries(spec: ModelSpec, *, vendors: bool = False) -> Iterator[tuple[Provider, ModelInfo]]:
    table = _table() if spec.provider in _TABLE_PROVIDERS else None
    if table is None:
        return
    places = [(spec.provider, spec.name)]
    vendor, slash, name = spec.name.lstrip("~").partition("/")
    if vendors and slash:
        places.append((_VENDOR_TABLES.get(vendor, vendor), name))
    for provider, model in places:
        try:
            yield table.find_provider_model(model, None, provider, None)
        except LookupError:
            continue


def _table() -> DataSnapshot | None:
    try:
        from genai_prices.data_snapshot import get_snapshot
    except ModuleNotFoundError:
        return None
    return get_snapshot()
