"""Our request as a chat-completions body of llama.cpp, and its stream of chunks as our reply."""

from __future__ import annotations

from typing import Any

from agboss.models.chat import ModelReply, ModelRequest, ModelUsage
from agboss.models.wire_text import clean
from agboss_memory.messages import Message, ToolCall


def chat_request(request: ModelRequest) -> dict[str, Any]:
    """The body of a streamed chat completion."""
    messages = [{"role": "system", "content": clean(request.system)}] if request.system else []
    body: dict[str, Any] = {
        "messages": [*messages, *(_message(message) for message in request.messages)],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    settings = request.settings
    if settings.temperature is not None:
        body["temperature"] = settings.temperature
    if settings.max_tokens is not None:
        body["max_tokens"] = settings.max_tokens
    if settings.thinking is not None:
        body["chat_template_kwargs"] = {"enable_thinking": settings.thinking != "none"}
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": clean(tool.description), "parameters": tool.parameters},
            }
            for tool in request.tools
        ]
    if request.output_schema is not None:
        schema = {"name": request.output_name or "answer", "schema": request.output_schema}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return body


class ChatStream:
    """Collects the chunks of one answer.

    Attributes:
        error: What the server said went wrong, None while all is well.
        error_type: The server's type of that error.
        raised: What the listener of the text raised, None while all is well.
    """

    def __init__(self) -> None:
        self.error: str | None = None
        self.error_type = ""
        self.raised: Exception | None = None
        self._pieces: list[str] = []
        self._calls: dict[int, dict[str, str]] = {}
        self._usage: dict[str, Any] = {}
        self._finish = ""

    def take(self, chunk: dict[str, Any]) -> str:
        """Take one chunk; gives the piece of text in it, often empty."""
        if error := chunk.get("error"):
            self.error, self.error_type = str(error.get("message", error)), str(error.get("type", ""))
            return ""
        self._usage = chunk.get("usage") or self._usage
        piece = ""
        for choice in chunk.get("choices", ()):
            self._finish = choice.get("finish_reason") or self._finish
            delta = choice.get("delta", {})
            piece += delta.get("content") or ""
            for call in delta.get("tool_calls") or ():
                self._take_call(call)
        if piece:
            self._pieces.append(piece)
        return piece

    def reply(self) -> ModelReply:
        """The whole answer."""
        details: dict[str, int] = self._usage.get("prompt_tokens_details") or {}
        return ModelReply(
            text="".join(self._pieces),
            tool_calls=tuple(
                ToolCall(id=call["id"] or f"call-{at}", name=call["name"], arguments=call["arguments"] or "{}")
                for at, call in sorted(self._calls.items())
            ),
            usage=ModelUsage(
                input_tokens=self._usage.get("prompt_tokens", 0),
                output_tokens=self._usage.get("completion_tokens", 0),
                cache_read_tokens=details.get("cached_tokens", 0),
                free=True,
            ),
            finish_reason=self._finish,
        )

    def _take_call(self, delta: dict[str, Any]) -> None:
        call = self._calls.setdefault(delta.get("index", 0), {"id": "", "name": "", "arguments": ""})
        function = delta.get("function", {})
        call["id"] = delta.get("id") or call["id"]
        call["name"] += function.get("name") or ""
        call["arguments"] += function.get("arguments") or ""


def _message(message: Message) -> dict[str, Any]:
    said: dict[str, Any] = {"role": message.role, "content": clean(message.content)}
    if message.role == "tool":
        said |= {"tool_call_id": message.tool_call_id, "name": message.tool_name}
    if message.tool_calls:
        said["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": clean(call.name), "arguments": clean(call.arguments)},
            }
            for call in message.tool_calls
        ]
    return said
