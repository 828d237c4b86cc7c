"""The doors as published clients enter them: the AI SDK and AG-UI of npm, OpenAI's package, each over a real process.

Node and npm are needed for the first two; the packages come from npm's registry, once.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest
from node_clients import CLIENT_SECONDS, CLIENTS, MISSING, NPM_SECONDS, ROOT, run_client
from serving import Server, serving

pytestmark = pytest.mark.timeout(NPM_SECONDS + 3 * CLIENT_SECONDS)
needs_node = pytest.mark.skipif(MISSING is not None, reason=f"{MISSING} is not installed")


@contextmanager
def desk(folder: Path, workflow: str = "Desk") -> Generator[Server]:
    paths = f"{ROOT}:{ROOT / 'tests' / 'support'}"
    named = ("--app", f"scripted_desk:{workflow}", "--store", "memory://")
    with serving(folder, *named, PYTHONPATH=paths) as server:
        yield server


def test_nothing_but_names_versions_and_hashes_is_kept_of_the_packages() -> None:
    lock = json.loads((CLIENTS / "package-lock.json").read_text())
    entries = [entry for name, entry in lock["packages"].items() if name]
    assert all("integrity" in entry and "resolved" not in entry for entry in entries)


@needs_node
def test_a_chat_of_the_ai_sdk_shows_tools_keeps_its_thread_and_tells_errors(tmp_path: Path) -> None:
    with desk(tmp_path) as server:
        turns = run_client(
            tmp_path, "vercel.mjs", server.url, "c1", "look up sky", "look up nothing", "recall", "fail", "recall"
        )
    first, second, third, failed, last = turns
    assert [turn["status"] for turn in turns] == ["ready", "ready", "ready", "error", "ready"]
    assert shown(first) == [
        {"type": "step-start"},
        tool_part(first, state="output-available", input={"topic": "sky"}, output="sky is blue."),
        {"type": "text", "text": "sky is blue.", "state": "done"},
    ]
    assert tool_part(second)["state"] == "output-error"
    assert third["messages"][-1]["parts"][-1]["text"] == "You said: look up sky; look up nothing."
    assert [message["role"] for message in third["messages"]] == ["user", "assistant"] * 3
    assert [message["id"] for message in third["messages"][1::2]] == ["c1-1", "c1-2", "c1-3"]
    assert failed["error"]
    assert "sk-very-secret" not in json.dumps(turns)
    assert last["error"] is None


@needs_node
def test_a_chat_of_the_ai_sdk_shows_the_answer_while_it_is_written(tmp_path: Path) -> None:
    with desk(tmp_path, "Teller") as server:
        (turn,) = run_client(tmp_path, "vercel.mjs", server.url, "c1", "stream 20 tea")
    assert turn["messages"][-1]["parts"][-1]["text"] == "".join(f"tea-{n} " for n in range(20))
    assert turn["changes"] >= 20  # of the message on the page
    assert turn["finished"] == [{"id": "c1-1", "isError": False, "isAbort": False, "isDisconnect": False}]


@needs_node
def test_an_agent_of_ag_ui_gets_events_and_messages_and_hears_of_a_fault(tmp_path: Path) -> None:
    with desk(tmp_path) as server:
        runs = run_client(tmp_path, "ag_ui.mjs", server.url, "t1", "look up sky", "look up sea", "recall", "fail")
    first, second, third, failed = runs
    assert kinds(first) == [
        "RUN_STARTED",
        "STEP_STARTED",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "TOOL_CALL_RESULT",
        "STEP_FINISHED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]
    assert [run["error"] for run in (first, second, third)] == [None] * 3
    asked, result, answer = first["newMessages"]
    assert asked["toolCalls"][0]["function"] == {"name": "look_up", "arguments": '{"topic": "sky"}'}
    assert (result["role"], result["content"]) == ("tool", "sky is blue.")
    assert (answer["role"], answer["content"]) == ("assistant", "sky is blue.")
    assert [message["role"] for message in second["messages"]] == ["user", "assistant", "tool", "assistant"] * 2
    assert third["newMessages"][-1]["content"] == "You said: look up sky; look up sea."
    assert (kinds(failed)[-1], failed["told"]["type"]) == ("RUN_ERROR", "RUN_ERROR")
    assert "sk-very-secret" not in json.dumps(runs)


@needs_node
def test_an_agent_of_ag_ui_gets_the_answer_while_it_is_written(tmp_path: Path) -> None:
    with desk(tmp_path, "Teller") as server:
        (run,) = run_client(tmp_path, "ag_ui.mjs", server.url, "t1", "stream 20 tea")
    assert run["newMessages"][-1]["content"] == "".join(f"tea-{n} " for n in range(20))
    assert kinds(run).count("TEXT_MESSAGE_CONTENT") == 20


def test_the_client_of_openai_talks_streams_keeps_its_thread_and_raises(tmp_path: Path) -> None:
    with desk(tmp_path) as server:
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="any", timeout=CLIENT_SECONDS, max_retries=0) as client:
            assert [model.id for model in client.models.list()] == ["desk"]
            first = client.chat.completions.create(model="desk", messages=said("look up sky"))
            assert first.choices[0].message.content == "sky is blue."
            assert first.choices[0].finish_reason == "stop"
            assert first.usage is not None
            assert first.usage.total_tokens == 24  # of two calls
            thread: dict[str, str] = first.metadata or {}  # pyright: ignore[reportAttributeAccessIssue]
            streamed = client.chat.completions.create(
                model="desk",
                messages=said("recall"),
                metadata=thread,
                stream=True,
                stream_options={"include_usage": True},
            )
            chunks = list(streamed)
            text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
            assert text == "You said: look up sky."
            assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
            assert chunks[-1].usage is not None
            with pytest.raises(openai.NotFoundError) as refused:
                client.chat.completions.create(model="desk", messages=said("recall"), metadata={"thread": "nobody"})
            assert refused.value.code == "run.unknown-thread"
            with pytest.raises(openai.APIStatusError) as failed:
                client.chat.completions.create(model="desk", messages=said("fail"), metadata=thread)
            assert (failed.value.status_code, failed.value.code) == (500, "run.failed")
            with pytest.raises(openai.APIError) as broken:
                list(client.chat.completions.create(model="desk", messages=said("fail"), metadata=thread, stream=True))
            assert "sk-very-secret" not in str(failed.value) + str(broken.value)
            again = client.chat.completions.create(model="desk", messages=said("recall"), metadata=thread)
            assert (again.choices[0].message.content or "").startswith("You said: look up sky; recall")


def said(text: str) -> Any:
    return [{"role": "user", "content": text}]


def shown(turn: Any) -> list[Any]:
    """The parts of the newest message."""
    return turn["messages"][-1]["parts"]


def tool_part(turn: Any, **expected: Any) -> Any:
    """The part of the tool call; with ``expected`` as it should be."""
    (found,) = [part for part in shown(turn) if part["type"] == "tool-look_up"]
    return found if not expected else {"type": "tool-look_up", "toolCallId": found["toolCallId"], **expected}


def kinds(run: Any) -> list[str]:
    return [event["type"] for event in run["events"]]
