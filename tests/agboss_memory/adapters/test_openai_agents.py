"""openai-agents: the session stores every item and gives the view."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from agents import Agent, Model, ModelResponse, RunConfig, Runner, TResponseInputItem, Usage, function_tool
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
)
from openai.types.responses.response_reasoning_item import Summary
from window_memory import Summariser, memory_of, stored

from agboss_memory import Memory, MemoryStore, SqliteStore
from agboss_memory.adapters.openai_agents import MemorySession, items, records
from agboss_memory.errors import InvalidInputError

COMPACT = {"kind": "auto_compact", "compactAtRatio": 0.3, "toolResultEviction": {"aboveTokens": 20}}


class Scripted(Model):
    """Answers in order; keeps what it saw, and the view at that moment."""

    def __init__(self, memory: Memory, *answers: list[Any]) -> None:
        self.memory = memory
        self.answers = list(answers)
        self.seen: list[tuple[str | None, list[Any]]] = []
        self.views: list[list[Any]] = []

    async def get_response(self, system_instructions: str | None, input: Any, *_: Any, **__: Any) -> ModelResponse:
        self.seen.append((system_instructions, input))
        self.views.append(items(await self.memory.view("t")))
        return ModelResponse(output=self.answers.pop(0), usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def said(text: str) -> ResponseOutputMessage:
    part = ResponseOutputText(text=text, type="output_text", annotations=[])
    return ResponseOutputMessage(id="msg_1", role="assistant", status="completed", type="message", content=[part])


def call(id: str, q: str) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(
        id=f"fc_{id}", call_id=id, name="look", arguments=f'{{"q":  "{q}"}}', type="function_call"
    )


THOUGHT = ResponseReasoningItem(
    id="rs_1", type="reasoning", summary=[Summary(text="hm", type="summary_text")], encrypted_content="xyz"
)


@function_tool
def look(q: str) -> str:
    """Looks something up."""
    return f"found {q} " * 20


def agent_of(model: Model, session: MemorySession) -> Agent[Any]:
    return Agent(name="a", instructions="Be brief.", model=model, tools=[look, session.fetch_tool()])


async def ask(memory: Memory, model: Model, text: str) -> str:
    session = MemorySession(memory, "t")
    config = session.run_config(tracing_disabled=True)
    return (await Runner.run(agent_of(model, session), text, session=session, run_config=config)).final_output


async def test_the_store_keeps_all_and_the_model_sees_the_view() -> None:
    memory = memory_of(MemoryStore(), {"kind": "windowed"}, system="Be brief.")
    first = [THOUGHT, said("I look."), call("c1", "a"), call("c2", "b")]
    model = Scripted(memory, first, [said("done")])
    assert await ask(memory, model, "find a and b") == "done"
    kept = await stored(memory)
    assert [message.role for message in kept] == ["user", "assistant", "tool", "tool", "assistant"]
    assert [one.arguments for one in kept[1].tool_calls] == ['{"q":  "a"}', '{"q":  "b"}']
    assert [(m.tool_call_id, m.tool_name) for m in kept[2:4]] == [("c1", "look"), ("c2", "look")]
    assert [given for _, given in model.seen] == model.views
    assert {system for system, _ in model.seen} == {"Be brief."}
    given = items(await memory.view("t"))[1:5]
    assert given == [item.model_dump(exclude_unset=True) for item in first]


async def test_it_compacts_and_evicts() -> None:
    summariser = Summariser()
    memory = memory_of(MemoryStore(), COMPACT, window=700, model=summariser)
    answers = [[call("c1", "a")], [said("done")], [said("yes")], [said("x" * 1400)], [said("last")]]
    model = Scripted(memory, *answers)
    for text in ("find", "sure?", "more", "and now?"):
        await ask(memory, model, text)
    assert "evicted" in str(model.seen[2][1][2]["output"])
    assert len(summariser.inputs) == 1
    assert "continued from an earlier conversation" in model.seen[4][1][0]["content"]
    assert [given for _, given in model.seen] == model.views
    assert len(await stored(memory)) == 10


async def test_the_model_fetches_what_was_evicted() -> None:
    memory = memory_of(MemoryStore(), COMPACT, window=8000)
    fetch = ResponseFunctionToolCall(
        call_id="f1", name="fetch_tool_result", arguments='{"id": "m-3"}', type="function_call"
    )
    model = Scripted(memory, [call("c1", "a")], [said("done")], [fetch], [said("it was a")])
    await ask(memory, model, "find")
    await ask(memory, model, "what was it?")
    assert model.seen[3][1][-1]["output"] == "found a " * 20


async def test_a_restart_goes_on_with_the_thread(tmp_path: Path) -> None:
    seen: list[Any] = []
    for number in range(2):
        store = SqliteStore(tmp_path / "log.db")
        await store.open()
        memory = memory_of(store, {"kind": "windowed"})
        model = Scripted(memory, [said(f"answer {number}")])
        await ask(memory, model, f"question {number}")
        seen = [(message.role, message.content) for message in records(model.seen[0][1])]
        await store.close()
    assert seen == [("user", "question 0"), ("assistant", "answer 0"), ("user", "question 1")]


async def test_a_session_without_the_filter_begins_with_the_view() -> None:
    memory = memory_of(MemoryStore(), {"kind": "windowed"})
    session = MemorySession(memory, "t")
    model = Scripted(memory, [said("one")], [said("two")])
    for text in ("a", "b"):
        config = RunConfig(tracing_disabled=True)
        await Runner.run(agent_of(model, session), text, session=session, run_config=config)
    assert [message.content for message in records(model.seen[1][1])] == ["a", "one", "b"]


async def test_the_rest_of_a_session() -> None:
    session = MemorySession(memory_of(MemoryStore(), {"kind": "windowed"}), "t")
    await session.clear_session()
    parts = [{"type": "input_text", "text": "What is it?"}, {"type": "input_image", "image_url": "data:x"}]
    given: list[Any] = [
        {"role": "system", "content": "no"},
        {"role": "user", "content": parts},
        {"role": "assistant", "content": "a cat"},
        {"role": "user", "content": "sure?"},
    ]
    await session.add_items(cast(list[TResponseInputItem], given))
    everything = await session.get_items()
    assert everything[0] == {"role": "user", "content": "What is it?\n[attachment: input_image]"}
    assert await session.get_items(2) == everything[2:]
    assert await session.get_items(0) == []
    with pytest.raises(InvalidInputError) as caught:
        await session.pop_item()
    assert caught.value.code == "memory.append-only"
    await session.clear_session()
    assert await session.get_items() == []
