# ruff: noqa: D102, S101
"""Windows, summaries, blocks, strategy work and the ledger: what every store does."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from agboss_memory.messages import Block, Summary
from agboss_memory.records import replace
from agboss_memory.stores.contract import (
    DaySpend,
    MemoryOutcome,
    PendingWork,
    WindowSpec,
)
from agboss_memory.testing.store_requests import (
    DAY,
    NOW,
    WIDE,
    admission,
    all_terns,
    booked,
    pair,
    ref,
    run_tern,
    run_terns,
    summary,
    summary_write,
    version_of,
)
from agboss_memory.testing.store_suite import StoreSuite


class MemoryWork(StoreSuite):
    """What happens after a Tern."""

    async def test_the_window_holds_the_newest_finished_terns(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await run_terns(store, 4, window=WindowSpec())
            admitted = await store.admit(admission(window=WindowSpec(terns=3)))
            assert admitted.window is not None
            assert [(t.number, t.task, t.answer, t.usage) for t in admitted.window.terns] == [
                (n, f"q{n}", f"a{n}", ()) for n in (2, 3, 4)
            ]

    async def test_the_window_shows_blocks_and_summaries(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            admitted = None
            for number in range(1, 9):
                planned = pair(number - 1, number) if number % 2 == 0 else ()
                admitted, committed = await run_tern(store, commit={"blocks": planned})
                if number in (4, 6):
                    assert committed.due[-1] == Block(first=number - 1, last=number)
                    await store.write_summary(summary_write(admitted, number - 1, number))
            state = await store.thread(ref(), WindowSpec(terns=2, summaries=1))
            assert [s.text for s in state.window.summaries] == ["5-6"]
            assert state.window.planned_to == 8
            assert [(b.last, b.state) for b in state.window.blocks] == [(2, "due"), (8, "due")]
            wide = (await store.thread(ref(), WindowSpec(terns=5))).window
            assert [(b.last, b.state) for b in wide.blocks] == [(2, "due"), (4, "done"), (6, "done"), (8, "due")]
            assert admitted is not None
            assert [b.last for b in await store.blocks(admitted.key, ["due", "done"], 3)] == [2, 4, 6]
            assert [b.last for b in await store.blocks(admitted.key, ["skipped"], 3)] == []

    async def test_a_planned_block_is_kept_as_it_is(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            admitted, _ = await run_tern(store, commit={"blocks": pair(1, 2)})
            assert (await store.blocks(admitted.key, ["open"], 9))[0].last == 2
            _, committed = await run_tern(store, commit={"blocks": pair(1, 2)})
            assert committed.due == (Block(first=1, last=2),)
            await store.write_summary(summary_write(admitted, 1, 2))
            _, committed = await run_tern(store, commit={"blocks": pair(1, 2)})
            assert committed.due == ()

    async def test_b170_a_summary_is_written_once(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await run_tern(store)
            admitted, _ = await run_tern(store, commit={"blocks": pair(1, 2)})
            version = await version_of(store)
            write = summary_write(admitted, 1, 2)
            stored = await store.write_summary(write)
            assert stored == replace(write.summary, id=stored.id, state="active")
            assert stored.id > 0
            other = summary_write(admitted, 1, 2, summary=summary(1, 2, text="other"), usage=(booked("other"),))
            assert await store.write_summary(other) == stored
            assert await store.summaries(admitted.key) == (stored,)
            assert await version_of(store) == version + 1
            assert (await store.blocks(admitted.key, ["done"], 9))[0].last == 2
            terns = await all_terns(store, admitted.key)
            assert len(terns[1].usage) == 3  # the call that came too late was paid for all the same

    async def test_undo_retires_a_summary_and_its_block(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await run_tern(store)
            admitted, _ = await run_tern(store, commit={"blocks": pair(1, 2)})
            stored = await store.write_summary(summary_write(admitted, 1, 2))
            version = await version_of(store)
            retired = await store.retire(admitted.key, stored.id, NOW)
            assert retired == replace(stored, state="retired")
            assert await store.retire(admitted.key, stored.id, NOW) is None
            assert await store.retire(admitted.key, 99, NOW) is None
            state = await store.thread(ref(), WIDE)
            assert (state.version, state.window.summaries) == (version + 1, ())
            assert state.window.blocks == (Block(first=1, last=2, state="retired", attempts=1),)
            assert await store.summaries(admitted.key) == ()
            assert await store.summaries(admitted.key, all_states=True) == (retired,)
            again = await store.write_summary(summary_write(admitted, 1, 2, usage=(booked("again"),)))
            assert again.id != stored.id

    async def test_a_wider_summary_supersedes_what_it_covers(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            admitted, _ = await run_tern(store)

            def write(first: int, last: int, agent: str = "desk") -> Summary:
                return summary(first, last, kind="auto_compact", agent=agent)

            for written in (write(1, 4), write(1, 4, "other"), write(1, 9)):
                await store.write_summary(summary_write(admitted, 1, 4, summary=written))
            assert [s.last for s in await store.summaries(admitted.key, "desk")] == [9]
            assert [s.state for s in await store.summaries(admitted.key, "desk", True)] == ["superseded", "active"]
            assert [s.last for s in await store.summaries(admitted.key, "other")] == [4]
            assert (await store.thread(ref(), WIDE)).window.summaries == ()

    async def test_a_failed_try_is_recorded(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            admitted, _ = await run_tern(store, commit={"blocks": pair(1, 1)})
            version = await version_of(store)
            failed = Block(first=1, last=1, state="due", attempts=1, error="too long")
            outcome = MemoryOutcome(key=admitted.key, tern=1, now=NOW, block=failed, usage=(booked("try.1"),))
            await store.settle(outcome)
            assert (await store.thread(ref(), WIDE)).window.blocks == (failed,)
            assert await version_of(store) == version + 1
            await store.settle(replace(outcome, block=replace(failed, state="skipped", attempts=4)))
            assert [b.state for b in (await store.thread(ref(), WIDE)).window.blocks] == ["skipped"]
            assert len((await all_terns(store, admitted.key))[0].usage) == 2

    async def test_strategy_work_is_pending_until_done(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            admitted, _ = await run_tern(store, commit={"strategies": ("Facts", "Diary")})
            facts, diary = PendingWork(tern=1, strategy="Facts"), PendingWork(tern=1, strategy="Diary")
            assert (await store.thread(ref(), WIDE)).pending == (diary, facts)
            version = await version_of(store)
            await store.settle(MemoryOutcome(key=admitted.key, tern=1, now=NOW, work=facts, done=True))
            await store.settle(MemoryOutcome(key=admitted.key, tern=1, now=NOW, work=diary))
            assert await version_of(store) == version
            following = await store.admit(admission(known=version))
            assert following.window is None
            assert following.pending == (replace(diary, attempts=1),)

    async def test_the_ledger_adds_up(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            usage = (booked("a"), booked("b", usd=None), booked("c", purpose="tool", usd=Decimal(1)))
            admitted, _ = await run_tern(store, commit={"usage": usage, "steps": 2, "tool_calls": 3})
            expected = DaySpend(model_calls=2, tool_calls=3, steps=2, tokens=45, micro_usd=1_000_002)
            assert await store.day_spend("w", DAY) == expected
            await run_tern(store, thread="other", commit={"steps": 1})
            await store.settle(MemoryOutcome(key=admitted.key, tern=1, now=NOW, usage=(booked("a"), booked("d"))))
            await store.write_summary(summary_write(admitted, 1, 1))
            expected = DaySpend(model_calls=5, tool_calls=3, steps=3, tokens=90, micro_usd=1_000_008)
            assert await store.day_spend("w", DAY) == expected
            assert await store.day_spend("w", "2026-02-01") == DaySpend()
            assert await store.day_spend("x", DAY) == DaySpend()
