"""The embedded model, with the real file when it was fetched; its answers mean nothing, so only structure is checked."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from agboss.components.model_spec import ModelSpec
from agboss.errors import MissingExtraError, ModelError
from agboss.models import (
    CallSettings,
    EmbeddedModel,
    ModelCatalog,
    ModelRequest,
    ToolSchema,
    fetched_path,
    model_directory,
)
from agboss.models.embedded import MODEL_VARIABLE, embedded_path
from agboss.models.embedded_chat import ChatStream, chat_request
from agboss.models.provider import open_provider_model
from agboss_memory.messages import Message, ToolCall

FILE = fetched_path()
needs_file = pytest.mark.skipif(not FILE.is_file(), reason=f"{FILE} is not there; 'agboss models fetch' gets it")


def asking(text: str = "Hello", **more: Any) -> ModelRequest:
    more.setdefault("settings", CallSettings(max_tokens=8, temperature=0))
    return ModelRequest(caller="helper", model="m", messages=(Message(role="user", content=text),), **more)


@pytest.fixture
async def model() -> AsyncIterator[EmbeddedModel]:
    opened = EmbeddedModel(ModelSpec(f"embedded:{FILE}", context_window=256))
    yield opened
    await opened.aclose()
    await opened.aclose()


@needs_file
async def test_it_answers_and_streams(model: EmbeddedModel) -> None:
    pieces: list[str] = []
    reply = await model.generate(asking(system="Be brief.", on_text=pieces.append))
    assert reply.text
    assert "".join(pieces) == reply.text
    assert len(pieces) > 1
    assert reply.finish_reason == "length"
    assert reply.usage.output_tokens == 8
    assert reply.usage.input_tokens > 8
    assert reply.usage.free
    again = await model.generate(asking(system="Be brief."))
    assert again.text


@needs_file
async def test_a_schema_is_enforced(model: EmbeddedModel) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    reply = await model.generate(asking(output_schema=schema, settings=CallSettings(max_tokens=60, temperature=0)))
    assert isinstance(json.loads(reply.text)["a"], int)
    with pytest.raises(ModelError) as caught:
        await model.generate(asking(output_schema={"type": "nonsense"}))
    assert caught.value.code == "model.cannot"


@needs_file
async def test_an_overflow_is_typed(model: EmbeddedModel) -> None:
    with pytest.raises(ModelError) as caught:
        await model.generate(asking("Hello " * 500))
    assert caught.value.code == "model.context-overflow"
    assert "256" in caught.value.message
    assert "context_window=" in caught.value.hint
    assert (await model.generate(asking())).text


@needs_file
async def test_any_text_and_any_conversation_is_taken(model: EmbeddedModel) -> None:
    assert (await model.generate(asking("\ud800 \U0001f600 \x00"))).usage.output_tokens
    messages = (
        Message(role="user", content="Look."),
        Message(role="assistant", tool_calls=(ToolCall(id="1", name="look", arguments='{"a": 1}'),)),
        Message(role="tool", content="42", tool_call_id="1", tool_name="look"),
    )
    tool = ToolSchema(name="look", description="Looks.", parameters={"type": "object", "properties": {}})
    settings = CallSettings(max_tokens=4, thinking="none")
    request = ModelRequest(caller="a", model="m", messages=messages, tools=(tool,), settings=settings)
    assert (await model.generate(request)).usage.output_tokens


@needs_file
async def test_cancellation_stops_it_and_it_answers_again(model: EmbeddedModel) -> None:
    started = asyncio.Event()

    def listen(piece: str) -> None:
        started.set()

    long = asking("Tell a long story.", settings=CallSettings(), on_text=listen)
    running = asyncio.create_task(model.generate(long))
    await asyncio.wait_for(started.wait(), 30)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await asyncio.wait_for(model.generate(asking()), 30)).text


@needs_file
async def test_closing_ends_a_running_answer_with_an_error(model: EmbeddedModel) -> None:
    started = asyncio.Event()

    def listen(piece: str) -> None:
        started.set()

    running = asyncio.create_task(model.generate(asking("Tell a long story.", settings=CallSettings(), on_text=listen)))
    await asyncio.wait_for(started.wait(), 30)
    await model.aclose()
    with pytest.raises(ModelError) as caught:
        await running
    assert caught.value.code == "model.closed"


@needs_file
async def test_what_the_listener_raises_is_raised(model: EmbeddedModel) -> None:
    def listen(piece: str) -> None:
        raise LookupError("stop")

    with pytest.raises(LookupError, match="stop"):
        await model.generate(asking(on_text=listen))
    assert (await model.generate(asking())).text


@needs_file
async def test_two_at_once(model: EmbeddedModel) -> None:
    one, two = await asyncio.gather(model.generate(asking()), model.generate(asking("Bye")))
    assert one.text
    assert two.text


@needs_file
async def test_the_catalog_loads_once_and_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MODEL_VARIABLE, str(FILE))
    catalog = ModelCatalog()
    spec = ModelSpec("embedded:default")
    model = catalog.model(spec)
    assert catalog.model(spec) is model
    assert catalog.window(spec) == 2048
    assert (await model.generate(asking())).text
    await catalog.aclose()


async def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    file = tmp_path / "x.gguf"
    file.write_bytes(b"nonsense" * 100)
    model = EmbeddedModel(ModelSpec(f"embedded:{file}"))
    with pytest.raises(ModelError) as caught:
        await model.generate(asking())
    assert caught.value.code == "model.no-file"
    await model.aclose()


def test_a_file_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGBOSS_HOME", str(tmp_path))
    monkeypatch.delenv(MODEL_VARIABLE, raising=False)
    assert model_directory() == tmp_path
    for name, hint in (("smollm2", "agboss models fetch"), ("default", "agboss models fetch"), ("/no/x.gguf", "path")):
        with pytest.raises(ModelError) as caught:
            ModelCatalog().model(ModelSpec(f"embedded:{name}"))
        assert caught.value.code == "model.no-file"
        assert hint in caught.value.hint
    monkeypatch.setenv(MODEL_VARIABLE, "/mine.gguf")
    assert embedded_path(ModelSpec("embedded:default")) == Path("/mine.gguf")
    assert embedded_path(ModelSpec("embedded:smollm2")).parent == tmp_path


def test_a_missing_library_names_the_pip_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "x.gguf"
    file.touch()
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(MissingExtraError) as caught:
        EmbeddedModel(ModelSpec(f"embedded:{file}"))
    assert caught.value.hint == "pip install 'agboss[embedded]'"


def test_tool_calls_are_put_together_from_chunks() -> None:
    stream = ChatStream()
    for function in ({"name": "look", "arguments": '{"a"'}, {"arguments": ": 1}"}):
        stream.take({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c1", "function": function}]}}]})
    stream.take({"choices": [{"delta": {"tool_calls": [{"index": 1, "function": {"name": "go"}}]}}]})
    stream.take({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
    reply = stream.reply()
    assert reply.tool_calls == (
        ToolCall(id="c1", name="look", arguments='{"a": 1}'),
        ToolCall(id="call-1", name="go", arguments="{}"),
    )
    assert reply.finish_reason == "tool_calls"


def test_the_request_says_what_was_asked_for() -> None:
    body = chat_request(asking(settings=CallSettings(thinking="high"), system="S"))
    assert body["chat_template_kwargs"] == {"enable_thinking": True}
    assert [message["role"] for message in body["messages"]] == ["system", "user"]


@pytest.fixture(scope="module")
def llama_server() -> Iterator[str]:
    library = pytest.importorskip("xllamacpp")
    parameters = library.CommonParams()
    parameters.model.path = str(FILE)
    parameters.n_ctx = 256
    parameters.n_parallel = 1
    parameters.verbosity = -1
    parameters.ui = False
    server = library.Server(parameters)
    yield f"{server.listening_address}/v1"
    del server


@needs_file
@pytest.mark.agboss_models
async def test_a_real_server_speaks_to_the_provider_border(llama_server: str) -> None:
    model = open_provider_model(ModelSpec("openai-compatible:smollm2", base_url=llama_server))
    pieces: list[str] = []
    whole = await model.generate(asking())
    streamed = await model.generate(asking(on_text=pieces.append))
    assert whole.text
    assert streamed.text == "".join(pieces)
    assert whole.usage.output_tokens == 8
    assert whole.finish_reason == "length"
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    typed = await model.generate(asking(output_schema=schema, settings=CallSettings(max_tokens=60, temperature=0)))
    assert isinstance(json.loads(typed.text)["a"], int)
    with pytest.raises(ModelError) as caught:
        await model.generate(asking("Hello " * 500))
    assert caught.value.code in {"model.context-overflow", "model.http"}
    await model.aclose()
