"""pydantic-ai: a capability that stores what is said and sends the view.

.. code-block:: python

    agent = Agent(model, capabilities=[MemoryCapability(memory, "thread-1")])
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from agboss_memory.adapters.extra import missing_extra
from agboss_memory.adapters.originals import Originals
from agboss_memory.memory import Memory, WindowView
from agboss_memory.messages import Message, ToolCall
from agboss_memory.messages import ThinkingPart as Thought

try:
    from pydantic_ai import FunctionToolset, RunContext
    from pydantic_ai.agent import AgentRunResult
    from pydantic_ai.capabilities import AbstractCapability, WrapModelRequestHandler
    from pydantic_ai.messages import (
        CachePoint,
        ModelMessage,
        ModelRequest,
        ModelRequestPart,
        ModelResponse,
        ModelResponsePart,
        RetryFeedbackPart,
        SystemPromptPart,
        TextContent,
        TextPart,
        ThinkingPart,
        ToolCallPart,
        ToolReturnPart,
        UserContent,
        UserPromptPart,
    )
    from pydantic_ai.models import ModelRequestContext
except ImportError as error:
    raise missing_extra("pydantic-ai", error) from error

FETCH = "fetch_tool_result"
Original = ModelRequestPart | ModelResponse


class MemoryCapability(AbstractCapability[Any]):
    """An agent whose history is a thread of a ``Memory``.

    Run the agent without ``message_history``: what this run says is stored, and every model call, also inside the tool
    loop, gets the thread's view. System text is an argument of ``Memory``; ``instructions`` of the agent are sent too,
    but not counted. The tool ``fetch_tool_result`` is offered while a stub is in view.

    Args:
        memory: The memory.
        thread: The thread, or what gives it from the run's context.
    """

    def __init__(self, memory: Memory, thread: str | Callable[[RunContext[Any]], str]) -> None:
        self.memory = memory
        self.thread = thread
        self._stored = 0

    async def for_run(self, ctx: RunContext[Any]) -> MemoryCapability:
        """One object per run: it counts what of the run is stored."""
        return MemoryCapability(self.memory, self.thread)

    def get_toolset(self) -> FunctionToolset[Any]:
        """The tool that reads what a stub stands for."""

        async def fetch_tool_result(ctx: RunContext[Any], id: str) -> str:
            """Read the full text of a tool result.

            Args:
                ctx: The run.
                id: The message id that its stub names.
            """
            return await self.memory.fetch_tool_result(self._thread(ctx), id)

        return FunctionToolset([fetch_tool_result])

    async def wrap_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, handler: WrapModelRequestHandler
    ) -> ModelResponse:
        """Store what is new, send the view, store the answer."""
        thread = self._thread(ctx)
        own = [message for message in request_context.messages if message.run_id in (None, ctx.run_id)]
        await self._remember(thread, own)
        view = await self.memory.view(thread)
        parameters = request_context.model_request_parameters
        tools = [tool for tool in parameters.function_tools if view.offers_fetch or tool.name != FETCH]
        request_context.messages = sent(view, own)
        request_context.model_request_parameters = dataclasses.replace(parameters, function_tools=tools)
        response = await handler(request_context)
        await self._remember(thread, [*own, response])
        return response

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Store the end of the run, and let the memory do what is due."""
        thread = self._thread(ctx)
        await self._remember(thread, result.new_messages())
        await self.memory.after_turn(thread)
        return result

    async def _remember(self, thread: str, own: Sequence[ModelMessage]) -> None:
        fresh, self._stored = own[self._stored :], len(own)
        await self.memory.remember(thread, [message for message, _ in records(fresh)])

    def _thread(self, ctx: RunContext[Any]) -> str:
        return self.thread if isinstance(self.thread, str) else self.thread(ctx)


