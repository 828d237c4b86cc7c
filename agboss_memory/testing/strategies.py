"""The suite that every memory strategy passes.

.. code-block:: python

    TestMine = strategy_conformance(lambda model: MyStrategy(model))
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agboss_memory.contract import BaseMemoryStrategy, MemoryModel
from agboss_memory.messages import Message
from agboss_memory.stores import MemoryStore
from agboss_memory.testing.counter import QuarterCounter
from agboss_memory.testing.play import Played, World, model_for
from agboss_memory.testing.promises import (
    check_accounting,
    check_isolation,
    check_once,
    check_progress,
    check_refused,
)
from agboss_memory.testing.shown import Shown
from agboss_memory.testing.summariser import MoodySummariser, moods
from agboss_memory.testing.threads import Turn, threads

MakeStrategy = Callable[[MemoryModel], BaseMemoryStrategy]

_AFTERWARDS = Turn(
    task=Message(role="user", content="And now?"), answer=Message(role="assistant", content="Nothing else.")
)


def windows() -> st.SearchStrategy[int]:
    """Windows in tokens: from one that holds nothing to one that holds everything."""
    return st.one_of(st.integers(1, 120), st.integers(120, 6000))


def strategy_conformance(
    make_strategy: MakeStrategy, *, names_all: bool = False, refused: Sequence[Callable[[], object]] = ()
) -> type:
    """The suite for a strategy: a class of plain tests. Give it a name that pytest collects.

    Random threads are played through it as the framework plays them, in windows from 1 token up, with a summariser
    that fails now and then; every request and all that is stored is held against the thirteen promises.

    Args:
        make_strategy: Makes a new strategy. Its calls of the model it is given are limited and booked.
        names_all: The strategy names in ``left_out`` everything that it leaves out; else the framework adds the rest.
        refused: Ways to make it wrongly, each of which must be refused.
    """
    # Made here, not at import, so that the profile which the caller has loaded counts.
    slow = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)

    class StrategyConformance:
        """What a strategy must do, test by test."""

        @slow
        @given(talk=threads(), window=windows(), moods=moods())
        def test_promises_1_2_3_5_6_9_11_13_hold_for_every_request(
            self, talk: tuple[Turn, ...], window: int, moods: list[str]
        ) -> None:
            """Every request is checked while the thread is played."""
            asyncio.run(_play(make_strategy, talk, window, moods, names_all))

        @slow
        @given(talk=threads(), window=windows(), moods=moods())
        def test_promises_4_7_10_hold_for_memory_work(
            self, talk: tuple[Turn, ...], window: int, moods: list[str]
        ) -> None:
            """What memory wrote is smaller, there once, and paid for once."""

            async def check() -> None:
                played = await _play(make_strategy, talk, window, moods, names_all)
                written = await played.summaries()
                check_progress(written, played.log, QuarterCounter())
                check_once(written)
                check_accounting(played.world.model.calls, await played.spent())

            asyncio.run(check())

        @slow
        @given(talks=st.lists(threads(turns=3), min_size=2, max_size=3), window=windows())
        def test_promise_8_a_thread_is_shown_the_same_whoever_else_is_served(
            self, talks: list[tuple[Turn, ...]], window: int
        ) -> None:
            """One object for several threads against an object for each."""

            async def check() -> None:
                alone = [(await _play(make_strategy, talk, window, [], names_all)).requests for talk in talks]
                among = await _together(make_strategy, talks, window, names_all)
                for one, other in zip(alone, among, strict=True):
                    check_isolation(one, other)

            asyncio.run(check())

        @pytest.mark.parametrize("make", refused)
        def test_promise_12_what_is_wrong_is_refused_at_the_start(self, make: Callable[[], object]) -> None:
            """Each of the wrong ways."""
            check_refused(make)

    if not refused:
        del StrategyConformance.test_promise_12_what_is_wrong_is_refused_at_the_start
    return StrategyConformance


async def _play(
    make_strategy: MakeStrategy, talk: Sequence[Turn], window: int, moods: Sequence[str], names_all: bool
) -> Played:
    played = Played(world=_world(make_strategy, window, moods, names_all))
    for turn in talk:
        await played.turn(turn)
    await played.compact()
    await played.turn(_AFTERWARDS)
    return played


async def _together(
    make_strategy: MakeStrategy, talks: Sequence[Sequence[Turn]], window: int, names_all: bool
) -> list[list[Shown | None]]:
    world = _world(make_strategy, window, [], names_all)
    together = [Played(world=world, thread=f"t{place}") for place, _ in enumerate(talks)]
    for place in range(max(map(len, talks))):
        for played, talk in zip(together, talks, strict=True):
            if place < len(talk):
                await played.turn(talk[place])
    for played in together:
        await played.compact()
        await played.turn(_AFTERWARDS)
    return [played.requests for played in together]


def _world(make_strategy: MakeStrategy, window: int, moods: Sequence[str], names_all: bool) -> World:
    model = MoodySummariser(moods)
    return World(
        strategy=make_strategy(model_for(model)), store=MemoryStore(), model=model, window=window, names_all=names_all
    )
