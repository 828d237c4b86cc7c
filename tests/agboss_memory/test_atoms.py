"""Atoms and the sanitiser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from window_memory import call, chat, numbered, result, said

from agboss_memory.atoms import PLACEHOLDER, atoms_of, complete, in_loop, newest_turn
from agboss_memory.messages import Message, ThinkingPart


def sanitised(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages as a view holds them."""
    return tuple(message for atom in atoms_of(messages) for message in complete(atom))


def shape(messages: tuple[Message, ...]) -> list[str]:
    return [m.tool_call_id or m.role for m in messages]


def test_m117_results_follow_their_call_in_its_order() -> None:
    messages = numbered([chat(1), call("x", "y"), result("y"), result("x"), chat(1)])
    assert shape(sanitised(messages)) == ["user", "assistant", "x", "y", "user"]


def test_m118_orphans_go_and_open_calls_are_closed() -> None:
    messages = numbered([chat(1), result("lost"), call("x"), chat(1)])
    made = sanitised(messages)
    assert shape(made) == ["user", "assistant", "x", "user"]
    assert (made[2].content, made[2].state, made[2].number) == (PLACEHOLDER, "placeholder", 0)


def test_m119_the_last_of_two_results_counts_once() -> None:
    messages = numbered([chat(1), call("x"), result("x", "first"), result("x", "second"), said("a")])
    made = sanitised(messages)
    assert [m.content for m in made if m.role == "tool"] == ["second"]
    assert atoms_of(messages)[1].numbers == (2, 3, 4)


def test_m124_nothing_stays_nothing_and_inputs_are_not_changed() -> None:
    assert sanitised(()) == ()
    given_list = [*numbered([result("x"), call("x")])]
    before = list(given_list)
    sanitised(given_list)
    assert given_list == before


def test_b008_late_results_belong_to_their_call() -> None:
    messages = numbered([chat(1), call("a", "b"), result("b"), chat(2), result("a")])
    atoms = atoms_of(messages)
    assert [atom.numbers for atom in atoms] == [(1,), (2, 3, 5), (4,)]
    assert shape(sanitised(messages)) == ["user", "assistant", "a", "b", "user"]


def test_b149_thinking_passes_byte_identical() -> None:
    part = ThinkingPart(text="hm", signature="sig", provider="p", data='{"x": 1}')
    head = call("x")
    messages = (Message(role="assistant", tool_calls=head.tool_calls, thinking=(part,)), result("x"))
    assert sanitised(messages)[0].thinking[0] is part


def test_a_provider_that_counts_its_calls_anew_each_turn_is_understood() -> None:
    messages = numbered([chat(1), call("0"), result("0", "one"), said("a"), chat(1), call("0"), result("0", "two")])
    atoms = atoms_of(messages)
    assert [atom.results[0].content for atom in atoms if atom.results] == ["one", "two"]
    assert (newest_turn(atoms), in_loop(atoms), in_loop(atoms[:3])) == (3, True, False)


def test_the_same_message_given_twice_counts_once() -> None:
    messages = numbered([chat(1), call("x"), result("x")])
    assert sanitised((*messages, *messages)) == sanitised(messages)


@pytest.mark.parametrize("pending", [True, False])
def test_a_call_without_result_is_pending(pending: bool) -> None:
    messages = [call("a", "b"), result("a"), *([] if pending else [result("b")])]
    assert atoms_of(messages)[0].pending is pending


def _call(ids: list[str]) -> Message:
    return call(*ids)


def _said(role: Literal["user", "assistant"], text: str) -> Message:
    return Message(role=role, content=text)


PIECES = st.one_of(
    st.builds(_said, st.sampled_from(("user", "assistant")), st.text(max_size=5)),
    st.builds(_call, st.lists(st.sampled_from("abcd"), min_size=1, max_size=3)),
    st.builds(result, st.sampled_from("abcde")),
)


@given(st.lists(PIECES, max_size=30).map(numbered))
def test_whatever_was_stored_a_provider_accepts_it(messages: tuple[Message, ...]) -> None:
    made = sanitised(messages)
    index = 0
    while index < len(made):
        calls = [c.id for c in made[index].tool_calls]
        assert made[index].role != "tool"
        assert [m.tool_call_id for m in made[index + 1 : index + 1 + len(calls)]] == calls
        assert len(set(calls)) == len(calls)
        index += 1 + len(calls)
    assert sanitised(made) == made or any(m.number == 0 for m in made)
    logged = sorted(n for atom in atoms_of(messages) for n in atom.numbers)
    assert logged == [m.number for m in messages]
    assert all(complete(atom) for atom in atoms_of(messages) if not atom.orphan)
