"""Provider models against a fake server on the loopback and against scripted transports."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import httpx2
import pytest
from fake_openai import FakeOpenAI, Reply

from agboss.components.model_spec import ModelSpec
from agboss.errors import MissingExtraError, ModelError
from agboss.models import CallSettings, ModelCatalog, ModelRequest, ToolSchema
from agboss.models.provider import RetryPolicy, open_provider_model
from agboss.models.provider.model import ProviderModel
from agboss.models.wire_text import clean
from agboss_memory.messages import MediaPart, Message, ThinkingPart, ToolCall

FAST = RetryPolicy(attempts=3, wait=0.0, longest_wait=0.01, timeout=10.0)
LOOK = ToolSchema(
    name="look",
    description="Looks.",
    parameters={"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
)
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}

pytestmark = pytest.mark.agboss_models


def asking(*messages: Message, **more: Any) -> ModelRequest:
    said = messages or (Message(role="user", content="Hi"),)
    return ModelRequest(caller="helper", model="m", messages=said, **more)


@pytest.fixture
async def model(fake: FakeOpenAI, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ProviderModel]:
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", "secret-key")
    opened = open_provider_model(ModelSpec("openai-compatible:tiny", base_url=fake.base_url), retry=FAST)
    yield opened
    await opened.aclose()
    await opened.aclose()


async def test_a_plain_answer(fake: FakeOpenAI, model: ProviderModel) -> None:
    fake.script("Hello.")
    reply = await model.generate(asking(system="Be brief.", settings=CallSettings(temperature=0.0, max_tokens=9)))
    assert (reply.text, reply.finish_reason, reply.tool_calls) == ("Hello.", "stop", ())
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cache_read_tokens) == (20, 5, 12)
    assert reply.usage.usd is None
    (sent,) = fake.requests
    assert sent["model"] == "tiny"
    assert sent["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    assert (sent["temperature"], sent["max_completion_tokens"]) == (0.0, 9)
    assert fake.headers[0]["authorization"] == "Bearer secret-key"


async def test_streaming_gives_the_same_reply_in_pieces(fake: FakeOpenAI, model: ProviderModel) -> None:
    fake.script(Reply(text="Hello there.", reasoning="Hm.", calls=(("c1", "look", '{"a":1}'),)))
    pieces: list[str] = []
    whole = await model.generate(asking(tools=(LOOK,)))
    streamed = await model.generate(asking(tools=(LOOK,), on_text=pieces.append))
    assert streamed == whole
    assert len(pieces) > 1
    assert "".join(pieces) == "Hello there."
    assert whole.tool_calls == (ToolCall(id="c1", name="look", arguments='{"a":1}'),)


async def test_calls_results_and_thinking_go_back_as_they_came(fake: FakeOpenAI, model: ProviderModel) -> None:
    fake.script(Reply(text="So", reasoning="Hm. é", calls=(("c1", "look", '{"a":1}'),)), "Done.")
    first = await model.generate(asking(tools=(LOOK,)))
    (thought,) = first.thinking
    said = Message(role="assistant", content=first.text, tool_calls=first.tool_calls, thinking=first.thinking)
    seen = Message(role="tool", content="42", tool_call_id="c1", tool_name="look")
    await model.generate(asking(Message(role="user", content="Hi"), said, seen, tools=(LOOK,)))
    back = fake.requests[1]["messages"]
    assert back[1]["reasoning_content"] == thought.text == "Hm. é"
    assert back[1]["tool_calls"][0] == {
        "id": "c1",
        "type": "function",
        "function": {"name": "look", "arguments": '{"a":1}'},
    }
    assert back[2] == {"role": "tool", "tool_call_id": "c1", "content": "42"}

    foreign = replace(said, thinking=(replace(thought, provider="anthropic", signature="s"),))
    await model.generate(asking(Message(role="user", content="Hi"), foreign, seen, tools=(LOOK,)))
    assert "Hm." not in json.dumps(fake.requests[2])


async def test_an_output_schema_is_enforced_by_the_server(fake: FakeOpenAI, model: ProviderModel) -> None:
    fake.script('```json\n{"a": 1}\n```')
    reply = await model.generate(asking(output_schema=SCHEMA, output_name="number"))
    assert json.loads(reply.text) == {"a": 1}
    wanted = fake.requests[0]["response_format"]["json_schema"]
    assert wanted["name"] == "number"
    assert wanted["schema"]["properties"] == SCHEMA["properties"]


async def test_without_native_schemas_the_prompt_asks(fake: FakeOpenAI) -> None:
    fake.script('{"a": 1}')
    model = open_provider_model(ModelSpec("ollama:some-cloud", base_url=fake.base_url), retry=FAST)
    await model.generate(asking(system="Be brief.", output_schema=SCHEMA))
    await model.aclose()
    (sent,) = fake.requests
    assert "response_format" not in sent
    assert sent["messages"][0]["content"].startswith("Be brief.\n\nAnswer with one JSON value")


async def test_lone_surrogates_stop_at_the_border(fake: FakeOpenAI, model: ProviderModel) -> None:
    fake.script("ok")
    bad = "\ud800x\U0001f600\ud83d\ude00"
    said = Message(
        role="assistant", content=bad, tool_calls=(ToolCall(id="1", name="look", arguments=f'{{"a":"{bad}"}}'),)
    )
    seen = Message(role="tool", content=bad, tool_call_id="1", tool_name="look")
    user = Message(role="user", content=bad)
    tool = replace(LOOK, description=bad, parameters={"type": "object", "description": bad, "properties": {}})
    assert (await model.generate(asking(user, said, seen, system=bad, tools=(tool,)))).text == "ok"
    assert clean(bad) == "\ufffdx\U0001f600\U0001f600"
    assert "\ufffdx\U0001f600" in fake.requests[0]["messages"][0]["content"]


@pytest.mark.parametrize("status", [408, 429, 500, 503, 529])
async def test_passing_trouble_is_tried_again(fake: FakeOpenAI, model: ProviderModel, status: int) -> None:
    fake.script(Reply(status=status, body={}), Reply(status=status, body={}), "ok")
    assert (await model.generate(asking())).text == "ok"
    assert len(fake.requests) == 3


@pytest.mark.parametrize(
    ("status", "code"), [(400, "model.http"), (401, "model.refused"), (403, "model.refused"), (404, "model.http")]
)
async def test_other_errors_are_not(fake: FakeOpenAI, model: ProviderModel, status: int, code: str) -> None:
    body = {"error": {"message": "bad secret-key " + "x" * 1000, "code": "c"}}
    fake.script(Reply(status=status, body=body))
    with pytest.raises(ModelError) as caught:
        await model.generate(asking())
    assert caught.value.code == code
    assert len(fake.requests) == 1
    text = str(caught.value)
    assert "'openai-compatible:tiny'" in text
    assert str(status) in text
    assert "secret-key" not in text
    assert len(caught.value.message) < 420
    assert caught.value.data["status"] == status


async def test_attempts_are_bounded_and_a_long_retry_after_is_not_waited_for(
    fake: FakeOpenAI, model: ProviderModel
) -> None:
    fake.script(Reply(status=503, body={"error": "down"}))
    with pytest.raises(ModelError) as caught:
        await model.generate(asking())
    assert caught.value.code == "model.http"
    assert len(fake.requests) == 3
    fake.replies[:] = [Reply(status=429, body={}, headers={"retry-after": "3600"})]
    with pytest.raises(ModelError):
        await model.generate(asking())
    assert len(fake.requests) == 4


async def test_a_window_that_overflows_has_its_own_code(fake: FakeOpenAI, model: ProviderModel) -> None:
    body = {"error": {"message": "This model's maximum context length is 8 tokens", "code": "context_length_exceeded"}}
    fake.script(Reply(status=400, body=body))
    with pytest.raises(ModelError) as caught:
        await model.generate(asking())
    assert caught.value.code == "model.context-overflow"
    assert "context_window=" in caught.value.hint


async def test_a_broken_connection_is_tried_again_but_not_after_text(fake: FakeOpenAI, model: ProviderModel) -> None:
    fake.script(Reply(broken=True), "ok")
    assert (await model.generate(asking())).text == "ok"
    pieces: list[str] = []
    fake.replies[:] = [Reply(text="Hello there.", broken=True), Reply(text="ok")]
    with pytest.raises(ModelError) as caught:
        await model.generate(asking(on_text=pieces.append))
    assert caught.value.code == "model.connection"
    assert len(pieces) == 1
    assert len(fake.requests) == 3


async def test_nobody_listens() -> None:
    model = open_provider_model(ModelSpec("openai-compatible:m", base_url="http://127.0.0.1:1/v1"), retry=FAST)
    with pytest.raises(ModelError) as caught:
        await model.generate(asking())
    await model.aclose()
    assert caught.value.code == "model.connection"


async def test_a_slow_answer_times_out(fake: FakeOpenAI) -> None:
    fake.script(Reply(hang=True))
    policy = RetryPolicy(attempts=1, timeout=0.2)
    model = open_provider_model(ModelSpec("openai-compatible:m", base_url=fake.base_url), retry=policy)
    with pytest.raises(ModelError) as caught:
        await model.generate(asking())
    await model.aclose()
    assert caught.value.code == "model.timeout"


@pytest.mark.parametrize("streamed", [False, True])
async def test_cancellation_passes_through(fake: FakeOpenAI, model: ProviderModel, streamed: bool) -> None:
    fake.script(Reply(text="Hello there", hang=True))
    running = asyncio.create_task(model.generate(asking(on_text=print if streamed else None)))
    await asyncio.to_thread(fake.arrived.wait, 10)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert len(fake.requests) == 1


async def test_a_filtered_answer_is_a_refusal(fake: FakeOpenAI, model: ProviderModel) -> None:
    fake.script(Reply(finish_reason="content_filter"))
    with pytest.raises(ModelError) as caught:
        await model.generate(asking())
    assert caught.value.code == "model.refused"


async def test_garbage_is_a_bad_reply(fake: FakeOpenAI, model: ProviderModel) -> None:
    fake.script(Reply(status=599, body="<html>"))
    with pytest.raises(ModelError):
        await model.generate(asking())


def scripted(answer: Callable[[httpx2.Request], httpx2.Response]) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.MockTransport(answer))


OPENROUTER: dict[str, Any] = {
    "id": "gen-1",
    "object": "chat.completion",
    "created": 1,
    "model": "moonshotai/kimi-k2.6",
    "provider": "Moonshot",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "native_finish_reason": "stop",
            "message": {
                "role": "assistant",
                "content": "Pavel.",
                "reasoning": "Hm.",
                "reasoning_details": [
                    {"type": "reasoning.text", "text": "Hm.", "signature": "sig", "format": "unknown", "index": 0}
                ],
            },
        }
    ],
    "usage": {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25, "cost": 0.000123},
}


async def test_openrouter_reports_its_cost_and_gets_its_thinking_back() -> None:
    sent: list[dict[str, Any]] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        assert request.url.path == "/api/v1/chat/completions"
        assert request.headers["authorization"] == "Bearer k"
        sent.append(json.loads(request.content))
        return httpx2.Response(200, json=OPENROUTER)

    spec = ModelSpec("moonshotai/kimi-k2.6")
    model = open_provider_model(spec, retry=FAST, http_client=scripted(answer), key="k")
    reply = await model.generate(asking(settings=CallSettings(thinking="none")))
    assert reply.usage.usd == Decimal("0.000123")
    assert reply.thinking[0].text == "Hm."
    assert sent[0]["reasoning"] in ({"enabled": False}, {"effort": "none"})
    said = Message(role="assistant", content=reply.text, thinking=reply.thinking)
    again = asking(Message(role="user", content="Hi"), said, Message(role="user", content="Sure?"))
    await model.generate(again)
    back = sent[1]["messages"][1]
    assert back["reasoning_details"][0]["signature"] == "sig"
    assert back["reasoning_details"][0]["text"] == "Hm."
    await model.aclose()


RESPONSES: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "gpt-5-mini",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "output": [
        {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "opaque=="},
        {
            "id": "fc_1",
            "type": "function_call",
            "call_id": "call_1",
            "name": "look",
            "arguments": '{"a":1}',
            "status": "completed",
        },
    ],
    "usage": {
        "input_tokens": 20,
        "input_tokens_details": {"cached_tokens": 12},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": 25,
    },
}


async def test_openai_gets_its_encrypted_reasoning_and_item_ids_back() -> None:
    sent: list[dict[str, Any]] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        assert request.url.path == "/v1/responses"
        sent.append(json.loads(request.content))
        return httpx2.Response(200, json=RESPONSES)

    spec = ModelSpec("openai:gpt-5-mini")
    model = open_provider_model(spec, retry=FAST, http_client=scripted(answer), key="k")
    assert model.context_window == 400_000
    reply = await model.generate(asking(tools=(LOOK,), settings=CallSettings(thinking="low", temperature=0)))
    assert sent[0]["reasoning"]["effort"] == "low"
    assert "temperature" not in sent[0]
    assert reply.tool_calls == (ToolCall(id="call_1", name="look", arguments='{"a":1}'),)
    assert reply.usage.cache_read_tokens == 12
    said = Message(role="assistant", tool_calls=reply.tool_calls, thinking=reply.thinking)
    seen = Message(role="tool", content="42", tool_call_id="call_1", tool_name="look")
    await model.generate(asking(Message(role="user", content="Hi"), said, seen, tools=(LOOK,)))
    items = {item.get("type"): item for item in sent[1]["input"]}
    assert items["reasoning"]["encrypted_content"] == "opaque=="
    assert items["reasoning"]["id"] == "rs_1"
    assert items["function_call"]["id"] == "fc_1"
    assert items["function_call_output"]["output"] == "42"
    await model.aclose()


async def test_a_missing_library_names_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pydantic_ai.models.anthropic", None)
    with pytest.raises(MissingExtraError) as caught:
        open_provider_model(ModelSpec("anthropic:claude-sonnet-4-5"), key="k")
    assert caught.value.hint == "pip install 'agboss[anthropic]'"
    monkeypatch.setitem(sys.modules, "agboss.models.provider.model", None)
    with pytest.raises(MissingExtraError) as caught:
        open_provider_model(ModelSpec("openai:gpt-5-mini"), key="k")
    assert caught.value.hint == "pip install 'agboss[models]'"


async def test_the_catalog_opens_and_closes_what_it_opened(fake: FakeOpenAI) -> None:
    fake.script("ok")
    catalog = ModelCatalog()
    spec = ModelSpec("openai-compatible:tiny", base_url=fake.base_url)
    model = catalog.model(spec)
    assert catalog.model(ModelSpec("openai-compatible:tiny", base_url=fake.base_url)) is model
    assert (await model.generate(asking())).text == "ok"
    assert catalog.window(spec) is None
    await catalog.aclose()
    with pytest.raises(ModelError):
        await model.generate(asking())


def test_thinking_of_an_unknown_kind_is_kept_apart() -> None:
    part = ThinkingPart(text="a", provider="x")
    assert part.data == ""


@pytest.mark.parametrize(("status", "remedy"), [(429, "wait a while"), (500, "try again later"), (400, "settings")])
async def test_an_error_of_the_provider_names_a_remedy(
    fake: FakeOpenAI, model: ProviderModel, status: int, remedy: str
) -> None:
    fake.script(Reply(status=status, body={"error": {"message": "no"}}))
    with pytest.raises(ModelError) as caught:
        await model.generate(asking())
    assert remedy in caught.value.hint


async def test_a_reply_without_choices_is_a_bad_reply() -> None:
    spec = ModelSpec("moonshotai/kimi-k2.6")
    client = scripted(lambda _: httpx2.Response(200, json={**OPENROUTER, "choices": []}))
    model = open_provider_model(spec, retry=FAST, http_client=client, key="k")
    with pytest.raises(ModelError) as caught:
        await model.generate(asking())
    await model.aclose()
    assert caught.value.code == "model.bad-reply"
    assert caught.value.message == "model 'moonshotai/kimi-k2.6' sent a reply without an answer"


async def test_thinking_that_cannot_be_sent_is_warned_of_once(
    fake: FakeOpenAI, caplog: pytest.LogCaptureFixture
) -> None:
    fake.script("ok")
    model = open_provider_model(ModelSpec("openai-compatible:plain", base_url=fake.base_url), retry=FAST)
    for _ in range(2):
        await model.generate(asking(settings=CallSettings(thinking="low")))
    await model.aclose()
    assert "reasoning_effort" not in fake.requests[0]
    (warned,) = [record.getMessage() for record in caplog.records if record.name == "agboss"]
    assert warned == "thinking='low' of 'helper' is not sent: model 'openai-compatible:plain' is not known to take it"


async def test_files_go_behind_the_text_of_their_message(fake: FakeOpenAI, model: ProviderModel) -> None:
    fake.script("A cat.")
    image = MediaPart(name="cat.png", media_type="image/png", data=b"\x89PNG")
    notes = MediaPart(name="notes.json", media_type="application/json", data=b'{"a": "\xff"}')
    await model.generate(asking(Message(role="user", content="What?", media=(image, notes))))
    text, picture, *rest = fake.requests[0]["messages"][0]["content"]
    assert text == {"type": "text", "text": "What?"}
    assert picture["image_url"]["url"] == "data:image/png;base64,iVBORw=="
    assert '{"a": "\ufffd"}' in json.dumps(rest, ensure_ascii=False).replace('\\"', '"')


async def test_behind_a_gateway_nobody_tells_what_a_model_takes(model: ProviderModel) -> None:
    assert model.accepts == ()


async def test_the_profile_tells_of_models_of_the_vendors(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    catalog = ModelCatalog()
    openai = catalog.accepts(ModelSpec("openai:gpt-5-mini"))
    assert {"image", "application/pdf", "text/plain"} <= set(openai)
    assert not {"audio", "video"} & set(openai)
    assert catalog.accepts(ModelSpec("anthropic:claude-sonnet-4-5")) == ("image", "application/pdf", "text/plain")
    assert catalog.accepts(ModelSpec("openai:gpt-5-mini", accepts=("audio",))) == ("audio",)
    assert catalog.accepts(ModelSpec("embedded:/x.gguf", accepts=("image",))) == ()
    assert ModelCatalog(offline=True).accepts(ModelSpec("openai:gpt-5-mini")) == ()
    await catalog.aclose()
