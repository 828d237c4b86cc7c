"""What the in-memory store keeps of costs: a total per day, and sums per day, owner and model."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from operator import add

from agboss_memory.messages import UsageRecord
from agboss_memory.stores.contract import DaySpend
from agboss_memory.stores.memory_thread import MemoryThread
from agboss_memory.stores.spend import amounts_of, day_of, day_total
from agboss_memory.stores.spending import SpendQuery, SpendRow, Sums

_NOTHING = (0, 0, 0, 0, 0)


class MemoryLedger:
    """The part of the store that knows what was spent, also by threads that are gone."""

    def __init__(self) -> None:
        super().__init__()
        self._days: dict[tuple[str, str], tuple[int, ...]] = {}
        self._spent: dict[tuple[str, str, str | None, str], Sums] = {}

    def spent(
        self,
        thread: MemoryThread,
        now: datetime,
        records: Sequence[UsageRecord],
        *,
        steps: int = 0,
        tool_calls: int = 0,
    ) -> None:
        """Add to the day of ``now``."""
        day = day_of(now)
        before = self._days.get((thread.workflow, day), _NOTHING)
        amounts = amounts_of(records, steps=steps, tool_calls=tool_calls)
        self._days[thread.workflow, day] = tuple(map(add, before, amounts))
        for record in records:
            place = (thread.workflow, day, thread.owner, record.model)
            sums = self._spent.get(place)
            if sums is None:
                sums = self._spent[place] = Sums()
            sums.add(record)

    async def day_spend(self, workflow: str, day: str) -> DaySpend:
        """See ``Store.day_spend``."""
        amounts = self._days.get((workflow, day))
        return DaySpend() if amounts is None else day_total(amounts)

    async def spend(self, query: SpendQuery) -> tuple[SpendRow, ...]:
        """See ``Store.spend``."""
        found: dict[tuple[str, str], Sums] = {}
        for (workflow, day, owner, model), sums in self._spent.items():
            wanted = workflow == query.workflow and query.first <= day <= query.last
            if wanted and query.owner in (None, owner):
                found.setdefault((day, model), Sums()).merge(sums)
        return tuple(sums.row(*place) for place, sums in sorted(found.items(), key=lambda item: item[0]))
