"""``app.spend``: what was spent in the last days, by day and model."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from agboss.app.request import check_id
from agboss.components.metadata import is_count
from agboss.errors import InvalidInputError
from agboss.runtime import Runtime
from agboss_memory.contract import utc_now
from agboss_memory.records import Record
from agboss_memory.stores.spending import SpendQuery, SpendRow
from agboss_memory.wording import quoted

LONGEST = 3660
"""Days of one report."""


class Spend(Record, kw_only=True):
    """What was spent in a range of UTC days.

    Attributes:
        first: First day, such as ``2026-01-01``.
        last: Last day, today.
        rows: By day and model, in this order. What deleted threads spent is in it; what imports brought is not.
        spend: The sum in US dollars, None when the cost of a call is unknown.
    """

    first: str
    last: str
    rows: tuple[SpendRow, ...]
    spend: Decimal | None


async def spend_of(runtime: Runtime, days: int, owner: str | None) -> Spend:
    """The report of the last ``days`` days, today among them. Raises InvalidInputError."""
    if not is_count(days, least=1) or days > LONGEST:
        raise InvalidInputError("spend.bad-days", f"days={quoted(days)}", f"use a whole number from 1 to {LONGEST}")
    check_id("owner", owner)
    today = utc_now().date()
    query = SpendQuery(
        workflow=runtime.plan.name,
        first=(today - timedelta(days=days - 1)).isoformat(),
        last=today.isoformat(),
        owner=owner,
    )
    rows = await runtime.store.spend(query)
    known = all(row.unknown == 0 for row in rows)
    spend = sum((row.usd for row in rows), Decimal(0)) if known else None
    return Spend(first=query.first, last=query.last, rows=rows, spend=spend)
