"""LangChain and LangGraph: a middleware for agents, and two functions for nodes of a graph of your own.

.. code-block:: python

    agent = create_agent(model, tools, middleware=[MemoryMiddleware(memory)])
    await agent.ainvoke({"messages": ["Hello"]}, {"configurable": {"thread_id": "thread-1"}})
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, NotRequired, cast

from agboss_memory.adapters.extra import missing_extra
from agboss_memory.adapters.originals import Originals
from agboss_memory.memory import Memory, WindowView
from agboss_memory.messages import Message, ThinkingPart, ToolCall

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
    from langchain.agents.middleware.types import PrivateStateAttr
    from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
    from langchain_core.tools import tool
    from langgraph.config import get_config
    from langgraph.runtime import Runtime
except ImportError as error:
    raise missing_extra("langchain", error) from error

FETCH = "fetch_tool_result"


class MemoryState(AgentState[Any]):
    """The agent's state, and how many of its messages are stored."""

    agboss_stored: NotRequired[Annotated[int, PrivateStateAttr]]


def thread_of_config() -> str:
    """The ``thread_id`` of the running graph's ``configurable``."""
    return str(get_config().get("configurable", {})["thread_id"])


class MemoryMiddleware(AgentMiddleware[MemoryState, Any, Any]):
    """An agent whose history is a thread of a ``Memory``; call it with ``ainvoke`` or ``astream``.

    Every message is stored as it enters the agent's state, and every model call gets the thread's view. System text is
    an argument of ``Memory``; a ``system_prompt`` of the agent goes before it, but is not counted. The tool
    ``fetch_tool_result`` is offered while a stub is in view.

    Args:
        memory: The memory.
        thread: The thread, or what gives it; default = ``thread_id`` of the graph's configuration.
    """

    state_schema = MemoryState

    def __init__(self, memory: Memory, thread: str | Callable[[], str] = thread_of_config) -> None:
        super().__init__()
        self.memory = memory
        self.thread = thread

        @tool
        async def fetch_tool_result(id: str) -> str:
            """Read the full text of a tool result by the message id that its stub names."""
            return await memory.fetch_tool_result(self._thread(), id)

        self.tools = [fetch_tool_result]

    async def abefore_model(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any]:
        """Store the task, or the results of tools."""
        return await self._remember(state)

    async def aafter_model(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any]:
        """Store the answer."""
        return await self._remember(state)

    async def aafter_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any]:
        """Store what a tool answered at the end, and let the memory do what is due."""
        stored = await self._remember(state)
        await self.memory.after_turn(self._thread())
        return stored

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Send the view."""
        view = await self.memory.view(self._thread())
        texts = [request.system_prompt or "", view.system]
        system = "\n\n".join(text for text in texts if text)
        tools = [each for each in request.tools if view.offers_fetch or getattr(each, "name", None) != FETCH]
        return await handler(
            request.override(
                messages=sent(view, request.messages),
                system_message=SystemMessage(system) if system else None,
                tools=tools,
            )
        )

    async def _remember(self, state: MemoryState) -> dict[str, Any]:
        said = state["messages"]
        await self.memory.remember(self._thread(), records(said[state.get("agboss_stored", 0) :]))
        return {"agboss_stored": len(said)}

    def _thread(self) -> str:
        return self.thread if isinstance(self.thread, str) else self.thread()


def records(messages: Iterable[AnyMessage]) -> list[Message]:
    """What LangChain's messages say, as records. System text is left out."""
    return [record for record, _ in _paired(messages)]


def sent(view: WindowView, own: Iterable[AnyMessage] = ()) -> list[AnyMessage]:
    """The messages to send for a view, without its system text.

    Args:
        view: The view.
        own: Messages of which the model gets the objects themselves where the view shows them as they were said.
    """
    originals = Originals(_paired(own)).of(view.messages)
    return [
        _message(message) if original is None else original
        for message, original in zip(view.messages, originals, strict=True)
    ]


async def model_input(memory: Memory, thread: str, own: Iterable[AnyMessage] = ()) -> list[AnyMessage]:
    """What a node of your own gives its model: system text and view. See ``sent``."""
    view = await memory.view(thread)
    system: list[AnyMessage] = [SystemMessage(view.system)] if view.system else []
    return [*system, *sent(view, own)]


def _paired(messages: Iterable[AnyMessage]) -> list[tuple[Message, AnyMessage]]:
    return [(record, message) for message in messages if (record := _record(message)) is not None]


def _record(message: AnyMessage) -> Message | None:
    if isinstance(message, HumanMessage):
        return Message(role="user", content=_text(message.content))
    if isinstance(message, ToolMessage):
        text = _text(message.content)
        return Message(role="tool", content=text, tool_call_id=message.tool_call_id, tool_name=message.name)
    if isinstance(message, AIMessage):
        return Message(
            role="assistant",
            content=_text([part for part in _parts(message.content) if not _is_thought(part)]),
            tool_calls=(
                *(ToolCall(id=c["id"] or "", name=c["name"], arguments=_json(c["args"])) for c in message.tool_calls),
                *(
                    ToolCall(id=c["id"] or "", name=c["name"] or "", arguments=c["args"] or "")
                    for c in message.invalid_tool_calls
                ),
            ),
            thinking=tuple(_thought(part) for part in _parts(message.content) if _is_thought(part)),
        )
    return None


Part = str | Mapping[str, Any]
_CALLS = ("tool_use", "tool_call", "function_call", "input_json_delta")
_TEXTS = ("text", "output_text", "refusal")
_MEDIA = ("image", "image_url", "audio", "input_audio", "video", "file", "document")


def _parts(content: str | Sequence[Any]) -> list[Part]:
    return [content] if isinstance(content, str) else list(content)


def _is_thought(part: Part) -> bool:
    """Reasoning, and every other block of a provider that is neither text nor media nor a call that stands elsewhere."""
    return not isinstance(part, str) and part.get("type") not in (*_CALLS, *_TEXTS, *_MEDIA)


def _text(content: str | Sequence[Any]) -> str:
    return "".join(_part_text(part) for part in _parts(content))


def _part_text(part: Part) -> str:
    if isinstance(part, str):
        return part
    kind = part.get("type")
    if kind in _CALLS:
        return ""
    return str(part.get("text", part.get("refusal", ""))) if kind in _TEXTS else f"[attachment: {kind}]"


def _thought(part: Part) -> ThinkingPart:
    block = cast(Mapping[str, Any], part)
    text = block.get("thinking") or block.get("reasoning") or ""
    return ThinkingPart(text=str(text), signature=str(block.get("signature") or ""), data=_json(block))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _message(message: Message) -> AnyMessage:
    if message.role == "tool":
        return ToolMessage(message.content, tool_call_id=message.tool_call_id or "", name=message.tool_name)
    if message.role != "assistant":
        return HumanMessage(message.content)
    blocks: list[Any] = [json.loads(part.data) for part in message.thinking if part.data]
    if blocks and message.content:
        blocks.append({"type": "text", "text": message.content})
    parsed = [(call, _object(call.arguments)) for call in message.tool_calls]
    return AIMessage(
        content=blocks or message.content,
        tool_calls=[{"id": c.id, "name": c.name, "args": args} for c, args in parsed if args is not None],
        invalid_tool_calls=[
            {"id": c.id, "name": c.name, "args": c.arguments, "error": None, "type": "invalid_tool_call"}
            for c, args in parsed
            if args is None
        ],
    )


def _object(arguments: str) -> dict[str, Any] | None:
    try:
        made = json.loads(arguments)
    except ValueError:
        return None
    return cast("dict[str, Any]", made) if isinstance(made, dict) else None
