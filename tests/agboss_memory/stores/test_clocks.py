"""Clocks that jump, forwards and back: nobody is kept out for long, nobody loses a place, and what was told is kept."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agboss_memory.stores import MemoryStore, SqliteStore, Store, TernPage
from agboss_memory.stores.lease import MOST_AHEAD, lease_holds
from agboss_memory.testing.store_holding import memory_claim
from agboss_memory.testing.store_requests import admission, ending, later, ref

JUMPS = st.floats(-1e7, 1e7) | st.floats(-30, 30) | st.just(0.0)
"""Seconds by which a clock is set."""

AHEAD = MOST_AHEAD.total_seconds()
LEASE = 10.0


@given(made=JUMPS, asked=JUMPS, passed=st.floats(0, 1e5))
def test_a_lease_keeps_others_out_for_a_bounded_time(made: float, asked: float, passed: float) -> None:
    """Made by one clock, asked by another: once nobody renews it, it is over within ten minutes of the asking clock."""
    until = later(made + LEASE)
    assert not lease_holds("one", until, later(asked), "one")
    if lease_holds("one", until, later(asked), "two"):
        assert asked <= made + LEASE <= asked + AHEAD
        over = later(asked + AHEAD + passed) + timedelta(microseconds=1)
        assert not lease_holds("one", until, over, "two")


def stores(folder: Path) -> tuple[Store, Store]:
    return MemoryStore(), SqliteStore(folder / "log.db", synchronous="NORMAL")


async def tell(store: Store, jumps: list[float], how: str) -> list[object]:
    """Terns of two holders while the clock jumps before each call; what came out."""
    await store.open()
    told: list[object] = []
    clock = 0.0
    for number, jump in enumerate(jumps, 1):
        admitted = await store.admit(admission(f"q{number}", now=later(clock)))
        assert admitted.kind == "admitted"
        clock += jump
        waiting = await store.admit(admission("other", holder="two", queue=True, now=later(clock)))
        told.append(waiting.kind)
        if waiting.kind == "busy":
            clock += jump
            await store.renew("one", later(clock + LEASE))
            strategies = ("Facts",) if how == "memory" else ()
            ends = ending(admitted, task=f"q{number}", now=later(clock), remembers="due", strategies=strategies)
            await store.commit(ends)
            if how == "memory":
                clock += jump
                told.append(await store.hold(memory_claim(admitted.key, clock, "three")) is None)
                await store.release(admitted.key, admitted.fence, admitted.number)
            await store.renew("two", later(clock + LEASE))
            asked = admission("other", holder="two", ticket=waiting.ticket, queue=True, now=later(clock))
            waiting = await store.admit(asked)
        assert waiting.kind == "admitted"
        await store.commit(ending(waiting, task="other", now=later(clock)))
    state = await store.thread(ref(), admission().window)
    terns = await store.terns(state.key, TernPage(limit=1000))
    assert [tern.number for tern in terns] == list(range(1, 2 * len(jumps) + 1))
    assert [tern.task for tern in terns[::2]] == [f"q{number}" for number in range(1, len(jumps) + 1)]
    assert all(tern.status.finished for tern in terns)
    assert await store.check() == ()
    told += [(tern.status, tern.started_at, tern.finished_at) for tern in terns]
    await store.close()
    return told


@pytest.mark.parametrize("how", ["plain", "memory"])
@settings(max_examples=25, deadline=None)
@given(jumps=st.lists(JUMPS, min_size=1, max_size=4))
def test_order_places_and_times_survive_any_jump(
    tmp_path_factory: pytest.TempPathFactory, how: str, jumps: list[float]
) -> None:
    """B106: both stores tell the same; a Tern whose lease looked ended was taken over, never two at once."""
    memory, file = stores(tmp_path_factory.mktemp("clock"))
    assert asyncio.run(tell(memory, jumps, how)) == asyncio.run(tell(file, jumps, how))
