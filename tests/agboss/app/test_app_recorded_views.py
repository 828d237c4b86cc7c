"""``record_views=True``: what each model call was shown, told by ``app.threads.calls``."""

from __future__ import annotations

import pytest

from agboss import InvalidInputError, ModelSpec, StoreError, agent, tool
from agboss.testing import MakeApp, MockCompaction, MockLlm, call_tool
from agboss_memory import MemoryStore
from agboss_memory.stores.views import ViewRecord

SPEC = ModelSpec("ollama:test", context_window=2000)


@tool
def look_up() -> str:
    """Look it up."""
    return "fact " * 200


@agent(
    name="window",
    model=SPEC,
    prompt="x",
    tools=[look_up],
    memory_config={"kind": "auto_compact", "toolResultEviction": {"aboveTokens": 50}},
)
class Window: ...


@agent(name="turns", model=SPEC, prompt="x", history_limit=1)
class Turns: ...


async def test_each_call_of_a_turn_is_told(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Window).then_return(call_tool(look_up), "one", "two")
    async with agboss_app(Window, record_views=True) as app:
        await app.execute("a", thread="t", create_thread=True)
        await app.execute("b", thread="t")
        first, second = await app.threads.calls("t", 1)
        assert [(one.first, one.state) for one in first.pieces] == [(1, "live")]
        assert [(one.first, one.state) for one in second.pieces] == [(1, "live"), (2, "live"), (3, "live")]
        assert (first.agent, first.call, second.call) == ("window", 0, 1)
        (third,) = await app.threads.calls("t", 2)
        assert [(one.first, one.state) for one in third.pieces][2] == (3, "evicted")
        assert third.tools == ("fetch_tool_result",)
        with pytest.raises(InvalidInputError):
            await app.threads.calls("t", 3)


async def test_turn_memory_tells_turns_and_what_it_left_out(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Turns).then_return("one", "two", "three")
    async with agboss_app(Turns, record_views=True) as app:
        for task in "abc":
            await app.execute(task, thread="t", create_thread=True)
        (call,) = await app.threads.calls("t", 3)
        assert [(one.kind, one.first) for one in call.pieces] == [("turn", 2)]


async def test_nothing_is_recorded_unless_asked(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Turns).then_return("one")
    async with agboss_app(Turns) as app:
        await app.execute("a", thread="t", create_thread=True)
        assert await app.threads.calls("t", 1) == ()


class Forgetful(MemoryStore):
    async def write_views(self, key: int, views: tuple[ViewRecord, ...]) -> None:
        raise StoreError("store.disk-full", "no room", "make room")


async def test_m162_a_composition_that_cannot_be_recorded_fails_nothing(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction, caplog: pytest.LogCaptureFixture
) -> None:
    mock_llm(Window).then_return("one", "two")
    mock_compaction(Window).then_return("Short.")
    async with agboss_app(Window, store=Forgetful(), record_views=True) as app:
        result = await app.execute("a " * 200, thread="t", create_thread=True)
        assert result.answer == "one"
        assert any("could not be recorded" in line for line in result.warnings)
        await app.execute("b", thread="t")
        report = await app.memory.compact("t")
        assert report.compressed_messages == 4
