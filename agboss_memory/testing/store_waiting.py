# ruff: noqa: D102, S101
"""Tickets, waking and interruption: what every store does."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agboss_memory.errors import ThreadOwnerError, UnknownThreadError
from agboss_memory.messages import TernStatus
from agboss_memory.stores.contract import Enqueue
from agboss_memory.stores.lease import new_holder, release_holder
from agboss_memory.testing.store_requests import (
    NOW,
    admission,
    all_terns,
    ending,
    later,
    numbers,
    ref,
    run_tern,
    version_of,
)
from agboss_memory.testing.store_suite import StoreSuite


def waiting(holder: str = "two", thread: str = "t") -> Enqueue:
    """A Tern that has to wait."""
    return Enqueue(workflow="w", thread=thread, holder=holder, now=NOW)


class Waiting(StoreSuite):
    """Who comes next."""

    async def test_b061_tickets_are_served_in_the_order_of_arrival(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            running = await store.admit(admission())
            two = await store.admit(admission(holder="two", queue=True))
            three = await store.enqueue(waiting("three"))
            assert (two.kind, two.number) == ("busy", 1)
            assert 0 < two.ticket < three
            await store.commit(ending(running))
            for holder in ("one", "four"):
                assert (await store.admit(admission(holder=holder))).kind == "busy"
            assert (await store.admit(admission(holder="three", ticket=three, queue=True))).ticket == three
            second = await store.admit(admission(holder="two", ticket=two.ticket))
            assert (second.kind, second.number, second.ticket) == ("admitted", 2, 0)
            await store.commit(ending(second))
            third = await store.admit(admission(holder="three", ticket=three))
            await store.commit(ending(third))
            assert (await store.admit(admission(holder="four"))).number == 4

    async def test_who_does_not_queue_gets_no_ticket(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            running = await store.admit(admission())
            assert (await store.admit(admission(holder="two"))).ticket == 0
            await store.commit(ending(running))
            assert (await store.admit(admission(holder="three"))).kind == "admitted"

    async def test_a_ticket_given_back_leaves_no_tern(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            running = await store.admit(admission())
            ticket = (await store.admit(admission(holder="two", queue=True))).ticket
            version = await version_of(store)
            await store.leave(ticket)
            await store.leave(ticket)
            assert await version_of(store) == version
            await store.commit(ending(running))
            assert (await store.admit(admission(holder="three"))).number == 2
            assert numbers(await all_terns(store, running.key)) == [1, 2]

    async def test_a_ticket_of_a_gone_holder_does_not_block(self, tmp_path: Path) -> None:
        holder = new_holder()
        async with self.opened(tmp_path) as store:
            await run_tern(store)
            await store.enqueue(waiting(holder))
            assert (await store.admit(admission(holder="two"))).kind == "busy"
            release_holder(holder)
            assert (await store.admit(admission(holder="two"))).kind == "admitted"

    async def test_a_ticket_that_is_not_renewed_ends(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await run_tern(store)
            first, second = await store.enqueue(waiting("two")), await store.enqueue(waiting("three"))
            await store.renew("three", later(60))
            assert (await store.admit(admission(holder="four", now=later(50)))).kind == "busy"
            again = await store.admit(admission(holder="two", ticket=first, queue=True, now=later(50)))
            assert again.kind == "busy"
            assert again.ticket > second
            assert (await store.admit(admission(holder="three", ticket=second, now=later(50)))).kind == "admitted"

    async def test_a_ticket_may_wait_for_a_thread_to_be_made(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            ticket = await store.enqueue(waiting("two", "new"))
            assert await store.threads("w", None, None, 9) == ()
            assert (await store.admit(admission(thread="other"))).kind == "admitted"
            assert (await store.admit(admission(thread="new", holder="two", ticket=ticket))).number == 1

    async def test_a_repeat_needs_no_turn_and_frees_its_ticket(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            first = await store.admit(admission(idempotency_key="k"))
            await store.enqueue(waiting("three"))
            busy = await store.admit(admission(idempotency_key="k", holder="two", queue=True))
            assert busy.kind == "busy"
            await store.commit(ending(first))
            again = await store.admit(admission(idempotency_key="k", holder="two", ticket=busy.ticket))
            assert (again.kind, again.number) == ("repeat", 1)

    async def test_the_end_of_a_tern_wakes_who_waits(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            running = await store.admit(admission())
            ticket = (await store.admit(admission(holder="two", queue=True))).ticket
            for free in (store.commit(ending(running)), store.leave(ticket)):
                waiter = asyncio.create_task(store.wait(running.key, 60))
                await asyncio.sleep(0)
                await free
                await asyncio.wait_for(waiter, 5)
            await store.wait(running.key, 0)

    async def test_a_running_tern_is_asked_to_end_once(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            with pytest.raises(UnknownThreadError):
                await store.interrupt(ref())
            running = await store.admit(admission(owner="me"))
            await store.admit(admission(thread="other"))
            with pytest.raises(ThreadOwnerError):
                await store.interrupt(ref(owner="you"))
            assert await store.renew("one", later(10)) == ()
            asked = await store.interrupt(ref(owner="me"))
            assert asked is not None
            assert (asked.key, asked.number, asked.holder) == (running.key, 1, "one")
            assert await store.renew("one", later(10)) == (asked,)
            await store.commit(ending(running, status=TernStatus.CANCELLED))
            assert await store.interrupt(ref(owner="me")) is None
            following = await store.admit(admission(owner="me"))
            assert following.number == 2
            assert await store.renew("one", later(10)) == ()

    async def test_b069_a_clock_that_jumps_back_locks_nobody_out(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            ahead = later(86_400)
            await store.admit(admission(holder="far", now=ahead))
            await store.enqueue(Enqueue(workflow="w", thread="t", holder="away", now=ahead))
            taken = await store.admit(admission(holder="two"))
            assert (taken.kind, taken.number, taken.closed) == ("admitted", 2, (1,))
            await store.commit(ending(taken))
            assert (await store.admit(admission(holder="three"))).number == 3
