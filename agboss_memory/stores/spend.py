"""What booked records add to the daily ledger."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from decimal import ROUND_CEILING, Decimal

from agboss_memory.messages import UsageRecord, as_utc
from agboss_memory.stores.contract import DaySpend

Amounts = tuple[int, int, int, int, int]
"""Model calls, tool calls, steps, tokens, millionths of a US dollar."""

_MILLION = Decimal(1_000_000)


def day_of(moment: datetime) -> str:
    """The UTC day of a moment, such as ``2026-01-31``."""
    return as_utc(moment).date().isoformat()


def micro_usd(usd: Decimal | None) -> int:
    """Millionths of a US dollar, rounded up; an unknown cost is 0."""
    if not usd or not usd.is_finite():
        return 0
    return int((usd * _MILLION).to_integral_value(ROUND_CEILING))


def amounts_of(records: Iterable[UsageRecord], *, steps: int = 0, tool_calls: int = 0) -> Amounts:
    """What these records add to a day."""
    calls = tokens = micro = 0
    for record in records:
        calls += record.purpose != "tool"
        tokens += record.input_tokens + record.output_tokens
        micro += micro_usd(record.usd)
    return calls, tool_calls, steps, tokens, micro


def day_total(amounts: Iterable[int]) -> DaySpend:
    """A day's amounts as a record."""
    calls, tool_calls, steps, tokens, micro = amounts
    return DaySpend(model_calls=calls, tool_calls=tool_calls, steps=steps, tokens=tokens, micro_usd=micro)