def records(messages: Iterable[ModelMessage]) -> list[tuple[Message, Original]]:
    """What pydantic-ai's messages say, as records, each with the object that says it. System text is left out."""
    made: list[tuple[Message, Original]] = []
    for message in messages:
        if isinstance(message, ModelResponse):
            made.append((_answer(message), message))
        else:
            made += ((record, part) for part in message.parts if (record := _request_record(part)) is not None)
    return made


def sent(view: WindowView, own: Iterable[ModelMessage] = ()) -> list[ModelMessage]:
    """The messages to send for a view.

    Args:
        view: The view.
        own: Messages of which the model gets the objects themselves where the view shows them as they were said.
    """
    made: list[ModelMessage] = []
    parts: list[ModelRequestPart] = [SystemPromptPart(view.system)] if view.system else []
    for message, original in zip(view.messages, Originals(records(own)).of(view.messages), strict=True):
        if message.role == "assistant":
            if parts:
                made.append(ModelRequest(parts))
            parts = []
            made.append(original if isinstance(original, ModelResponse) else ModelResponse(_response_parts(message)))
        elif original is not None and not isinstance(original, ModelResponse):
            parts.append(original)
        elif message.role == "tool":
            parts.append(ToolReturnPart(message.tool_name or "", message.content, message.tool_call_id or ""))
        else:
            parts.append(UserPromptPart(message.content))
    return [*made, ModelRequest(parts)] if parts else made


def _answer(response: ModelResponse) -> Message:
    texts = [part.content for part in response.parts if isinstance(part, TextPart)]
    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    return Message(
        role="assistant",
        content="".join(texts),
        tool_calls=tuple(ToolCall(id=c.tool_call_id, name=c.tool_name, arguments=_arguments(c)) for c in calls),
        thinking=tuple(_thought(part) for part in response.parts if isinstance(part, ThinkingPart)),
    )


def _arguments(call: ToolCallPart) -> str:
    return call.args if isinstance(call.args, str) else json.dumps(call.args or {}, ensure_ascii=False)


def _thought(part: ThinkingPart) -> Thought:
    more = {"id": part.id, "provider_details": part.provider_details}
    known = {name: value for name, value in more.items() if value is not None}
    return Thought(
        text=part.content,
        signature=part.signature or "",
        provider=part.provider_name or "",
        data=json.dumps(known) if known else "",
    )


def _request_record(part: ModelRequestPart) -> Message | None:
    if isinstance(part, UserPromptPart):
        return Message(role="user", content=_prompt_text(part))
    if isinstance(part, ToolReturnPart):
        return Message(
            role="tool",
            content=part.model_response_str(),
            tool_call_id=part.tool_call_id,
            tool_name=part.tool_name,
        )
    if isinstance(part, RetryFeedbackPart):
        text = part.content if isinstance(part.content, str) else json.dumps(part.content, default=str)
        return Message(role="user", content=text)
    return None


def _prompt_text(part: UserPromptPart) -> str:
    if isinstance(part.content, str):
        return part.content
    return "\n".join(_content_text(item) for item in part.content if not isinstance(item, CachePoint))


def _content_text(item: UserContent) -> str:
    if isinstance(item, str):
        return item
    return item.content if isinstance(item, TextContent) else f"[attachment: {_kind(item)}]"


def _kind(item: Any) -> str:
    return str(getattr(item, "media_type", None) or getattr(item, "kind", "file"))


def _response_parts(message: Message) -> list[ModelResponsePart]:
    parts: list[ModelResponsePart] = [_thinking_part(part) for part in message.thinking]
    if message.content:
        parts.append(TextPart(message.content))
    parts += (ToolCallPart(call.name, call.arguments, call.id) for call in message.tool_calls)
    return parts


def _thinking_part(part: Thought) -> ThinkingPart:
    more: dict[str, Any] = json.loads(part.data) if part.data else {}
    return ThinkingPart(
        part.text,
        id=more.get("id"),
        signature=part.signature or None,
        provider_name=part.provider or None,
        provider_details=more.get("provider_details"),
    )
