"""The suite finds what is wrong with a strategy, and says which promise it breaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, settings

from agboss_memory import (
    BaseMemoryStrategy,
    MemoryContext,
    MemoryModel,
    MemoryTurn,
    MemoryUpdate,
    MemoryView,
    Message,
    Reach,
    SlidingWindowStrategy,
    Summary,
)
from agboss_memory.records import replace
from agboss_memory.testing import BrokenPromise, strategy_conformance

FIRST = "test_promises_1_2_3_5_6_9_11_13_hold_for_every_request"
WORK = "test_promises_4_7_10_hold_for_memory_work"
ISOLATED = "test_promise_8_a_thread_is_shown_the_same_whoever_else_is_served"
START = "test_promise_12_what_is_wrong_is_refused_at_the_start"


class SplitsAtoms(BaseMemoryStrategy):
    reach = Reach(messages=2)

    def build_context(self, context: MemoryContext) -> MemoryView:
        return MemoryView(messages=context.messages)


class Rewrites(BaseMemoryStrategy):
    reach = Reach(messages=0)

    def build_context(self, context: MemoryContext) -> MemoryView:
        return MemoryView(history=tuple(replace(tern, task="?" + tern.task) for tern in context.history))


class Unfenced(BaseMemoryStrategy):
    def build_context(self, context: MemoryContext) -> MemoryView:
        return MemoryView(system_addendum="".join(summary.text for summary in context.summaries))


class Moves(BaseMemoryStrategy):
    def build_context(self, context: MemoryContext) -> MemoryView:
        return MemoryView(system_addendum=f"Call {context.call_index}.")


class Remembers(BaseMemoryStrategy):
    def __init__(self) -> None:
        self.tasks: list[str] = []

    def build_context(self, context: MemoryContext) -> MemoryView:
        self.tasks.append(context.thread_id)
        return MemoryView(recalled=tuple(self.tasks))


class Bloats(BaseMemoryStrategy):
    """Writes summaries that are longer than what was said."""

    def build_context(self, context: MemoryContext) -> MemoryView:
        return MemoryView()

    async def update_memory(self, turn: MemoryTurn) -> MemoryUpdate:
        assert turn.log is not None
        number = (await turn.log.newest(0)).last
        await turn.log.save_summary(Summary(first=number, last=number, text="long " * 9000, kind="own"))
        return MemoryUpdate()


class Forgets(BaseMemoryStrategy):
    """Leaves messages out and does not say so."""

    def build_context(self, context: MemoryContext) -> MemoryView:
        return MemoryView(messages=(Message(role="user", content=context.task, tern=10**6),))


settings.register_profile("suite", max_examples=60, derandomize=True, phases=[Phase.generate])


def run(make: Callable[[], BaseMemoryStrategy], test: str, **given: Any) -> None:
    """One test of the suite for a strategy, which takes the profile that is loaded."""
    before = settings.get_current_profile_name()
    settings.load_profile("suite")
    try:
        suite: Any = strategy_conformance(lambda model: make(), **given)
    finally:
        settings.load_profile(before)
    getattr(suite(), test)()


@pytest.mark.parametrize(
    ("make", "test", "promise"),
    [
        (SplitsAtoms, FIRST, 1),
        (Rewrites, FIRST, 2),
        (Unfenced, FIRST, 9),
        (Moves, FIRST, 13),
        (Remembers, ISOLATED, 8),
        (Bloats, WORK, 4),
    ],
)
def test_the_broken_promise_is_named(make: Callable[[], BaseMemoryStrategy], test: str, promise: int) -> None:
    with pytest.raises(BrokenPromise) as caught:
        run(make, test)
    assert caught.value.number == promise


def test_names_all_asks_for_every_message() -> None:
    with pytest.raises(BrokenPromise) as caught:
        run(Forgets, FIRST, names_all=True)
    assert caught.value.number == 2


def test_a_wrong_declaration_that_is_accepted_is_found() -> None:
    def sliding(model: MemoryModel) -> BaseMemoryStrategy:
        return SlidingWindowStrategy()

    suite: Any = strategy_conformance(sliding, refused=[lambda: SlidingWindowStrategy(turns=3)])
    make = next(iter(getattr(suite, START).pytestmark)).args[1][0]
    with pytest.raises(BrokenPromise, match="made from wrong values"):
        suite().test_promise_12_what_is_wrong_is_refused_at_the_start(make)
    assert not hasattr(strategy_conformance(sliding), START)


def test_a_view_of_another_type_is_no_view() -> None:
    class NoView(BaseMemoryStrategy):
        def build_context(self, context: MemoryContext) -> Any:
            return "a view"

    with pytest.raises(TypeError, match="not a MemoryView"):
        run(NoView, FIRST)
