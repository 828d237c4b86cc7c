"""Window memory inside a node of a LangGraph graph, with LangChain's fake model: no key, no network.

Run it:  python examples/langgraph_memory.py      (pip install 'agboss[langchain]')
"""

from __future__ import annotations

import asyncio
from typing import Any

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph

from agboss_memory import Memory, MemoryStore
from agboss_memory.adapters.langchain import model_input, records

MODEL = GenericFakeChatModel(messages=iter([AIMessage("Hello Ada."), AIMessage("You are Ada.")]))
MEMORY = Memory(MemoryStore(), {"kind": "windowed", "windowSize": 6}, window=128_000, system="Be brief.")


async def answer(state: MessagesState) -> dict[str, Any]:
    """Store what is new, ask with the view, store the answer."""
    await MEMORY.remember("ada", records(state["messages"]))
    asked = await model_input(MEMORY, "ada", state["messages"])
    print([message.content for message in asked])
    reply = await MODEL.ainvoke(asked)
    await MEMORY.remember("ada", records([reply]))
    await MEMORY.after_turn("ada")
    return {"messages": [reply]}


async def main() -> None:
    """Two runs of a graph without a checkpointer; the second sees the first."""
    built: Any = StateGraph(MessagesState)
    built.add_node("answer", answer)
    built.add_edge(START, "answer")
    built.add_edge("answer", END)
    graph = built.compile()
    for task in ("I am Ada.", "Who am I?"):
        done = await graph.ainvoke({"messages": [HumanMessage(task)]})
        print(done["messages"][-1].content)


if __name__ == "__main__":
    asyncio.run(main())
