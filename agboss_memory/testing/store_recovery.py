# ruff: noqa: D102, S101
"""The journal of finished steps, and taking over what nobody runs: what every store does."""

from __future__ import annotations

from pathlib import Path

import pytest

from agboss_memory.errors import LeaseLostError, ThreadDeletedError
from agboss_memory.messages import TernStatus
from agboss_memory.records import replace
from agboss_memory.stores.contract import Admitted, Claim, Step, StepWrite, Store
from agboss_memory.stores.pauses import Resumption
from agboss_memory.testing.store_requests import (
    NOW,
    WIDE,
    admission,
    all_terns,
    booked,
    conversation,
    ending,
    later,
    ref,
    run_terns,
    version_of,
)
from agboss_memory.testing.store_suite import StoreSuite


def step(key: str = "desk.tool.1", outcome: str = '{"ok":1}') -> Step:
    """A finished call."""
    return Step(key=key, kind="tool", input_hash="abc", outcome=outcome)


def question(key: str = "desk.pause.1") -> Step:
    """Something that a Tern asks."""
    return Step(key=key, kind="pause", input_hash="", outcome='{"id":"1"}')


async def keep(store: Store, admitted: Admitted, *steps: Step) -> None:
    """Write steps of an admitted Tern."""
    for item in steps:
        await store.write_step(StepWrite(key=admitted.key, fence=admitted.fence, number=admitted.number, step=item))


def claim(admitted: Admitted, seconds: float = 11, holder: str = "two") -> Claim:
    """A request to go on with an admitted Tern."""
    return Claim(key=admitted.key, number=admitted.number, holder=holder, now=later(seconds), window=WIDE)


