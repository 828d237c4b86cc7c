"""The seam to chat models: one protocol, one request, one reply. Everything that talks to a model sits behind it."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Protocol

from agboss.components.model_spec import Thinking
from agboss_memory.messages import Message, ThinkingPart, ToolCall, UsagePurpose
from agboss_memory.notices import part_line
from agboss_memory.records import Record


class ToolSchema(Record, kw_only=True):
    """A tool as a model sees it.

    Attributes:
        name: Unique within the request.
        description: One or more sentences for the model.
        parameters: JSON Schema of the arguments object.
    """

    name: str
    description: str
    parameters: dict[str, Any]


class CallSettings(Record, kw_only=True):
    """How one call is made; None = the provider's default."""

    temperature: float | None = None
    max_tokens: int | None = None
    thinking: Thinking | None = None


class ModelRequest(Record, kw_only=True):
    """One call of a chat model.

    Attributes:
        caller: Name of the component that asks.
        model: Model id as configured.
        system: The system prompt; empty = none.
        messages: The view: user, assistant and tool messages, valid for any provider (calls and results paired).
            Files are in ``media`` of their message, behind its text.
        tools: Tools on offer.
        settings: Temperature, length, thinking.
        output_schema: JSON Schema that the answer's text must satisfy, or None for free text.
        output_name: Name of that schema.
        purpose: Why the call is made.
        on_text: Receives pieces of the answer's text as they arrive; None = nobody listens.
    """

    caller: str
    model: str
    system: str = ""
    messages: tuple[Message, ...] = ()
    tools: tuple[ToolSchema, ...] = ()
    settings: CallSettings = CallSettings()
    output_schema: dict[str, Any] | None = None
    output_name: str = ""
    purpose: UsagePurpose = "answer"
    on_text: Callable[[str], None] | None = None

    @property
    def text(self) -> str:
        """Everything that the model would read, as one string; a file as a line with its name, type and size."""
        parts = [self.system]
        for message in self.messages:
            parts.append(message.content)
            parts.extend(f"{call.name}({call.arguments})" for call in message.tool_calls)
            parts.extend(part_line(part) for part in message.media)
        return "\n".join(part for part in parts if part)


class ModelUsage(Record, kw_only=True):
    """What a call used, as reported by the provider.

    Attributes:
        input_tokens: Tokens read, cached ones included.
        output_tokens: Tokens written.
        cache_read_tokens: Part of the input read from a cache.
        cache_write_tokens: Part of the input written to a cache.
        usd: Cost as reported by the provider, None when it reports none.
        free: The call costs nothing by nature (a local model).
        measured: The model itself counted the tokens; estimates are calibrated by it.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    usd: Decimal | None = None
    free: bool = False
    measured: bool = True


LENGTH = "length"
"""The ``finish_reason`` of an answer that was cut off at the longest one allowed."""


class ModelReply(Record, kw_only=True):
    """What a model answered.

    Attributes:
        text: The answer's text; may be empty when there are calls.
        tool_calls: Calls in the model's order.
        thinking: Reasoning blocks, to be passed back unchanged.
        usage: What it used.
        finish_reason: Why the model stopped: ``length`` for an answer that was cut off, else the provider's word.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    thinking: tuple[ThinkingPart, ...] = ()
    usage: ModelUsage = ModelUsage()
    finish_reason: str = ""


class ChatModel(Protocol):
    """A chat model. Raises ``ModelError`` kinds; must let cancellation through."""

    async def generate(self, request: ModelRequest) -> ModelReply:
        """Answer one request. Retries of transport errors happen inside."""
        ...
