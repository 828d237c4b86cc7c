# ruff: noqa: D102, S101
"""What a store tells of costs: per thread, and per day, model and owner."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path

from agboss_memory.records import replace
from agboss_memory.stores.contract import MemoryOutcome, WindowSpec
from agboss_memory.stores.spending import SpendQuery, SpendRow
from agboss_memory.testing.store_requests import DAY, NOW, booked, ref, run_tern, summary_write
from agboss_memory.testing.store_suite import StoreSuite
from agboss_memory.testing.store_values import HARD_TEXTS

PRICE = Decimal("0.0000015")
"""What ``booked`` costs; 10 tokens in, 5 out."""

WHOLE = SpendQuery(workflow="w", first=DAY, last=DAY)


class Spending(StoreSuite):
    """What was spent."""

    async def test_a_thread_knows_what_all_of_it_has_cost(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            admitted, _ = await run_tern(store, commit={"usage": (booked("a"), booked("b"))})
            await run_tern(store, commit={"usage": (booked("a", purpose="tool", usd=Decimal(2)),)})
            await run_tern(store, thread="free", commit={"usage": (booked("a", usd=Decimal(0)),)})
            await store.settle(MemoryOutcome(key=admitted.key, tern=1, now=NOW, usage=(booked("b"), booked("c"))))
            listed = {info.id: info.spend for info in await store.threads("w", None, None, 9)}
            assert listed == {"t": 2 + 3 * PRICE, "free": 0}
            assert (await store.thread(ref(), WindowSpec())).info.spend == 2 + 3 * PRICE
            await run_tern(store, commit={"usage": (booked("a", usd=None),)})
            assert (await store.thread(ref(), WindowSpec())).info.spend is None

    async def test_days_and_models_add_up(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            usage = (booked("a"), booked("b", model="other", usd=None), booked("c", model="other"))
            admitted, _ = await run_tern(store, commit={"usage": usage})
            await run_tern(store, commit={"usage": (booked("a"),)})
            await run_tern(store, commit={"usage": (booked("a"),), "now": NOW + timedelta(days=1)})
            await store.write_summary(summary_write(admitted, 1, 1))
            found = await store.spend(replace(WHOLE, last="2026-02-28"))
            assert [(row.day, row.model, row.calls, row.usd, row.unknown) for row in found] == [
                (DAY, "m", 3, 3 * PRICE, 0),
                (DAY, "other", 2, PRICE, 1),
                ("2026-02-01", "m", 1, PRICE, 0),
            ]
            assert (found[0].input_tokens, found[0].output_tokens) == (30, 15)
            assert await store.spend(replace(WHOLE, last="2026-01-30")) == ()
            assert await store.spend(replace(WHOLE, workflow="x")) == ()

    async def test_an_owner_s_share_is_told_apart(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            for number, owner in enumerate((None, *HARD_TEXTS)):
                usage = {"usage": (booked("a", usd=Decimal(number)),)}
                await run_tern(store, thread=f"t{number}", owner=owner, commit=usage)
            for number, owner in enumerate(HARD_TEXTS, 1):
                (row,) = await store.spend(replace(WHOLE, owner=owner))
                assert (row.calls, row.usd) == (1, number)
            (row,) = await store.spend(WHOLE)
            assert row.calls == len(HARD_TEXTS) + 1

    async def test_what_was_spent_stays_when_its_thread_goes(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await run_tern(store, commit={"usage": (booked("a"),)})
            kept = await store.copy(ref())
            await store.delete_thread(ref())
            expected = (SpendRow(day=DAY, model="m", calls=1, input_tokens=10, output_tokens=5, usd=PRICE),)
            assert await store.spend(WHOLE) == expected
            await store.restore(kept)  # it was paid for already
            assert await store.spend(WHOLE) == expected
            assert (await store.thread(ref(), WindowSpec())).info.spend == PRICE
