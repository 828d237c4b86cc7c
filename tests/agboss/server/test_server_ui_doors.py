"""AG-UI and Vercel's UI message stream: what their own models accept, in the order that their clients want."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ag_ui.core import Event
from asgi import Streamed, client
from desks import Gate, Models, desk, sum_up, yes
from pydantic import TypeAdapter
from pydantic_ai.ui.vercel_ai import response_types

from agboss import TernStatus, agent, create_app, tool
from agboss.models import ModelRequest
from agboss.server import make_server
from agboss.testing import MakeApp, MockLlm, call_tool

EVENTS: TypeAdapter[Any] = TypeAdapter(Event)
_KINDS: list[Any] = [kind for kind in vars(response_types).values() if "type" in getattr(kind, "model_fields", {})]
CHUNKS: dict[str, Any] = {kind.model_fields["type"].default: kind for kind in _KINDS}


@tool
def look_up(topic: str) -> str:
    """Look something up."""
    if topic == "nothing":
        raise LookupError(topic)
    return f"{topic} is blue."


@agent(name="helper", model="ollama:test", prompt="Be brief.", tools=[look_up])
class Helper: ...


def run_input(text: str, thread: str = "t1") -> dict[str, Any]:
    return {
        "threadId": thread,
        "runId": "r1",
        "state": {},
        "messages": [{"id": "m1", "role": "user", "content": text}],
        "tools": [],
        "context": [],
        "forwardedProps": {},
    }


def chat_input(text: str, chat: str = "c1", **more: Any) -> dict[str, Any]:
    parts = [{"type": "text", "text": text}]
    return {"id": chat, "messages": [{"id": "m1", "role": "user", "parts": parts}], "trigger": "submit-message", **more}


def data_of(text: str) -> list[str]:
    return [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]


def ag_ui_events(text: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in data_of(text)]
    for event in found:
        EVENTS.validate_python(event)
    return found


def chunks(text: str) -> list[dict[str, Any]]:
    *lines, last = data_of(text)
    assert last == "[DONE]"
    found = [json.loads(line) for line in lines]
    for chunk in found:
        CHUNKS[chunk["type"]].model_validate(chunk)
    return found


async def test_ag_ui_tells_steps_tools_and_text(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Helper).then_return(call_tool(look_up, topic="sky"), "The sky is blue.", "Yes.")
    async with agboss_app(Helper) as app, client(make_server(app)) as http:
        told = ag_ui_events((await http.post("/ag-ui", json=run_input("Sky?"))).text)
        kinds = [event["type"] for event in told]
        assert kinds[:2] == ["RUN_STARTED", "STEP_STARTED"]
        assert [kind for kind in kinds if kind.startswith("TOOL")] == [
            "TOOL_CALL_START",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_END",
            "TOOL_CALL_RESULT",
        ]
        assert kinds.count("TEXT_MESSAGE_START") == kinds.count("TEXT_MESSAGE_END") == 1
        assert kinds[-1] == "RUN_FINISHED"
        assert (told[-1]["threadId"], told[-1]["runId"]) == ("t1", "r1")
        assert (
            "".join(event["delta"] for event in told if event["type"] == "TEXT_MESSAGE_CONTENT") == "The sky is blue."
        )
        (result,) = [event for event in told if event["type"] == "TOOL_CALL_RESULT"]
        assert result["content"] == "sky is blue."
        await http.post("/ag-ui", json=run_input("Sure?"))
        assert [tern.task for tern in (await app.threads.get("t1")).terns] == ["Sky?", "Sure?"]


async def test_vercel_tells_steps_tools_and_text(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    steps = [call_tool(look_up, topic="sky"), call_tool(look_up, topic="nothing"), "The sky is blue."]
    mock_llm(Helper).then_return(*steps)
    async with agboss_app(Helper) as app, client(make_server(app)) as http:
        answer = await http.post("/api/chat", json=chat_input("Sky?"))
        assert answer.headers["x-vercel-ai-ui-message-stream"] == "v1"
        told = chunks(answer.text)
    kinds = [chunk["type"] for chunk in told]
    assert (kinds[:2], kinds[-1]) == (["start", "start-step"], "finish")
    assert next(chunk for chunk in told if chunk["type"] == "tool-input-available")["input"] == {"topic": "sky"}
    assert [kind for kind in kinds if kind.startswith("tool-output")] == ["tool-output-available", "tool-output-error"]
    assert kinds.count("text-start") == kinds.count("text-end") == 1
    assert "".join(chunk["delta"] for chunk in told if chunk["type"] == "text-delta") == "The sky is blue."


async def test_a_fault_is_told_in_the_client_s_words() -> None:
    async def fail(_: ModelRequest) -> str:
        raise RuntimeError("key sk-very-secret was refused")

    async with create_app(desk(), store="memory://", models=Models(fail, sum_up)) as app:
        async with client(make_server(app)) as http:
            first = await http.post("/ag-ui", json=run_input("x"))
            second = await http.post("/api/chat", json=chat_input("x"))
    assert ag_ui_events(first.text)[-1]["type"] == "RUN_ERROR"
    assert chunks(second.text)[-1]["type"] == "error"
    assert "sk-very-secret" not in first.text + second.text


@pytest.mark.parametrize(("path", "body"), [("/ag-ui", run_input("x", "hers")), ("/api/chat", chat_input("x", "hers"))])
async def test_a_thread_of_another_owner_is_not_entered(path: str, body: Any) -> None:
    token = "bob-token-0123456789"
    async with create_app(desk(), store="memory://", models=Models(yes, sum_up)) as app:
        await app.execute("a", thread="hers", create_thread=True, owner="ada")
        async with client(make_server(app, tokens={token: "bob"}), token) as http:
            refused = await http.post(path, json=body)
            assert (refused.status_code, refused.json()["code"]) == (404, "run.unknown-thread")
        assert len((await app.threads.get("hers")).terns) == 1


@pytest.mark.parametrize(("path", "body"), [("/ag-ui", run_input("x")), ("/api/chat", chat_input("x", "t1"))])
async def test_a_client_that_vanishes_cancels_its_run(path: str, body: Any) -> None:
    gate = Gate()
    async with create_app(desk(), store="memory://", models=Models(gate, sum_up)) as app:
        server = make_server(app)
        asked = Streamed(server, "POST", path, body)
        await gate.reached.wait()
        await asked.vanish()
        (log,) = server.state.service.runs.running
        await log.task
        assert [tern.status for tern in (await app.threads.get("t1")).terns] == [TernStatus.CANCELLED]


async def test_what_was_said_is_not_taken_back() -> None:
    async with create_app(desk(), store="memory://", models=Models(yes, sum_up)) as app:
        async with client(make_server(app)) as http:
            refused = await http.post("/api/chat", json=chat_input("x", trigger="regenerate-message"))
            assert (refused.status_code, refused.json()["code"]) == (400, "server.bad-body")
            assert (await http.get("/threads")).json()["threads"] == []
