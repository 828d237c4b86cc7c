"""The daily ledger of the in-memory store."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from agboss_memory.messages import UsageRecord
from agboss_memory.stores.contract import DaySpend
from agboss_memory.stores.spend import amounts_of, day_of, day_total


class Ledger:
    """What each workflow spent per UTC day."""

    def __init__(self) -> None:
        self._days: dict[tuple[str, str], list[int]] = {}

    def add(
        self, workflow: str, now: datetime, records: Iterable[UsageRecord], *, steps: int = 0, tool_calls: int = 0
    ) -> None:
        """Add to the day of ``now``."""
        total = self._days.setdefault((workflow, day_of(now)), [0, 0, 0, 0, 0])
        for place, amount in enumerate(amounts_of(records, steps=steps, tool_calls=tool_calls)):
            total[place] += amount

    def spend(self, workflow: str, day: str) -> DaySpend:
        """What was added to a day."""
        amounts = self._days.get((workflow, day))
        return DaySpend() if amounts is None else day_total(amounts)
