"""pydantic-ai: the store keeps all, the model sees exactly the view."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, BinaryContent, ModelRetry
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from window_memory import Summariser, memory_of, stored

from agboss_memory import Memory, MemoryStore, SqliteStore, WindowView
from agboss_memory.adapters.pydantic_ai import MemoryCapability, records, sent

COMPACT = {"kind": "auto_compact", "compactAtRatio": 0.3, "toolResultEviction": {"aboveTokens": 20}}


class Scripted:
    """Answers in order; keeps what it saw, and the view at that moment."""

    def __init__(self, memory: Memory, *answers: ModelResponse) -> None:
        self.memory = memory
        self.answers = list(answers)
        self.seen: list[list[ModelMessage]] = []
        self.views: list[Any] = []
        self.tools: list[list[str]] = []

    async def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.seen.append(messages)
        self.views.append(await self.memory.view("t"))
        self.tools.append([tool.name for tool in info.function_tools])
        return self.answers.pop(0)


def agent_of(memory: Memory, *answers: ModelResponse) -> tuple[Agent[Any, Any], Scripted]:
    scripted = Scripted(memory, *answers)
    agent = Agent(FunctionModel(scripted), capabilities=[MemoryCapability(memory, "t")])

    @agent.tool_plain
    def look(q: str) -> str:
        if q == "again":
            raise ModelRetry("ask otherwise")
        return f"found {q} " * 20

    return agent, scripted


def said(text: str) -> ModelResponse:
    return ModelResponse([TextPart(text)])


THOUGHT = ThinkingPart("let me see", signature="c2ln", provider_name="p", id="r1", provider_details={"x": 1})
CALLS = (ToolCallPart("look", '{"q":  "a"}', "c1"), ToolCallPart("look", '{"q": "b"}', "c2"))


def looks() -> ModelResponse:
    return ModelResponse([THOUGHT, TextPart("I look."), *CALLS])


def texts(messages: list[ModelMessage]) -> list[tuple[str, str]]:
    return [(record.role, record.content) for record, _ in records(messages)]


def shown(view: Any) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in view.messages]


async def test_the_store_keeps_all_and_the_model_sees_the_view() -> None:
    memory = memory_of(MemoryStore(), {"kind": "windowed"}, system="Be brief.")
    agent, model = agent_of(memory, looks(), said("done"))
    result = await agent.run("find a and b")
    assert result.output == "done"
    kept = await stored(memory)
    assert [message.role for message in kept] == ["user", "assistant", "tool", "tool", "assistant"]
    assert [call.arguments for call in kept[1].tool_calls] == ['{"q":  "a"}', '{"q": "b"}']
    assert [message.tool_call_id for message in kept[2:4]] == ["c1", "c2"]
    assert [texts(messages) for messages in model.seen] == [shown(view) for view in model.views]
    assert model.seen[0][0].parts[0].content == "Be brief."  # pyright: ignore
    answer = sent(await memory.view("t"))[1]
    assert isinstance(answer, ModelResponse)
    assert list(answer.parts) == list(looks().parts)


async def test_it_compacts_and_offers_the_fetch_of_an_evicted_result() -> None:
    summariser = Summariser()
    memory = memory_of(MemoryStore(), COMPACT, window=700, model=summariser)
    agent, model = agent_of(memory, looks(), said("done"), said("yes"), said("x" * 1200), said("last"))
    await agent.run("find")
    await agent.run("sure?")
    assert model.tools == [["look"], ["look"], ["look", "fetch_tool_result"]]
    assert "evicted" in texts(model.seen[2])[2][1]
    await agent.run("more")
    assert len(summariser.inputs) == 1
    await agent.run("and now?")
    assert "continued from an earlier conversation" in texts(model.seen[4])[0][1]
    assert len(await stored(memory)) == 11
    assert [texts(messages) for messages in model.seen] == [shown(view) for view in model.views]


async def test_the_model_fetches_what_was_evicted() -> None:
    memory = memory_of(MemoryStore(), COMPACT, window=8000)
    fetch = ModelResponse([ToolCallPart("fetch_tool_result", '{"id": "m-3"}', "f1")])
    agent, model = agent_of(memory, looks(), said("done"), fetch, said("it was a"))
    await agent.run("find")
    await agent.run("what was it?")
    assert texts(model.seen[3])[-1] == ("tool", "found a " * 20)


async def test_a_restart_goes_on_with_the_thread(tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []
    for number in range(2):
        store = SqliteStore(tmp_path / "log.db")
        await store.open()
        memory = memory_of(store, {"kind": "windowed"})
        agent, model = agent_of(memory, said(f"answer {number}"))
        await agent.run(f"question {number}")
        seen = texts(model.seen[0])
        await store.close()
    assert seen == [("user", "question 0"), ("assistant", "answer 0"), ("user", "question 1")]


async def test_pictures_reach_the_model_in_their_own_turn() -> None:
    memory = memory_of(MemoryStore(), {"kind": "windowed"})
    agent, model = agent_of(memory, said("a cat"), said("still"))
    picture = BinaryContent(b"cat", media_type="image/png")
    await agent.run(["What is it?", picture])
    part = model.seen[0][-1].parts[0]
    assert isinstance(part, UserPromptPart)
    assert list(part.content) == ["What is it?", picture]
    await agent.run("Sure?")
    assert texts(model.seen[1])[0] == ("user", "What is it?\n[attachment: image/png]")


async def test_a_tool_that_asks_again_and_a_typed_output_are_kept() -> None:
    memory = memory_of(MemoryStore(), {"kind": "windowed"})
    retry = ModelResponse([ToolCallPart("look", {"q": "again"}, "c1")])
    final = ModelResponse([ToolCallPart("final_result", {"response": 3}, "o1")])
    scripted = Scripted(memory, retry, final)
    agent = Agent(FunctionModel(scripted), output_type=int, capabilities=[MemoryCapability(memory, lambda ctx: "t")])

    @agent.tool_plain
    def look(q: str) -> str:
        raise ModelRetry("ask otherwise")

    assert (await agent.run("how many?")).output == 3
    kept = await stored(memory)
    assert [message.role for message in kept] == ["user", "assistant", "tool", "assistant", "tool"]
    assert "ask otherwise" in kept[2].content


async def test_feedback_on_an_answer_is_kept() -> None:
    memory = memory_of(MemoryStore(), {"kind": "windowed"})
    wrong = ModelResponse([ToolCallPart("final_result", {"response": "many"}, "o1")])
    right = ModelResponse([ToolCallPart("final_result", {"response": 3}, "o2")])
    scripted = Scripted(memory, said("three"), wrong, right)
    agent = Agent(FunctionModel(scripted), output_type=int, retries=3, capabilities=[MemoryCapability(memory, "t")])
    assert (await agent.run("how many?")).output == 3
    kept = await stored(memory)
    assert [message.role for message in kept] == ["user", "assistant", "user", "assistant", "tool", "assistant", "tool"]


async def test_a_streamed_run_is_kept_too() -> None:
    memory = memory_of(MemoryStore(), {"kind": "windowed"})

    async def words(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        for word in ("Hello ", "Ada."):
            yield word

    agent = Agent(FunctionModel(stream_function=words), capabilities=[MemoryCapability(memory, "t")])
    async with agent.run_stream("I am Ada.") as run:
        assert await run.get_output() == "Hello Ada."
    assert [message.content for message in await stored(memory)] == ["I am Ada.", "Hello Ada."]


async def test_runs_at_the_same_time_do_not_mix() -> None:
    memory = memory_of(MemoryStore(), {"kind": "windowed"})

    async def echo(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        await asyncio.sleep(0)
        last = messages[-1]
        assert isinstance(last, ModelRequest)
        return said(f"you said {last.parts[-1].content}")  # pyright: ignore

    agent = Agent(FunctionModel(echo), deps_type=str, capabilities=[MemoryCapability(memory, lambda ctx: ctx.deps)])
    await asyncio.gather(*(agent.run(name, deps=name) for name in "abc"))
    for name in "abc":
        assert [m.content for m in await stored(memory, name)] == [name, f"you said {name}"]


def test_a_view_without_system_text_or_messages_is_nothing() -> None:
    assert sent(WindowView(system="", messages=())) == []
