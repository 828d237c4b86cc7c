# ruff: noqa: D102, S101
"""Who has a thread for memory work, and what is left to do: what every store does."""

from __future__ import annotations

from pathlib import Path

import pytest

from agboss_memory.errors import LeaseLostError, ThreadDeletedError
from agboss_memory.messages import Block, TernStatus
from agboss_memory.records import replace
from agboss_memory.stores.admissions import MemoryClaim, PendingWork
from agboss_memory.stores.contract import Admitted, Commit, Committed, MemoryOutcome, Store, SummaryWrite
from agboss_memory.testing.store_recovery import claim, keep, step
from agboss_memory.testing.store_requests import (
    NOW,
    WIDE,
    admission,
    booked,
    ending,
    later,
    pair,
    ref,
    run_tern,
    run_terns,
    summary,
    version_of,
)
from agboss_memory.testing.store_suite import StoreSuite


def memory_claim(key: int, seconds: float = 0, holder: str = "two") -> MemoryClaim:
    """A request to have a thread for memory work."""
    return MemoryClaim(key=key, holder=holder, now=later(seconds), window=WIDE)


async def remembering(store: Store, **changes: object) -> tuple[Admitted, Committed]:
    """A Tern that has ended and whose memory work goes on, held by ``one``."""
    admitted = await store.admit(admission())
    ends: Commit = ending(admitted, **{"remembers": "due", "strategies": ("Facts",), **changes})  # pyright: ignore[reportArgumentType]
    return admitted, await store.commit(ends)


def settled(admitted: Admitted, *, done: bool = True) -> MemoryOutcome:
    """The end of the work of ``remembering``."""
    work = PendingWork(tern=admitted.number, strategy="Facts")
    return MemoryOutcome(key=admitted.key, tern=admitted.number, now=NOW, work=work, done=done, usage=(booked("m"),))


