"""The estimate."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agboss_memory.tokens import HeuristicCounter, TiktokenCounter

_TEXTS = st.text(st.one_of(st.sampled_from("a é漢🚀\ud800"), st.characters(exclude_categories=())))


@pytest.mark.parametrize(
    "text", ["漢字" * 5000, "ひらがなカタカナ" * 1000, "한국어" * 3000, "مرحبا" * 2000, "🚀🧑" * 1000]
)
def test_b075_wide_scripts_cost_at_least_six_tenths(text: str) -> None:
    (tokens,) = HeuristicCounter().count([text])
    assert 0.6 * len(text) <= tokens <= 3 * len(text)


@pytest.mark.parametrize(
    "text", ["漢字仮名交じり文。" * 200, "مرحبا بالعالم " * 200, "🧑‍🚀 🚀" * 200, "Привет, мир. " * 200]
)
def test_b075_the_estimate_is_not_far_below_the_truth(text: str) -> None:
    pytest.importorskip("toktok")
    (guess,) = HeuristicCounter().count([text])
    (truth,) = TiktokenCounter().count([text])
    assert guess >= 0.6 * truth


def test_plain_english_costs_a_quarter_per_character() -> None:
    assert HeuristicCounter().count(["", "a", "abcd", "abcde"]) == [0, 1, 1, 2]
    assert HeuristicCounter().name == "heuristic"


@settings(deadline=None)
@given(_TEXTS, _TEXTS)
def test_longer_is_never_cheaper(text: str, more: str) -> None:
    one, both = HeuristicCounter().count([text, text + more])
    assert one <= both


@settings(deadline=None)
@given(_TEXTS, st.integers(-2, 50))
def test_truncating_keeps_the_longest_prefix(text: str, limit: int) -> None:
    counter = HeuristicCounter()
    kept = counter.truncate(text, limit)
    assert text.startswith(kept)
    assert counter.count([kept])[0] <= max(limit, 0)
    if len(kept) < len(text) and limit > 0:
        assert counter.count([text[: len(kept) + 1]])[0] > limit
