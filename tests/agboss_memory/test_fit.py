"""The last stage: every request fits, whatever the strategy selected."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agboss_memory import Budget, LeftOut, MemoryView, Message, Summary, Tern, ToolCall
from agboss_memory.errors import StrategyError
from agboss_memory.fit import CUT_MARK, PER_MESSAGE, FitRequest, fit
from agboss_memory.render import joined, view_rows


class C4:
    """A quarter of the characters, rounded down."""

    name = "c4"

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(text) // 4 for text in texts]

    def truncate(self, text: str, limit: int) -> str:
        return text[: limit * 4 + 3]


def terns(count: int, size: int) -> tuple[Tern, ...]:
    return tuple(Tern(number=n, task="q" * 4 * size, answer="a") for n in range(1, count + 1))


def request(**fields: object) -> FitRequest:
    defaults: dict[str, object] = {
        "agent": "ag",
        "view": MemoryView(),
        "task": "now",
        "budget": Budget(window=1000, counter=C4()),
    }
    return FitRequest(**{**defaults, **fields})  # type: ignore[arg-type]


def test_an_unknown_window_changes_nothing():
    view = MemoryView(history=terns(50, 100))
    assert fit(request(view=view, budget=Budget(counter=C4()))).view is view


def test_the_oldest_turns_go_first_and_are_named():
    fitted = fit(request(view=MemoryView(history=terns(20, 100))))
    assert [tern.number for tern in fitted.view.history] == list(range(13, 21)) or len(fitted.view.history) >= 8
    gone = 20 - len(fitted.view.history)
    assert sum(item.last - item.first + 1 for item in fitted.view.left_out) == gone
    assert all(item.reason == "over_window" for item in fitted.view.left_out)
    assert fitted.task == "now"


def test_summaries_go_after_all_turns():
    view = MemoryView(history=terns(1, 10), summaries=(Summary(first=1, last=2, text="s" * 8000),))
    fitted = fit(request(view=view))
    assert fitted.view.history == ()
    assert fitted.view.summaries == ()
    assert fitted.view.left_out[-1] == LeftOut(first=1, last=2, reason="over_window")


def test_the_largest_result_of_the_open_round_is_cut_before_the_task():
    calls = (ToolCall(id="1", name="t"), ToolCall(id="2", name="t"))
    added = (
        Message(role="assistant", tool_calls=calls),
        Message(role="tool", tool_call_id="1", content="x" * 400),
        Message(role="tool", tool_call_id="2", content="y" * 8000),
    )
    fitted = fit(request(added=added))
    assert fitted.added[1] == added[1]
    assert fitted.added[2].content.endswith(CUT_MARK)
    assert fitted.task == "now"


def test_fixed_overhead_alone_is_a_typed_error():
    with pytest.raises(StrategyError) as caught:
        fit(request(fixed=("s" * 5000,)))
    assert caught.value.code == "memory.fixed-overhead"
    assert "1250" in caught.value.message


@given(
    count=st.integers(0, 30),
    size=st.integers(0, 200),
    task=st.text(max_size=3000),
    result=st.text(max_size=3000),
    window=st.integers(40, 2000),
)
def test_every_request_fits(count: int, size: int, task: str, result: str, window: int):
    added = (
        Message(role="assistant", tool_calls=(ToolCall(id="1", name="t"),)),
        Message(role="tool", tool_call_id="1", content=result),
    )
    counter = C4()
    fitted = fit(
        request(
            view=MemoryView(history=terns(count, size)),
            task=task,
            added=added,
            budget=Budget(window=window, counter=counter),
        )
    )
    texts = [joined(view_rows(fitted.view, fitted.task)), *(message.content for message in fitted.added), "{}"]
    mark = counter.count([CUT_MARK])[0]
    slack = 2 * mark + 8 if fitted.task != task or fitted.added != added else 0
    assert sum(counter.count(texts)) + 3 * PER_MESSAGE <= window + slack
    shown = {tern.number for tern in fitted.view.history}
    named = {n for item in fitted.view.left_out for n in range(item.first, item.last + 1)}
    assert shown | named == set(range(1, count + 1))
    assert not shown & named
