"""The last stage for exact windows, through both of its doors."""

from __future__ import annotations

import pytest
from window_memory import C4, TR, call, chat, numbered, said

from agboss_memory import Budget, LeftOut, MemoryView, Message, Summary
from agboss_memory.errors import StrategyError
from agboss_memory.fit import CUT_MARK, FitRequest, WindowFit, cut_to, estimate, fit, fit_window
from agboss_memory.render import placed

TALK = numbered([chat(50), said("a" * 40), chat(50), call("c"), TR("c", 200), said("b" * 40), chat(10)])


def fitted(messages: tuple[Message, ...], window: int, **more: object) -> MemoryView:
    budget = Budget(window=window, counter=C4())
    view = MemoryView(messages=messages)
    return fit_window(WindowFit(agent="ag", view=view, budget=budget, **more))  # type: ignore[arg-type]


def shown(view: MemoryView) -> list[Message]:
    return list(view.messages or ())


def test_what_fits_is_not_touched() -> None:
    assert fitted(TALK, 1000).messages == TALK


@pytest.mark.parametrize(("window", "first"), [(160, 3), (100, 7), (20, 7)])
def test_whole_oldest_atoms_go(window: int, first: int) -> None:
    view = fitted(TALK, window)
    assert [m.number for m in view.messages or ()] == list(range(first, 8))
    named = [n for item in view.left_out for n in range(item.first, item.last + 1)]
    assert named == list(range(1, first))


def test_the_open_round_and_the_task_stay() -> None:
    open_talk = numbered(
        [chat(50), said("a"), chat(10), call("a"), TR("a", 80), call("b", "c"), TR("b", 40), TR("c", 4000)]
    )
    view = fitted(open_talk, 120)
    assert [(m.number, m.state) for m in view.messages or ()] == [(3, "live"), (6, "live"), (7, "live"), (8, "cut")]
    assert view.left_out == (
        LeftOut(first=1, last=2, reason="over_window", unit="messages"),
        LeftOut(first=4, last=5, reason="over_window", unit="messages"),
    )
    assert shown(view)[-1].content.endswith(CUT_MARK)
    assert estimate(view.messages or (), C4()) <= 120


def test_a_summary_outlives_a_huge_result_and_goes_before_the_task_is_cut() -> None:
    summary = Summary(first=1, last=9, text="s" * 400)
    talk = tuple(m for m in numbered([chat(10), call("c"), TR("c", 8000)]))
    budget = Budget(window=500, counter=C4())
    for in_system in (True, False):
        view = placed(MemoryView(messages=talk), [summary], in_system=in_system)
        kept = fit_window(WindowFit(view=view, budget=budget))
        assert kept.summaries == (summary,)
        gone = fit_window(WindowFit(view=view, budget=Budget(window=60, counter=C4())))
        assert (gone.summaries, gone.system_addendum) == ((), "")
        assert gone.left_out == (LeftOut(first=1, last=9, reason="over_window", unit="messages"),)


def test_many_summaries_do_not_push_out_what_was_said_last() -> None:
    summaries = [Summary(first=n, last=n, text="s" * 200) for n in range(1, 21)]
    said_last = tuple(m for m in numbered([chat(10) for _ in range(30)]) if m.number > 20)
    view = placed(MemoryView(messages=said_last), summaries, in_system=True)
    kept = fit_window(WindowFit(view=view, budget=Budget(window=600, counter=C4())))
    assert [m.number for m in shown(kept)] == list(range(21, 31))
    assert 0 < len(kept.summaries) <= 5
    assert kept.summaries[-1].first == 20
    assert kept.left_out[0].first == 1


def test_fixed_overhead_is_a_typed_error() -> None:
    with pytest.raises(StrategyError) as caught:
        fitted(TALK, 100, fixed=("s" * 400,))
    assert caught.value.code == "memory.fixed-overhead"


def test_arguments_that_cannot_be_cut_are_a_typed_error() -> None:
    with pytest.raises(StrategyError) as caught:
        fitted(numbered([chat(1), call("c", arguments="x" * 4000)]), 100)
    assert caught.value.code == "memory.open-round"


def test_an_unknown_window_is_8192() -> None:
    view = fit_window(WindowFit(view=MemoryView(messages=numbered([chat(9000)])), budget=Budget(counter=C4())))
    assert shown(view)[0].state == "cut"


def test_a_runner_appends_the_running_tern_unless_the_view_holds_it() -> None:
    budget = Budget(window=90, counter=C4())
    view = MemoryView(messages=numbered([chat(50), said("a" * 40)]))
    request = FitRequest(agent="ag", view=view, task="now", added=(call("c"), TR("c", 40)), budget=budget, tern=3)
    whole = fit(request).view.messages or ()
    assert [m.role for m in whole] == ["user", "assistant", "tool"]
    assert {m.tern for m in whole} == {3}


@pytest.mark.parametrize("limit", range(12))
def test_a_cut_text_is_within_its_limit_and_marked(limit: int) -> None:
    made = cut_to("x" * 400, limit, C4())
    assert C4().count([made])[0] <= max(limit, 1)
    assert made.endswith((CUT_MARK, "[cut]", "…"))