class Recovery(StoreSuite):
    """What is left when a process ends."""

    async def test_b087_finished_steps_outlive_their_process(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            first = await store.admit(admission(idempotency_key="k"))
            version = await version_of(store)
            await keep(store, first, step("z"), step("a", "\x00\ud800"), step("z", "again"))
            assert await version_of(store) == version
            assert await store.steps(first.key, 2) == ()
            resumed = await store.admit(admission(idempotency_key="k", holder="two", now=later(11)))
            assert (resumed.kind, resumed.number, resumed.resumed, resumed.resumes) == ("admitted", 1, True, 1)
            assert await store.steps(first.key, 1) == (step("z"), step("a", "\x00\ud800"))
            await keep(store, resumed, step("b"))
            assert [item.key for item in await store.steps(first.key, 1)] == ["z", "a", "b"]

    async def test_a_lost_lease_keeps_no_steps(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            first = await store.admit(admission())
            resumed = await store.claim(claim(first))
            with pytest.raises(LeaseLostError):
                await keep(store, first, step())
            await store.commit(ending(resumed))
            with pytest.raises(LeaseLostError):
                await keep(store, resumed, step())
            assert await store.steps(first.key, 1) == ()
            await store.delete_thread(ref())
            with pytest.raises(ThreadDeletedError):
                await keep(store, resumed, step())

    @pytest.mark.parametrize("status", [TernStatus.ANSWERED, TernStatus.FAILED, TernStatus.PAUSED])
    async def test_the_final_transaction_forgets_the_steps(self, tmp_path: Path, status: TernStatus) -> None:
        async with self.opened(tmp_path) as store:
            admitted = await store.admit(admission())
            await keep(store, admitted, step(), question())
            await store.commit(ending(admitted, status=status))
            left = await store.steps(admitted.key, 1)
            assert left == ((step(), question()) if status is TernStatus.PAUSED else (question(),))
            assert await store.check() == ()

    async def test_a_tern_closed_by_another_leaves_no_steps(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            first = await store.admit(admission())
            await keep(store, first, step())
            assert (await store.admit(admission(holder="two", now=later(11)))).closed == (1,)
            assert await store.steps(first.key, 1) == ()
            assert await store.check() == ()

    async def test_what_nobody_runs_is_listed_in_pages(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await run_terns(store, 2)
            for number in range(5):
                thread = f"t{number}"
                await store.admit(admission("task", thread=thread, owner="me", idempotency_key=thread, metadata="{}"))
            await store.admit(admission(thread="fresh", holder="two", now=later(5)))
            await store.admit(admission(thread="x", workflow="else"))
            assert await store.resumable("w", later(1), 0, 9) == ()
            page = await store.resumable("w", later(11), 0, 3)
            rest = await store.resumable("w", later(11), page[-1].key, 3)
            assert [item.thread for item in (*page, *rest)] == ["t0", "t1", "t2", "t3", "t4"]
            one = page[0]
            assert (one.owner, one.idempotency_key, one.resumes) == ("me", "t0", 0)
            assert (one.tern.number, one.tern.task, one.tern.start, one.tern.metadata) == (1, "task", "ask", "{}")
            assert one.tern.status is TernStatus.RUNNING

    async def test_b058_a_claimed_tern_goes_on_once(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await run_terns(store, 2)
            first = await store.admit(admission("third"))
            assert (await store.claim(claim(first, 1))).kind == "busy"
            claimed = await store.claim(claim(first))
            assert (claimed.kind, claimed.number, claimed.resumed, claimed.resumes) == ("admitted", 3, True, 1)
            assert claimed.fence > first.fence
            assert claimed.window is not None
            assert [tern.task for tern in claimed.window.terns] == ["q1", "q2"]
            assert (await store.claim(claim(first, 12, "three"))).kind == "busy"
            with pytest.raises(LeaseLostError):
                await store.commit(ending(first, task="third"))
            again = await store.claim(claim(first, 30, "three"))
            assert again.resumes == 2
            said = conversation("third", "done")
            await store.commit(ending(again, "done", task="third", messages=said, usage=(booked(),)))
            assert (await store.claim(claim(first, 60))).kind == "busy"
            assert [tern.answer for tern in await all_terns(store, first.key)] == ["a1", "a2", "done"]
            following = await store.admit(admission(holder="three", now=later(31)))
            assert following.resumes == 0
            await store.delete_thread(ref())
            with pytest.raises(ThreadDeletedError):
                await store.claim(claim(first, 60))

    async def test_whoever_takes_over_learns_that_the_tern_was_asked_to_end(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            first = await store.admit(admission(idempotency_key="k"))
            assert not first.stop
            assert await store.interrupt(ref(), unless=1) is None
            assert not (await store.claim(claim(first))).stop
            asked = await store.interrupt(ref(), unless=2)
            assert asked is not None
            assert asked.number == 1
            assert (await store.claim(claim(first, 22, "three"))).stop
            again = await store.admit(admission(idempotency_key="k", holder="four", now=later(33)))
            assert (again.kind, again.resumed, again.stop) == ("admitted", True, True)
            await store.commit(ending(again, "", status=TernStatus.CANCELLED))
            following = await store.admit(admission(holder="four", now=later(34)))
            assert (following.number, following.stop) == (2, False)
            await store.interrupt(ref())
            await keep(store, following, question())
            await store.commit(ending(following, "", status=TernStatus.PAUSED))
            resumption = Resumption(
                key=first.key,
                number=2,
                holder="four",
                now=later(35),
                thread="t",
                workflow="w",
                steps=(Step(key="desk.decision.1", kind="decision", input_hash="", outcome="{}"),),
            )
            assert not (await store.resume(resumption)).stop, "what it was asked before it paused is past"
            await store.interrupt(ref())
            assert (await store.resume(replace(resumption, holder="five", now=later(60)))).stop
            assert await store.check() == ()

    async def test_a_claimed_tern_may_be_closed(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            first = await store.admit(admission())
            claimed = await store.claim(claim(first))
            await store.commit(ending(claimed, "", status=TernStatus.CANCELLED, now=NOW))
            assert [tern.status for tern in await all_terns(store, first.key)] == [TernStatus.CANCELLED]
            assert await store.check() == ()