class Holding(StoreSuite):
    """Memory work after a Tern, and outside Terns."""

    async def test_memory_work_keeps_the_thread(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            admitted, committed = await remembering(store)
            assert committed.held
            assert not (await store.thread(ref(), WIDE)).info.running
            other = admission(holder="two", queue=True, now=later(1))
            waiting = await store.admit(other)
            assert (waiting.kind, waiting.ticket > 0) == ("busy", True)
            assert await store.hold(memory_claim(admitted.key, 1)) is None
            assert await store.resumable("w", later(1), 0, 9) == ()
            assert await store.owing("w", later(1), 0, 9) == ()
            assert (await store.claim(claim(admitted, 1))).kind == "busy"
            assert await store.renew("one", later(20)) == ()
            await store.leave(waiting.ticket)
            assert (await store.admit(admission(holder="two", now=later(15)))).kind == "busy"
            await store.release(admitted.key, admitted.fence, 1)
            following = await store.admit(admission(holder="two", now=later(15)))
            assert (following.kind, following.number, following.fence) == ("admitted", 2, admitted.fence + 1)
            assert following.pending == (PendingWork(tern=1, strategy="Facts"),)
            await store.release(admitted.key, admitted.fence, 1)  # comes too late, and does nothing
            await store.commit(ending(following))

    async def test_the_last_settlement_lets_go(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            admitted, _ = await remembering(store)
            await store.settle(settled(admitted, done=False))
            assert (await store.admit(admission(holder="two", now=later(1)))).kind == "busy"
            await store.settle(settled(admitted))
            assert (await store.admit(admission(holder="two", now=later(1)))).kind == "admitted"
            await store.release(admitted.key, admitted.fence, 1)
            assert await store.check() == ()

    async def test_a_due_block_keeps_it_longer(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await run_terns(store, 1)
            admitted, committed = await remembering(store, blocks=pair(1, 2))
            assert [(block.first, block.last) for block in committed.due] == [(1, 2)]
            await store.settle(settled(admitted))
            assert (await store.admit(admission(holder="two", now=later(1)))).kind == "busy"
            await store.write_summary(SummaryWrite(key=admitted.key, tern=2, summary=summary(1, 2), now=NOW))
            await store.release(admitted.key, admitted.fence, 2)
            assert (await store.admit(admission(holder="two", now=later(1)))).kind == "admitted"

    @pytest.mark.parametrize("remembers", ["no", "due", "yes"])
    async def test_a_tern_without_work_is_over(self, tmp_path: Path, remembers: str) -> None:
        async with self.opened(tmp_path) as store:
            admitted, committed = await remembering(store, remembers=remembers, strategies=())
            assert committed.held == (remembers == "yes")
            kind = (await store.admit(admission(holder="two", now=later(1)))).kind
            assert kind == ("busy" if committed.held else "admitted")
            assert admitted.number == 1

    async def test_a_vanished_holder_keeps_nobody_out(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            admitted, _ = await remembering(store)
            (found,) = await store.owing("w", later(11), 0, 9)
            assert (found.key, found.thread, found.owner) == (admitted.key, "t", None)
            state = await store.hold(memory_claim(admitted.key, 11))
            assert state is not None
            assert state.pending == (PendingWork(tern=1, strategy="Facts"),)
            assert (state.info.terns, state.fence) == (1, admitted.fence + 1)
            assert await store.hold(memory_claim(admitted.key, 12, "three")) is None
            await store.release(admitted.key, admitted.fence, 1)  # the one that woke up
            assert (await store.admit(admission(holder="one", now=later(12)))).kind == "busy"
            await store.settle(settled(admitted))
            assert await store.owing("w", later(99), 0, 9) == ()
            assert (await store.admit(admission(holder="one", now=later(12)))).kind == "admitted"

    async def test_whoever_lost_the_thread_books_its_cost_and_nothing_else(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await run_terns(store, 1)
            admitted, _ = await remembering(store, blocks=pair(1, 2))
            state = await store.hold(memory_claim(admitted.key, 11))
            assert state is not None
            made = SummaryWrite(key=admitted.key, tern=2, summary=summary(1, 2), now=NOW, fence=state.fence)
            stored = await store.write_summary(made)
            await store.retire(admitted.key, stored.id, NOW)
            before = await store.copy(ref())
            late = replace(made, fence=admitted.fence, usage=(booked("late-s"),))
            failed = Block(first=1, last=2, state="due", attempts=1, error="too long")
            work = settled(admitted)
            tried = replace(work, work=None, done=False, block=failed, usage=(booked("late-b"),), fence=admitted.fence)
            with pytest.raises(LeaseLostError):
                await store.write_summary(late)
            for outcome in (replace(work, usage=(booked("late-w"),), fence=admitted.fence), tried):
                with pytest.raises(LeaseLostError):
                    await store.settle(outcome)
            await store.settle(replace(tried, block=None, usage=(booked("late-r"),)))  # a cost is always taken
            after = await store.copy(ref())
            costs = [item.step_key for item in after.terns[1].usage if item.step_key.startswith("late")]
            assert costs == ["late-s", "late-w", "late-b", "late-r"]
            assert (after.summaries, after.blocks, after.work) == (before.summaries, before.blocks, before.work)
            assert (await store.admit(admission(holder="one", now=later(12)))).kind == "busy"
            await store.settle(replace(work, fence=state.fence))
            assert (await store.admit(admission(holder="one", now=later(12)))).kind == "admitted"
            assert await store.check() == ()

    async def test_what_is_held_has_another_version(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            admitted = await run_terns(store, 1)
            version = await version_of(store)
            state = await store.hold(memory_claim(admitted.key))
            assert state is not None
            assert state.version > version
            await store.release(admitted.key, state.fence, 1)
            assert (await store.admit(admission(known=version))).window is not None

    async def test_a_tern_that_runs_is_not_interrupted(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await remembering(store)
            other = admission(holder="two", now=later(11))
            admitted = await store.admit(other)
            assert await store.hold(memory_claim(admitted.key, 12, "three")) is None
            assert await store.owing("w", later(12), 0, 9) == ()
            assert await store.owing("w", later(99), 0, 9) == ()  # it is for whoever goes on with it
            await store.delete_thread(ref())
            with pytest.raises(ThreadDeletedError):
                await store.hold(memory_claim(admitted.key))
            await store.release(admitted.key, admitted.fence, 1)

    async def test_an_end_that_could_not_be_stored_leaves_the_thread_to_others(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            admitted = await store.admit(admission())
            await store.release(admitted.key, admitted.fence, 1)
            (left,) = await store.resumable("w", later(1), 0, 9)
            assert left.tern.status is TernStatus.RUNNING
            taken = await store.claim(claim(admitted, 1))
            assert (taken.kind, taken.resumes) == ("admitted", 1)
            with pytest.raises(LeaseLostError):
                await store.commit(ending(admitted))

    async def test_owing_comes_in_pages_of_one_workflow(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            for number in range(5):
                await run_tern(store, thread=f"t{number}", commit={"strategies": ("Facts",)} if number != 2 else None)
            await run_tern(store, thread="x", workflow="else", commit={"strategies": ("Facts",)})
            page = await store.owing("w", later(1), 0, 3)
            rest = await store.owing("w", later(1), page[-1].key, 3)
            assert [item.thread for item in (*page, *rest)] == ["t0", "t1", "t3", "t4"]
            assert await store.owing("w", later(1), 0, 0) == ()

    async def test_a_new_step_between_takeovers_counts_as_progress(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            admitted = await store.admit(admission())
            counts: list[tuple[int, int]] = []
            for number in range(1, 6):
                admitted = await store.claim(claim(admitted, 11 * number, f"h{number}"))
                counts.append((admitted.resumes, admitted.stalled))
                if number == 3:
                    await keep(store, admitted, step("new"))
            assert counts == [(1, 1), (2, 2), (3, 3), (4, 1), (5, 2)]
