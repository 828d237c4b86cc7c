"""Our messages as pydantic-ai's, and back. Lone surrogates end here: no provider takes them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from pydantic_ai import messages as wire
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from agboss.components.model_spec import Thinking
from agboss.models.chat import CallSettings, ModelReply, ModelRequest, ModelUsage, ToolSchema
from agboss.models.provider.media import to_content
from agboss.models.wire_text import clean
from agboss_memory.messages import Message, ThinkingPart, ToolCall

_FENCED = re.compile(r"\A\s*```(?:json)?\s*\n(.*)\n\s*```\s*\Z", re.DOTALL)


def to_wire(request: ModelRequest, provider: str, *, native_schema: bool) -> list[wire.ModelMessage]:
    """The conversation as the library wants it.

    Args:
        request: The request.
        provider: Name under which this provider's thinking blocks are kept; those of others are dropped.
        native_schema: Whether the provider enforces an output schema itself; else it is put into the system prompt.
    """
    system = request.system
    if request.output_schema is not None and not native_schema:
        schema = json.dumps(request.output_schema, ensure_ascii=False)
        asked = f"Answer with one JSON value that satisfies this JSON Schema, and with nothing else:\n{schema}"
        system = f"{system}\n\n{asked}" if system else asked
    parts: list[wire.ModelRequestPart] = [wire.SystemPromptPart(content=clean(system))] if system else []
    built: list[wire.ModelMessage] = []
    for message in request.messages:
        if message.role == "assistant":
            if parts:
                built.append(wire.ModelRequest(parts=parts))
                parts = []
            built.append(_response(message, provider))
        else:
            parts.append(_request_part(message))
    if parts:
        built.append(wire.ModelRequest(parts=parts))
    return built


def to_parameters(request: ModelRequest, *, native_schema: bool) -> ModelRequestParameters:
    """Tools and output schema of a request."""
    tools = [_tool(schema) for schema in request.tools]
    if request.output_schema is None or not native_schema:
        return ModelRequestParameters(function_tools=tools)
    output = OutputObjectDefinition(
        json_schema=_clean_json(request.output_schema), name=request.output_name or "answer"
    )
    return ModelRequestParameters(function_tools=tools, output_mode="native", output_object=output)


def to_settings(settings: CallSettings, timeout: float, profile: Mapping[str, Any]) -> ModelSettings:
    """Settings of a call. The library's own retries are off: they happen in one place only."""
    built = ModelSettings(max_retries=0, timeout=timeout)
    if settings.temperature is not None and takes_temperature(profile, settings.thinking):
        built["temperature"] = settings.temperature
    if settings.max_tokens is not None:
        built["max_tokens"] = settings.max_tokens
    if settings.thinking is not None:
        built["thinking"] = False if settings.thinking == "none" else settings.thinking
    return built


def takes_temperature(profile: Mapping[str, Any], thinking: Thinking | None) -> bool:
    """Whether a model takes a temperature: one that reasons refuses it. The library warns at every such call."""
    if any(name.startswith("anthropic_") for name in profile):
        return thinking in {None, "none"} and not profile.get("anthropic_disallows_sampling_settings")
    if not profile.get("openai_supports_reasoning"):
        return True
    efforts = profile.get("openai_reasoning_efforts")
    can_rest = profile.get("openai_supports_reasoning_effort_none") if efforts is None else "none" in efforts
    if thinking is None:
        rests = not profile.get("thinking_enabled_by_default")
    else:
        rests = thinking == "none" and not profile.get("thinking_always_enabled")
    return bool(can_rest) and rests


def from_wire(response: wire.ModelResponse, provider: str, *, as_json: bool) -> ModelReply:
    """A reply from the library's response.

    Args:
        response: The response.
        provider: Name under which its thinking blocks are kept.
        as_json: An output schema was asked for: a code fence around the whole answer is taken off.
    """
    text = "".join(part.content for part in response.parts if isinstance(part, wire.TextPart))
    fenced = _FENCED.match(text) if as_json else None
    return ModelReply(
        text=fenced[1] if fenced else text,
        tool_calls=tuple(_call(part) for part in response.parts if isinstance(part, wire.ToolCallPart)),
        thinking=tuple(_thinking(response.parts, provider)),
        usage=_usage(response),
        finish_reason=response.finish_reason or "",
    )


