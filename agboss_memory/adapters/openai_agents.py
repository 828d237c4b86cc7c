"""openai-agents: a session that stores every item and gives the view.

.. code-block:: python

    session = MemorySession(memory, "thread-1")
    await Runner.run(agent, "Hello", session=session, run_config=session.run_config())
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from agboss_memory.adapters.extra import missing_extra
from agboss_memory.errors import InvalidInputError, UnknownThreadError
from agboss_memory.memory import Memory, WindowView
from agboss_memory.messages import Message, ThinkingPart, ToolCall

try:
    from agents import FunctionTool, RunConfig, SessionSettings, TResponseInputItem, function_tool
    from agents.memory.session import SessionABC
    from agents.run import CallModelData, ModelInputData
except ImportError as error:
    raise missing_extra("openai-agents", error) from error

PROVIDER = "openai"
IDS = "agboss.item-ids"
"""Type of the opaque part that keeps the provider's ids of an answer and its calls."""

_KEPT_WHOLE = "agboss.item"


class MemorySession(SessionABC):
    """A session whose items are a thread of a ``Memory``.

    Args:
        memory: The memory. System text is the agent's ``instructions``; give it to ``Memory`` too, so that it counts.
        thread: The thread.
    """

    session_settings: SessionSettings | None = None

    def __init__(self, memory: Memory, thread: str) -> None:
        self.memory = memory
        self.session_id = thread

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The view as items; of a ``limit``, the newest from a user's message on."""
        found = items(await self.memory.view(self.session_id))
        if limit is None or len(found) <= limit:
            return found
        newest = found[-limit:] if limit > 0 else []
        first = next((place for place, item in enumerate(newest) if item.get("role") == "user"), len(newest))
        return newest[first:]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Store everything; an answer ends the turn, and the memory does what is due."""
        said = records(items)
        await self.memory.remember(self.session_id, said)
        if said and said[-1].role == "assistant" and not said[-1].tool_calls:
            await self.memory.after_turn(self.session_id)

    async def pop_item(self) -> TResponseInputItem | None:
        """Refused. Raises InvalidInputError: what was said is never taken back."""
        raise InvalidInputError(
            "memory.append-only",
            f"thread {self.session_id!r}: an item cannot be taken back; the log only grows",
            "begin a new thread, or clear the session",
        )

    async def clear_session(self) -> None:
        """Delete the thread."""
        try:
            await self.memory.forget(self.session_id)
        except UnknownThreadError:
            return

    async def filter(self, data: CallModelData[Any]) -> ModelInputData:
        """What every model call gets: the view at that moment, also inside the tool loop."""
        view = await self.memory.view(self.session_id)
        own = data.model_data.instructions or ""
        system = view.system if view.system.startswith(own) else "\n\n".join((own, view.system))
        return ModelInputData(input=items(view), instructions=system or None)

    def run_config(self, **settings: Any) -> RunConfig:
        """A ``RunConfig`` with ``filter``.

        Args:
            **settings: Its other fields.
        """
        return RunConfig(call_model_input_filter=self.filter, **settings)

    def fetch_tool(self) -> FunctionTool:
        """The tool ``fetch_tool_result``, for the agent's ``tools``: it reads what a stub stands for."""

        async def fetch_tool_result(id: str) -> str:
            """Read the full text of a tool result.

            Args:
                id: The message id that its stub names.
            """
            return await self.memory.fetch_tool_result(self.session_id, id)

        return function_tool(fetch_tool_result)


def records(given: Iterable[TResponseInputItem]) -> list[Message]:
    """What items say, as records: reasoning, text and calls of one answer become one message. System text is left out."""
    made: list[Message] = []
    answer: list[Mapping[str, Any]] = []
    for each in given:
        item = cast(Mapping[str, Any], each)
        if item.get("type") != "function_call_output" and item.get("role", "assistant") == "assistant":
            answer.append(item)
            continue
        made += _answers(answer)
        answer = []
        if item.get("type") == "function_call_output":
            text = _text(item.get("output"))
            name = next((c.name for m in reversed(made) for c in m.tool_calls if c.id == item["call_id"]), None)
            made.append(Message(role="tool", content=text, tool_call_id=str(item["call_id"]), tool_name=name))
        elif item.get("role") == "user":
            made.append(Message(role="user", content=_text(item.get("content"))))
    return made + _answers(answer)


def items(view: WindowView) -> list[TResponseInputItem]:
    """The input items of a view."""
    made: list[dict[str, Any]] = []
    for message in view.messages:
        if message.role == "user":
            made.append({"role": "user", "content": message.content})
        elif message.role == "tool":
            made.append(
                {"type": "function_call_output", "call_id": message.tool_call_id or "", "output": message.content}
            )
        else:
            made += _answer_items(message)
    return cast(list[TResponseInputItem], made)


def _answers(answer: Sequence[Mapping[str, Any]]) -> list[Message]:
    if not answer:
        return []
    texts = [item for item in answer if item.get("role") == "assistant"]
    calls = [item for item in answer if item.get("type") == "function_call"]
    others = [item for item in answer if item not in texts and item not in calls]
    said, called = texts[0].get("id") if texts else None, [call.get("id") for call in calls]
    thinking = [_thought(item) for item in others]
    if said or any(called):
        ids = {"type": IDS, "message": said, "calls": called}
        thinking.append(ThinkingPart(provider=PROVIDER, data=json.dumps(ids)))
    return [
        Message(
            role="assistant",
            content="".join(_text(item.get("content")) for item in texts),
            tool_calls=tuple(
                ToolCall(id=str(c["call_id"]), name=str(c["name"]), arguments=str(c["arguments"])) for c in calls
            ),
            thinking=tuple(thinking),
        )
    ]


def _thought(item: Mapping[str, Any]) -> ThinkingPart:
    return ThinkingPart(provider=PROVIDER, data=json.dumps({"type": _KEPT_WHOLE, "item": item}, ensure_ascii=False))


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else json.dumps(content, ensure_ascii=False)
    return "\n".join(_part_text(part) for part in cast(list[Mapping[str, Any]], content))


def _part_text(part: Mapping[str, Any]) -> str:
    text = part.get("text", part.get("refusal"))
    return str(text) if text is not None else f"[attachment: {part.get('filename') or part.get('type')}]"


def _answer_items(message: Message) -> list[dict[str, Any]]:
    data: list[dict[str, Any]] = [
        json.loads(part.data) for part in message.thinking if part.provider == PROVIDER and part.data
    ]
    ids: dict[str, Any] = next((kept for kept in data if kept.get("type") == IDS), dict[str, Any]())
    made: list[dict[str, Any]] = [kept["item"] for kept in data if kept.get("type") == _KEPT_WHOLE]
    if message.content:
        made.append(_said(message, ids.get("message")))
    calls: list[str | None] = ids.get("calls") or []
    known = dict(enumerate(calls))
    for place, call in enumerate(message.tool_calls):
        item = {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
        made.append({**item, "id": known[place]} if known.get(place) else item)
    return made


def _said(message: Message, id: str | None) -> dict[str, Any]:
    if id is None or message.state != "live":
        return {"role": "assistant", "content": message.content}
    text: dict[str, Any] = {"type": "output_text", "text": message.content, "annotations": []}
    return {"type": "message", "id": id, "role": "assistant", "status": "completed", "content": [text]}
