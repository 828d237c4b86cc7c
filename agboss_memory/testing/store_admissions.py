# ruff: noqa: D102, S101
"""Admission, leases and idempotency keys: what every store does."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agboss_memory.errors import (
    LeaseLostError,
    TernConflictError,
    ThreadOwnerError,
    UnknownThreadError,
)
from agboss_memory.messages import TernStatus
from agboss_memory.records import replace
from agboss_memory.stores.contract import (
    MessagePage,
)
from agboss_memory.stores.lease import new_holder, release_holder
from agboss_memory.testing.store_requests import (
    NOW,
    WIDE,
    admission,
    all_terns,
    booked,
    conversation,
    ending,
    later,
    numbers,
    ref,
    run_tern,
    run_terns,
    version_of,
)
from agboss_memory.testing.store_suite import StoreSuite


class Admissions(StoreSuite):
    """How a Tern starts."""

    async def test_first_tern_makes_its_thread(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            admitted = await store.admit(admission(metadata='{"a":1}'))
            assert (admitted.kind, admitted.thread, admitted.number) == ("admitted", "t", 1)
            assert admitted.window is not None
            assert admitted.window.terns == ()
            (tern,) = await all_terns(store, admitted.key)
            assert tern.status is TernStatus.RUNNING
            assert (tern.task, tern.start, tern.metadata, tern.finished_at) == ("hi", "ask", '{"a":1}', None)
            info = (await store.thread(ref(), WIDE)).info
            assert (info.terns, info.running, info.created_at) == (1, True, NOW)

    async def test_unknown_thread_is_not_made_unasked(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            with pytest.raises(UnknownThreadError) as caught:
                await store.admit(admission(create=False))
            assert caught.value.code == "run.unknown-thread"
            assert await store.threads("w", None, None, 10) == ()

    @pytest.mark.parametrize(("mine", "asks"), [("me", "you"), ("me", None), (None, "you")])
    async def test_a_foreign_thread_is_refused(self, tmp_path: Path, mine: str | None, asks: str | None) -> None:
        async with self.opened(tmp_path) as store:
            await run_tern(store, owner=mine)
            for refused in (store.admit(admission(owner=asks)), store.thread(ref(owner=asks), WIDE)):
                with pytest.raises(ThreadOwnerError) as caught:
                    await refused
                assert caught.value.code == "run.thread-owner"
                assert "me" not in caught.value.data.values()
            with pytest.raises(ThreadOwnerError):
                await store.delete_thread(ref(owner=asks))
            assert (await store.thread(ref(any_owner=True), WIDE)).info.owner == mine

    async def test_numbers_have_no_holes(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            last = await run_terns(store, 3)
            assert last.number == 3
            assert numbers(await all_terns(store, last.key)) == [1, 2, 3]

    async def test_b061_a_running_tern_keeps_others_out(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            first = await store.admit(admission())
            before = await version_of(store)
            for holder in ("two", "three"):
                assert (await store.admit(admission("other", holder=holder, now=later(9)))).kind == "busy"
            assert await version_of(store) == before
            assert numbers(await all_terns(store, first.key)) == [1]

    async def test_a_holder_closes_its_own_unfinished_tern(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            first = await store.admit(admission())
            second = await store.admit(admission("next"))
            assert (second.kind, second.number, second.closed) == ("admitted", 2, (1,))
            with pytest.raises(LeaseLostError):
                await store.commit(ending(first))

    async def test_b061_admissions_at_once_get_one_thread_and_one_tern(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            answers = await asyncio.gather(*(store.admit(admission(holder=f"h{n}")) for n in range(8)))
            assert sorted(answer.kind for answer in answers) == ["admitted"] + ["busy"] * 7
            assert len(await store.threads("w", None, None, 10)) == 1

    async def test_b101_parts_of_an_id_do_not_run_together(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            one, _ = await run_tern(store, "q1", workflow="a:b", thread="c")
            two, _ = await run_tern(store, "q2", workflow="a", thread="b:c")
            assert [t.task for t in await all_terns(store, one.key)] == ["q1"]
            assert [t.task for t in await all_terns(store, two.key)] == ["q2"]

    async def test_an_expired_lease_is_taken_over(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            stale = await store.admit(admission("first"))
            taken = await store.admit(admission("second", holder="two", now=later(11)))
            assert (taken.kind, taken.number, taken.closed) == ("admitted", 2, (1,))
            assert taken.fence > stale.fence
            assert taken.window is not None
            (closed,) = taken.window.terns
            assert (closed.status, closed.error_code) == (TernStatus.CANCELLED, "run.interrupted")
            assert "not finished" in closed.error
            assert closed.finished_at == later(11)
            with pytest.raises(LeaseLostError) as caught:
                await store.commit(ending(stale, messages=conversation("hi", "late"), usage=(booked(),)))
            assert caught.value.code == "run.lease-lost"
            assert [t.answer for t in await all_terns(store, taken.key)] == ["", ""]
            assert await store.messages(taken.key, MessagePage(agent="desk")) == ()

    async def test_an_expired_lease_is_taken_from_the_same_holder_too(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            stale = await store.admit(admission("first"))
            taken = await store.admit(admission("second", now=later(11), known=stale.version))
            assert (taken.closed, taken.fence > stale.fence) == ((1,), True)
            assert taken.window is not None

    async def test_a_gone_holder_is_replaced_at_once(self, tmp_path: Path) -> None:
        holder = new_holder()
        async with self.opened(tmp_path) as store:
            await store.admit(admission(holder=holder))
            assert (await store.admit(admission("next", holder="two"))).kind == "busy"
            release_holder(holder)
            assert not (await store.thread(ref(), WIDE)).info.running
            assert (await store.admit(admission("next", holder="two"))).closed == (1,)

    async def test_renewing_keeps_the_lease(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await store.admit(admission())
            await store.admit(admission(thread="other", holder="two"))
            await store.renew("one", later(60))
            assert (await store.admit(admission(holder="two", now=later(50)))).kind == "busy"
            assert (await store.admit(admission(thread="other", holder="one", now=later(50)))).kind == "admitted"

    async def test_the_fence_rises_with_the_holder_only(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            one, _ = await run_tern(store)
            two, _ = await run_tern(store)
            three, _ = await run_tern(store, holder="two")
            assert (two.fence, three.fence) == (one.fence, one.fence + 1)

    async def test_a_known_version_saves_the_window(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            _, first = await run_tern(store)
            again = await store.admit(admission(known=first.version))
            assert again.window is None
            second = await store.commit(ending(again))
            assert (again.version, second.version) == (first.version + 1, first.version + 2)
            moved = await store.admit(admission(known=second.version, holder="two"))
            assert moved.window is not None
            assert numbers(moved.window.terns) == [1, 2]
            third = await store.commit(ending(moved))
            stale = await store.admit(admission(known=third.version - 1, holder="two"))
            assert stale.window is not None

    # Idempotency

    async def test_b058_a_repeated_key_returns_the_stored_tern(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await run_tern(store, idempotency_key="k")
            before = await version_of(store)
            repeat = await store.admit(admission(idempotency_key="k", holder="two", now=later(99)))
            assert (repeat.kind, repeat.number, repeat.thread) == ("repeat", 1, "t")
            assert repeat.tern is not None
            assert (repeat.tern.answer, repeat.tern.usage) == ("hello", (booked().record,))
            assert await version_of(store) == before

    async def test_a_repeated_first_contact_finds_its_thread(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await run_tern(store, idempotency_key="k", first_contact=True)
            repeat = await store.admit(admission(idempotency_key="k", first_contact=True, thread="fresh"))
            assert (repeat.kind, repeat.thread) == ("repeat", "t")
            await run_tern(store, idempotency_key="second")
            with pytest.raises(TernConflictError):
                await store.admit(admission(idempotency_key="second", first_contact=True, thread="fresh"))

    @pytest.mark.parametrize("change", [{"task": "x"}, {"start": "x"}, {"thread": "x"}, {"workflow": "x"}])
    async def test_a_key_for_something_else_is_a_conflict(self, tmp_path: Path, change: dict[str, str]) -> None:
        async with self.opened(tmp_path) as store:
            await run_tern(store, idempotency_key="k")
            with pytest.raises(TernConflictError) as caught:
                await store.admit(replace(admission(idempotency_key="k"), **change))
            assert caught.value.code == "run.idempotency-conflict"

    async def test_keys_belong_to_their_owner(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            for number, owner in enumerate((None, "me", "you")):
                admitted = await store.admit(admission(owner=owner, thread=f"t{number}", idempotency_key="k"))
                assert admitted.kind == "admitted"

    async def test_b058_a_running_key_is_busy_then_resumed(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            first = await store.admit(admission(idempotency_key="k"))
            for holder in ("two", "three"):
                assert (await store.admit(admission(idempotency_key="k", holder=holder))).kind == "busy"
            resumed = await store.admit(admission(idempotency_key="k", holder="two", now=later(11)))
            assert (resumed.kind, resumed.number, resumed.resumed, resumed.closed) == ("admitted", 1, True, ())
            with pytest.raises(LeaseLostError):
                await store.commit(ending(first))
            await store.commit(ending(resumed))
            assert [t.task for t in await all_terns(store, resumed.key)] == ["hi"]
