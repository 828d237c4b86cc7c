"""OpenAI's own client against a served workflow."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import openai
import pytest
from asgi import Streamed, client
from desks import Gate, Models, desk, sum_up, yes
from serving import serving

from agboss import AgentDefinition, AgentRuntime, create_app
from agboss.models import ModelRequest
from agboss.server import make_server

TOKEN = "a-token-that-is-long-enough"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Generator[openai.OpenAI]:
    folder = tmp_path_factory.mktemp("served")
    with serving(folder, "--store", "memory://", AGBOSS_TOKENS=f"ada={TOKEN}") as server:
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key=TOKEN, max_retries=0) as made:
            yield made


def ask(api: openai.OpenAI, text: str, **more: Any) -> Any:
    create: Any = api.chat.completions.create
    return create(model="helper", messages=[{"role": "user", "content": text}], **more)


def test_models_are_workflows(api: openai.OpenAI) -> None:
    assert [model.id for model in api.models.list()] == ["helper"]


def test_a_thread_keeps_the_history(api: openai.OpenAI) -> None:
    first = ask(api, "My name is Ada.")
    assert first.choices[0].message.content == "Noted: My name is Ada."
    assert first.choices[0].finish_reason == "stop"
    thread = first.metadata["thread"]
    again = ask(api, "What is my name?", metadata={"thread": thread})
    assert "Ada" in again.choices[0].message.content
    by_header = ask(api, "And now?", extra_headers={"X-Agboss-Thread": thread})
    assert by_header.id.endswith("-3")
    assert again.usage.total_tokens == again.usage.prompt_tokens + again.usage.completion_tokens


def test_an_answer_comes_piece_by_piece(api: openai.OpenAI) -> None:
    with ask(api, "My name is Ada.", stream=True, stream_options={"include_usage": True}) as chunks:
        got = list(chunks)
    pieces = [chunk.choices[0].delta.content for chunk in got if chunk.choices]
    assert len(pieces) > 2
    assert "".join(filter(None, pieces)) == "Noted: My name is Ada."
    assert got[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in got if chunk.choices][-1] == "stop"
    assert got[-1].usage is not None


def test_faults_are_the_client_s_own_errors(api: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        api.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": "x"}])
    assert caught.value.code == "server.unknown-model"
    with pytest.raises(openai.NotFoundError):
        ask(api, "x", metadata={"thread": "nobody"})
    for wrong in ({"n": 2}, {"tools": [{"type": "function", "function": {"name": "f"}}]}):
        with pytest.raises(openai.BadRequestError):
            ask(api, "x", **wrong)
    with pytest.raises(openai.BadRequestError):
        api.chat.completions.create(model="helper", messages=[{"role": "assistant", "content": "x"}])
    with pytest.raises(openai.AuthenticationError):
        ask(api.with_options(api_key="another-token-another"), "x")


async def test_a_fault_within_a_stream_is_told_without_its_text() -> None:
    async def fail(_: ModelRequest) -> str:
        raise RuntimeError("key sk-very-secret was refused")

    body = {"model": "desk", "messages": [{"role": "user", "content": "x"}], "stream": True}
    async with create_app(desk(), store="memory://", models=Models(fail, sum_up)) as app:
        async with client(make_server(app)) as http:
            told = await http.post("/v1/chat/completions", json=body)
    assert '"error":{' in told.text
    assert "sk-very-secret" not in told.text


async def test_parts_are_read_and_no_address_is_fetched() -> None:
    seen: list[Any] = []

    async def look(request: ModelRequest) -> str:
        seen.append(request)
        return "Seen."

    async with create_app(desk(every=None), store="memory://", models=Models(look, sum_up)) as app:
        async with client(make_server(app)) as http:

            async def send(*parts: Any) -> Any:
                body = {"model": "desk", "messages": [{"role": "user", "content": list(parts)}]}
                return await http.post("/v1/chat/completions", json=body)

            file = {"type": "image_url", "image_url": {"url": "data:text/plain;base64,SGVsbG8="}}
            done = await send({"type": "text", "text": "Read"}, {"type": "text", "text": "this."}, file)
            assert done.status_code == 200
            (tern,) = (await app.threads.get(done.json()["metadata"]["thread"])).terns
            assert (tern.task, [item.media_type for item in tern.attachments]) == ("Read\nthis.", ["text/plain"])
            for wrong in (
                {"type": "image_url", "image_url": {"url": "http://10.0.0.1/x.png"}},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,!"}},
                {"type": "audio"},
                "text",
                None,
            ):
                assert (await send(wrong)).status_code == 400


async def test_a_client_that_vanishes_cancels_its_completion() -> None:
    gate = Gate()
    async with create_app(desk(), store="memory://", models=Models(gate, sum_up)) as app:
        server = make_server(app)
        body = {"model": "desk", "messages": [{"role": "user", "content": "x"}], "stream": True}
        asked = Streamed(server, "POST", "/v1/chat/completions", body)
        await gate.reached.wait()
        await asked.vanish()
        (log,) = server.state.service.runs.running
        await log.task
        assert gate.cancelled


async def test_defined_agents_are_models(tmp_path: Path) -> None:
    definitions = [AgentDefinition(name=name, model="openai:gpt-5-mini") for name in ("clerk", "cook")]
    async with AgentRuntime(definitions, store="memory://", models=Models(yes, sum_up)) as agents:
        async with client(make_server(agents)) as http:
            assert [item["id"] for item in (await http.get("/v1/models")).json()["data"]] == ["clerk", "cook"]
            assert (await http.get("/v1/models/cook")).json()["id"] == "cook"
            missing = await http.get("/v1/models/waiter")
            assert (missing.status_code, missing.json()["error"]["code"]) == (404, "server.unknown-model")
            body = {"model": "cook", "messages": [{"role": "user", "content": "x"}]}
            done = (await http.post("/v1/chat/completions", json=body)).json()
            assert len((await agents.threads("cook").get(done["metadata"]["thread"])).terns) == 1


async def test_a_key_gives_the_stored_answer_and_makes_no_other_thread() -> None:
    models = Models(yes, sum_up)
    async with create_app(desk(every=None), store="memory://", models=models) as app:
        async with client(make_server(app)) as http:
            body = {"model": "desk", "messages": [{"role": "user", "content": "x"}]}
            first, again = [
                await http.post("/v1/chat/completions", json=body, headers={"Idempotency-Key": "k"}) for _ in "12"
            ]
            assert (first.status_code, again.status_code) == (200, 200)
            assert again.json()["id"] == first.json()["id"]
            assert models.calls == ["agent"]
            assert len(await app.threads.list()) == 1
