"""What a stored conversation would have cost under another configuration."""

from __future__ import annotations

import pytest
from window_memory import C4

from agboss_memory import Message, ToolCall, what_if
from agboss_memory.errors import InvalidInputError, StrategyError


def conversation(turns: int) -> list[Message]:
    made: list[Message] = []
    for n in range(1, turns + 1):
        made += [
            Message(role="user", content=f"q{n} ".ljust(80, "x"), tern=n),
            Message(role="assistant", tool_calls=(ToolCall(id=f"c{n}", name="find"),), tern=n),
            Message(role="tool", content="r" * 400, tool_call_id=f"c{n}", tool_name="find", tern=n),
            Message(role="assistant", content=f"a{n} ".ljust(80, "y"), tern=n),
        ]
    return made


async def test_full_grows_and_repeats_everything_before() -> None:
    told = await what_if(conversation(3), {"kind": "full"}, counter=C4(), window=100_000)
    assert [(call.tern, call.call) for call in told.calls] == [(1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1)]
    assert [call.shown for call in told.calls] == [1, 3, 5, 7, 9, 11]
    assert [call.first for call in told.calls] == [1] * 6
    assert [call.common for call in told.calls] == [0, 20, 120, 160, 260, 300]
    assert told.boundaries == ()
    assert told.model_calls == 0


async def test_a_summary_moves_the_boundary_and_breaks_the_prefix_once() -> None:
    config = {"kind": "auto_compact", "compactAtRatio": 0.4, "toolResultEviction": {"aboveTokens": 50}}
    told = await what_if(conversation(6), config, counter=C4(), window=1000)
    assert told.model_calls == 2, "what is folded does not fit one request of the summariser"
    (boundary,) = told.boundaries
    after = [call for call in told.calls if call.summaries]
    assert after[0].first == boundary + 1
    assert after[0].common == 0
    assert all(call.common for call in after[1:])
    assert max(call.tokens for call in told.calls) <= 1000
    assert any(call.stubs for call in told.calls)
    plain = await what_if(conversation(6), {"kind": "full"}, counter=C4(), window=100_000)
    assert told.tokens < plain.tokens


async def test_a_wrong_configuration_is_refused_before_anything() -> None:
    with pytest.raises(InvalidInputError, match="windowSise"):
        await what_if(conversation(1), {"kind": "windowed", "windowSise": 1})


async def test_an_error_names_the_agent_whose_conversation_it_is() -> None:
    long = [Message(role="user", content="x" * 40_000, tern=1), Message(role="assistant", content="y", tern=1)]
    with pytest.raises(StrategyError, match="'clerk'"):
        await what_if(long, {"kind": "full"}, counter=C4(), window=100, system="s" * 4000, agent="clerk")
