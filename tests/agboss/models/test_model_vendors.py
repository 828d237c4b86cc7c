"""Anthropic and Google behind the border: what they want back, what they report, what is refused. Scripted transports."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from agboss.components.model_spec import ModelSpec
from agboss.errors import ModelError
from agboss.models import CallSettings, ModelReply, ModelRequest, ModelUsage, RetryPolicy, ToolSchema
from agboss.models.provider import open_provider_model
from agboss.models.provider.model import ProviderModel
from agboss_memory.messages import Message

LOOK = ToolSchema(
    name="look", description="Looks.", parameters={"type": "object", "properties": {"a": {"type": "integer"}}}
)
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
ASK = ModelRequest(
    caller="helper",
    model="m",
    system="Be brief.",
    messages=(Message(role="user", content="Hi"),),
    tools=(LOOK,),
    settings=CallSettings(max_tokens=5000, thinking="low", temperature=0),
)
FAST = RetryPolicy(wait=0.0, longest_wait=0.01, timeout=60.0)

ANTHROPIC: dict[str, Any] = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-6",
    "content": [
        {"type": "thinking", "thinking": "Hm", "signature": "SIG"},
        {"type": "text", "text": "So"},
        {"type": "tool_use", "id": "t1", "name": "look", "input": {"a": 1}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 8, "cache_read_input_tokens": 12, "cache_creation_input_tokens": 3, "output_tokens": 5},
}
GOOGLE: dict[str, Any] = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [
                    {"text": "Hm", "thought": True},
                    {"functionCall": {"name": "look", "args": {"a": 1}}, "thoughtSignature": "U0lH"},
                ],
            },
            "finishReason": "STOP",
        }
    ],
    "usageMetadata": {
        "promptTokenCount": 20,
        "candidatesTokenCount": 5,
        "cachedContentTokenCount": 12,
        "totalTokenCount": 25,
    },
    "modelVersion": "gemini-2.5-flash",
    "responseId": "r",
}

pytestmark = pytest.mark.agboss_models


class Vendor:
    """Answers every request with one status and body."""

    def __init__(self, body: dict[str, Any], status: int = 200) -> None:
        self.body, self.status = body, status
        self.sent: list[dict[str, Any]] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.sent.append(json.loads(request.content))
        return httpx2.Response(self.status, json=self.body)

    def model(self, name: str) -> ProviderModel:
        client = httpx2.AsyncClient(transport=httpx2.MockTransport(self), timeout=60)
        return open_provider_model(ModelSpec(name), retry=FAST, http_client=client, key="secret")


def followed_by(reply: ModelReply, **more: Any) -> ModelRequest:
    (call,) = reply.tool_calls
    said = Message(role="assistant", content=reply.text, tool_calls=reply.tool_calls, thinking=reply.thinking)
    seen = Message(role="tool", content="42", tool_call_id=call.id, tool_name="look")
    return replace(ASK, messages=(*ASK.messages, said, seen), **more)


async def test_anthropic() -> None:
    pytest.importorskip("anthropic")
    vendor = Vendor(ANTHROPIC)
    model = vendor.model("anthropic:claude-sonnet-4-6")
    reply = await model.generate(ASK)
    assert reply.usage == ModelUsage(input_tokens=23, output_tokens=5, cache_read_tokens=12, cache_write_tokens=3)
    assert "temperature" not in vendor.sent[0], "a model that thinks refuses it"
    await model.generate(followed_by(reply, output_schema=SCHEMA))
    back = vendor.sent[1]["messages"]
    assert back[1]["content"][0] == {"type": "thinking", "thinking": "Hm", "signature": "SIG"}
    assert back[2]["content"][0]["tool_use_id"] == "t1"
    assert vendor.sent[1]["output_config"]["format"]["schema"]["properties"] == SCHEMA["properties"]
    await model.aclose()


async def test_google() -> None:
    pytest.importorskip("google.genai")
    vendor = Vendor(GOOGLE)
    model = vendor.model("google:gemini-2.5-flash")
    reply = await model.generate(ASK)
    assert (reply.usage.input_tokens, reply.usage.cache_read_tokens) == (20, 12)
    assert reply.thinking[0].text == "Hm"
    await model.generate(followed_by(reply, output_schema=SCHEMA))
    (call,) = [part for part in vendor.sent[1]["contents"][1]["parts"] if "functionCall" in part]
    assert call["thoughtSignature"] == "U0lH"
    prompt = vendor.sent[1]["systemInstruction"]["parts"][0]["text"]
    assert "JSON Schema" in prompt, "this model takes a schema or tools, not both"
    await model.aclose()


@pytest.mark.parametrize(
    ("library", "name"), [("anthropic", "anthropic:claude-sonnet-4-6"), ("google.genai", "google:gemini-2.5-flash")]
)
@pytest.mark.parametrize(
    ("status", "code", "calls"), [(401, "model.refused", 1), (400, "model.http", 1), (529, "model.http", 3)]
)
async def test_errors(library: str, name: str, status: int, code: str, calls: int) -> None:
    pytest.importorskip(library)
    vendor = Vendor({"error": {"message": "the key secret is odd"}}, status)
    model = vendor.model(name)
    with pytest.raises(ModelError) as caught:
        await model.generate(ASK)
    assert caught.value.code == code
    assert "secret" not in str(caught.value)
    assert len(vendor.sent) == calls
    await model.aclose()
