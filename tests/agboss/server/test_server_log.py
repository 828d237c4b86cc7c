"""The log of one Tern: bounded, complete from any position, and honest about what it dropped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agboss.events import Answered, TextDelta
from agboss.server import log as server_log
from agboss.server.log import TernLog


def filled(pieces: list[str]) -> TernLog:
    log = TernLog("desk", None, detached=False)
    log.admitted("t", frozenset({"helper"}))
    for piece in pieces:
        log.take(TextDelta(node="helper", text=piece, certain=True))
    return log


@given(st.lists(st.text(max_size=20), max_size=30), st.integers(0, 40), st.integers(1, 8))
def test_a_reader_gets_each_event_once_or_is_told_of_the_gap(pieces: list[str], after: int, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server_log, "MOST_EVENTS", most)
        log = filled(pieces)
        found = log.after(after)
    numbers = [event.number for event in found]
    assert numbers == sorted(set(numbers))
    assert len(found) <= most + 1
    if after >= len(pieces):
        assert found == []
    else:
        first = found[0].number + 1 if found[0].type == "gap" else found[0].number
        assert first == max(after + 1, len(pieces) - most + 1)
        assert numbers[-1] == len(pieces)


def test_characters_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_log, "MOST_CHARACTERS", 1000)
    kept = filled(["x" * 300] * 10).after(0)
    assert kept[0].type == "gap"
    assert sum(len(event.data) for event in kept[1:]) <= 1000
    assert [event.number for event in filled(["x" * 5000]).after(0)] == [1]


@given(st.lists(st.text(max_size=5), max_size=8), st.text(max_size=10))
def test_the_pieces_of_an_answer_make_the_answer(pieces: list[str], rest: str) -> None:
    log = filled(pieces)
    log.take(TextDelta(node="other", text="thinking aloud", certain=True))
    log.take(TextDelta(node="helper", text="uncertain", certain=False))
    log.take(Answered(answer="".join(pieces) + rest, status="answered"))
    assert "".join(event.text for event in log.after(0)) == "".join(pieces) + rest
