"""LangChain and LangGraph: the store keeps all, the model sees exactly the view."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from pydantic import PrivateAttr
from window_memory import Summariser, memory_of, stored

from agboss_memory import Memory, MemoryStore, SqliteStore
from agboss_memory.adapters.langchain import MemoryMiddleware, model_input, records, sent

COMPACT = {"kind": "auto_compact", "compactAtRatio": 0.3, "toolResultEviction": {"aboveTokens": 20}}
CONFIG: Any = {"configurable": {"thread_id": "t"}}


class Scripted(BaseChatModel):
    """Answers in order; keeps what it saw, and the view at that moment."""

    _memory: Memory = PrivateAttr()
    _answers: list[AIMessage] = PrivateAttr()
    _seen: list[list[BaseMessage]] = PrivateAttr(default_factory=list[list[BaseMessage]])
    _views: list[list[tuple[str, str]]] = PrivateAttr(default_factory=list[list[tuple[str, str]]])
    _tools: list[list[str]] = PrivateAttr(default_factory=list[list[str]])

    def __init__(self, memory: Memory, *answers: AIMessage) -> None:
        super().__init__()
        self._memory = memory
        self._answers = list(answers)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def seen(self) -> list[list[BaseMessage]]:
        return self._seen

    @property
    def views(self) -> list[list[tuple[str, str]]]:
        return self._views

    @property
    def offered(self) -> list[list[str]]:
        return self._tools

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        self._tools.append([one.name for one in tools])
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self._seen.append(messages)
        view = await self._memory.view("t")
        self._views.append([(message.role, message.content) for message in view.messages])
        return ChatResult(generations=[ChatGeneration(message=self._answers.pop(0))])


@tool
def look(q: str) -> str:
    """Look something up."""
    return f"found {q} " * 20


def looks() -> AIMessage:
    return AIMessage(
        content=[
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "text", "text": "I look."},
        ],
        tool_calls=[{"id": "c1", "name": "look", "args": {"q": "a"}}, {"id": "c2", "name": "look", "args": {"q": "é"}}],
    )


def texts(messages: list[BaseMessage]) -> list[tuple[str, str]]:
    given: list[Any] = messages
    return [(record.role, record.content) for record in records(given)]


async def test_the_store_keeps_all_and_the_model_sees_the_view() -> None:
    memory = memory_of(MemoryStore(), {"kind": "windowed"}, system="Be brief.")
    model = Scripted(memory, looks(), AIMessage("done"))
    agent: Any = create_agent(model, [look], middleware=[MemoryMiddleware(memory)])
    result = await agent.ainvoke({"messages": [HumanMessage("find")]}, CONFIG)
    assert result["messages"][-1].content == "done"
    kept = await stored(memory)
    assert [message.role for message in kept] == ["user", "assistant", "tool", "tool", "assistant"]
    assert [one.arguments for one in kept[1].tool_calls] == ['{"q": "a"}', '{"q": "é"}']
    assert [(m.tool_call_id, m.tool_name) for m in kept[2:4]] == [("c1", "look"), ("c2", "look")]
    assert [texts(messages) for messages in model.seen] == model.views
    assert model.seen[0][0] == SystemMessage("Be brief.")
    given = sent(await memory.view("t"))[1]
    assert isinstance(given, AIMessage)
    assert (given.content, given.tool_calls) == (looks().content, looks().tool_calls)


async def test_it_compacts_and_offers_the_fetch_of_an_evicted_result() -> None:
    summariser = Summariser()
    memory = memory_of(MemoryStore(), COMPACT, window=700, model=summariser)
    fetch = AIMessage("", tool_calls=[{"id": "f1", "name": "fetch_tool_result", "args": {"id": "m-3"}}])
    answers = [looks(), AIMessage("done"), fetch, AIMessage("yes"), AIMessage("x" * 1400), AIMessage("last")]
    model = Scripted(memory, *answers)
    agent: Any = create_agent(
        model, [look], system_prompt="Own.", middleware=[MemoryMiddleware(memory)], checkpointer=InMemorySaver()
    )
    for text in ("find", "sure?", "more", "and now?"):
        await agent.ainvoke({"messages": [HumanMessage(text)]}, CONFIG)
    assert [texts(messages) for messages in model.seen] == model.views
    assert model.offered[:3] == [["look"], ["look"], ["fetch_tool_result", "look"]] or model.offered[:3] == [
        ["look"],
        ["look"],
        ["look", "fetch_tool_result"],
    ]
    assert "evicted" in texts(model.seen[2])[2][1]
    assert texts(model.seen[3])[-1] == ("tool", "found a " * 20)
    assert len(summariser.inputs) == 1
    assert "continued from an earlier conversation" in texts(model.seen[5])[0][1]
    assert len(await stored(memory)) == 13
    assert str(model.seen[0][0].content) == "Own."


async def test_a_restart_goes_on_with_the_thread(tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []
    for number in range(2):
        store = SqliteStore(tmp_path / "log.db")
        await store.open()
        memory = memory_of(store, {"kind": "windowed"})
        model = Scripted(memory, AIMessage(f"answer {number}"))
        agent: Any = create_agent(model, [look], middleware=[MemoryMiddleware(memory, "t")])
        await agent.ainvoke({"messages": [HumanMessage(f"question {number}")]})
        seen = texts(model.seen[0])
        await store.close()
    assert seen == [("user", "question 0"), ("assistant", "answer 0"), ("user", "question 1")]


async def test_a_node_of_a_graph() -> None:
    memory = memory_of(MemoryStore(), {"kind": "windowed", "windowSize": 2}, system="Be brief.")
    model = Scripted(memory, AIMessage("one"), AIMessage("two"), AIMessage("three"))

    async def answer(state: MessagesState) -> dict[str, Any]:
        await memory.remember("t", records(state["messages"][-1:]))
        reply = await model.ainvoke(await model_input(memory, "t", state["messages"]))
        await memory.remember("t", records([reply]))
        await memory.after_turn("t")
        return {"messages": [reply]}

    built: Any = StateGraph(MessagesState)
    built.add_node("answer", answer)
    built.add_edge(START, "answer")
    built.add_edge("answer", END)
    graph: Any = built.compile(checkpointer=InMemorySaver())
    for text in ("a", "b", "c"):
        await graph.ainvoke({"messages": [HumanMessage(text)]}, CONFIG)
    assert [texts(messages) for messages in model.seen] == model.views
    assert texts(model.seen[2]) == [("user", "c")]
    assert len(await stored(memory)) == 6


async def test_pictures_and_broken_calls_reach_the_model_as_they_are() -> None:
    memory = memory_of(MemoryStore(), {"kind": "windowed"})
    picture = HumanMessage(
        [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": "data:x"}}]
    )
    broken = AIMessage(
        "",
        invalid_tool_calls=[
            {"id": "c1", "name": "look", "args": "{no", "error": "bad", "type": "invalid_tool_call"},
        ],
    )
    said: list[AnyMessage] = [SystemMessage("no"), picture, broken, ToolMessage("?", tool_call_id="c1", name="look")]
    await memory.remember("t", records(said))
    view = await memory.view("t")
    assert sent(view, said) == said[1:]
    assert [message.content for message in sent(view)] == ["What is it?[attachment: image_url]", "", "?"]
    again = sent(view)[1]
    assert isinstance(again, AIMessage)
    assert again.invalid_tool_calls[0]["args"] == "{no"