def _request_part(message: Message) -> wire.ModelRequestPart:
    text = clean(message.content)
    if message.role == "tool":
        name, call = clean(message.tool_name or ""), clean(message.tool_call_id or "")
        return wire.ToolReturnPart(tool_name=name, content=text, tool_call_id=call)
    if message.role == "system":
        return wire.SystemPromptPart(content=text)
    if message.media:
        return wire.UserPromptPart(content=[text, *map(to_content, message.media)])
    return wire.UserPromptPart(content=text)


def _response(message: Message, provider: str) -> wire.ModelResponse:
    own = [part for part in message.thinking if part.provider == provider]
    kept = [(part, _opaque(part)) for part in own]
    parts: list[wire.ModelResponsePart] = [
        wire.ThinkingPart(
            content=part.text,
            signature=part.signature or None,
            id=opaque.get("id"),
            provider_name=provider,
            provider_details=opaque.get("details"),
        )
        for part, opaque in kept
        if "of" not in opaque
    ]
    marks = {opaque["of"]: opaque for _, opaque in kept if "of" in opaque}
    if message.content or not (parts or message.tool_calls):
        parts.append(wire.TextPart(content=clean(message.content), **_mark(marks.get("text"), provider)))
    parts.extend(
        wire.ToolCallPart(
            tool_name=clean(call.name),
            args=clean(call.arguments),
            tool_call_id=clean(call.id),
            **_mark(marks.get(f"call {call.id}"), provider),
        )
        for call in message.tool_calls
    )
    return wire.ModelResponse(parts=parts, provider_name=provider)


def _mark(opaque: dict[str, Any] | None, provider: str) -> dict[str, Any]:
    if opaque is None:
        return {}
    return {"id": opaque.get("id"), "provider_name": provider, "provider_details": opaque.get("details")}


def _opaque(part: ThinkingPart) -> dict[str, Any]:
    return json.loads(part.data) if part.data else {}


def _thinking(parts: Sequence[wire.ModelResponsePart], provider: str) -> Iterable[ThinkingPart]:
    """Thinking blocks, and what a provider wants back with the text and the calls (signatures, item ids)."""
    for part in parts:
        if isinstance(part, wire.ThinkingPart):
            data = _data(part)
            yield ThinkingPart(text=part.content, signature=part.signature or "", provider=provider, data=data)
        elif isinstance(part, wire.ToolCallPart) and (part.id or part.provider_details):
            yield ThinkingPart(provider=provider, data=_data(part, of=f"call {part.tool_call_id}"))
        elif isinstance(part, wire.TextPart) and (part.id or part.provider_details):
            yield ThinkingPart(provider=provider, data=_data(part, of="text"))


def _data(part: wire.ThinkingPart | wire.ToolCallPart | wire.TextPart, of: str = "") -> str:
    fields = {"of": of, "id": part.id, "details": part.provider_details}
    held = {name: value for name, value in fields.items() if value}
    return json.dumps(held, ensure_ascii=True, default=str) if held else ""


def _call(part: wire.ToolCallPart) -> ToolCall:
    arguments = part.args if isinstance(part.args, str) else json.dumps(part.args or {}, ensure_ascii=False)
    return ToolCall(id=part.tool_call_id, name=part.tool_name, arguments=arguments or "{}")


def _tool(schema: ToolSchema) -> ToolDefinition:
    return ToolDefinition(
        name=schema.name, description=clean(schema.description), parameters_json_schema=_clean_json(schema.parameters)
    )


def _clean_json(schema: dict[str, Any]) -> dict[str, Any]:
    return json.loads(clean(json.dumps(schema, ensure_ascii=False)))


def _usage(response: wire.ModelResponse) -> ModelUsage:
    used, details = response.usage, response.provider_details or {}
    cost = details.get("cost")
    return ModelUsage(
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cache_read_tokens=used.cache_read_tokens,
        cache_write_tokens=used.cache_write_tokens,
        usd=None if cost is None else Decimal(str(cost)),
    )
