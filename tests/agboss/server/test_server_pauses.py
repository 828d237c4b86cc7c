"""Pauses over HTTP: what waits, deciding, and what clients of the other doors are told."""

from __future__ import annotations

import json
from typing import Any

import pytest
from asgi import client, events

from agboss import App, agent, create_app, tool
from agboss.server import make_server
from agboss.testing import ScriptedModels, call_tool, reply

STREAM = {"accept": "text/event-stream"}


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@agent(name="clerk", model="openai:gpt-5-mini", prompt="Help.", tools=[pay])
class Clerk: ...


def app(*steps: Any) -> App:
    models = ScriptedModels()
    models.llm(Clerk).then_return(*steps)
    return create_app(Clerk, store="memory://", models=models)


def told(text: str) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


async def test_a_pause_is_shown_decided_once_and_told_again() -> None:
    async with app(call_tool(pay, amount=5), reply("Paid.")) as served, client(make_server(served)) as http:
        thread = (await http.post("/threads")).json()["id"]
        paused = (await http.post(f"/threads/{thread}/terns", json={"input": "Pay."})).json()
        assert (paused["status"], paused["answer"], paused["pause"]["tool"]) == ("paused", "", "pay")
        listed = (await http.get(f"/threads/{thread}/pauses")).json()["pauses"]
        assert listed == [paused["pause"]]
        assert listed[0]["arguments"] == {"amount": 5}
        place, pause = f"/threads/{thread}/resume", listed[0]["id"]
        bad = await http.post(place, json={"pauseId": pause, "approved": True, "arguments": {"amount": "x"}})
        assert (bad.status_code, bad.json()["code"]) == (400, "pause.bad-arguments")
        done = await http.post(place, json={"pauseId": pause, "approved": True})
        assert (done.status_code, done.json()["answer"], done.json()["pause"]) == (200, "Paid.", None)
        again = await http.post(place, json={"pauseId": pause, "approved": True})
        assert again.json()["answer"] == "Paid."
        other = await http.post(place, json={"pauseId": pause, "approved": False})
        assert (other.status_code, other.json()["code"]) == (409, "pause.decided")
        assert (await http.get(f"/threads/{thread}/pauses")).json() == {"pauses": []}
        assert 'agboss_terns_total{status="paused"} 1' in (await http.get("/metrics")).text


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"pauseId": "1-x", "approved": True}, 404, "pause.unknown"),
        ({"approved": True}, 400, "server.bad-body"),
        ({"pauseId": "1-x", "approved": "yes"}, 400, "server.bad-body"),
        ({"pauseId": "1-x", "approved": False, "arguments": {}}, 400, "pause.bad-decision"),
    ],
)
async def test_what_cannot_be_decided(body: Any, status: int, code: str) -> None:
    async with app() as served, client(make_server(served)) as http:
        thread = (await http.post("/threads")).json()["id"]
        refused = await http.post(f"/threads/{thread}/resume", json=body)
        assert (refused.status_code, refused.json()["code"]) == (status, code)
        assert (await http.post("/threads/none/resume", json=body)).status_code in (400, 404)


async def test_a_strangers_pause_is_not_there() -> None:
    async with app(call_tool(pay, amount=5)) as served:
        tokens = {"a" * 32: "ada", "b" * 32: "bob"}
        async with client(make_server(served, tokens=tokens)) as http:
            ada, bob = ({"authorization": f"Bearer {token}"} for token in tokens)
            thread = (await http.post("/threads", headers=ada)).json()["id"]
            paused = await http.post(f"/threads/{thread}/terns", json={"input": "Pay."}, headers=ada)
            body = {"pauseId": paused.json()["pause"]["id"], "approved": True}
            refused = await http.post(f"/threads/{thread}/resume", json=body, headers=bob)
            assert (refused.status_code, refused.json()["code"]) == (404, "run.unknown-thread")
            assert (await http.get(f"/threads/{thread}/pauses", headers=bob)).status_code == 404


async def test_a_paused_turn_is_cancelled() -> None:
    async with app(call_tool(pay, amount=5)) as served, client(make_server(served)) as http:
        thread = (await http.post("/threads")).json()["id"]
        paused = (await http.post(f"/threads/{thread}/terns", json={"input": "Pay."})).json()
        assert (await http.post(f"/threads/{thread}/cancel")).json() == {"cancelled": True}
        body = {"pauseId": paused["pause"]["id"], "approved": True}
        closed = await http.post(f"/threads/{thread}/resume", json=body)
        assert (closed.status_code, closed.json()["code"]) == (409, "pause.closed")


async def test_events_of_a_pause_and_of_what_follows() -> None:
    async with app(call_tool(pay, amount=5), reply("Paid.")) as served, client(make_server(served)) as http:
        thread = (await http.post("/threads")).json()["id"]
        heard = told((await http.post(f"/threads/{thread}/terns", json={"input": "Pay."}, headers=STREAM)).text)
        assert [event["type"] for event in heard] == ["tern_started", "node_started", "paused", "ended"]
        assert heard[2]["arguments"] == {"amount": 5}
        body = {"pauseId": heard[2]["pauseId"], "approved": True}
        heard = told((await http.post(f"/threads/{thread}/resume", json=body, headers=STREAM)).text)
        assert [event["type"] for event in heard][2:4] == ["tool_started", "tool_finished"]
        assert heard[-1]["answer"] == "Paid."


async def test_events_after_a_pause_go_on_with_its_numbers() -> None:
    async with app(call_tool(pay, amount=5), reply("Paid.")) as served, client(make_server(served)) as http:
        thread = (await http.post("/threads")).json()["id"]
        first = events((await http.post(f"/threads/{thread}/terns", json={"input": "Pay."}, headers=STREAM)).text)
        assert [number for number, _, _ in first] == [1, 2, 3, 4]
        body = {"pauseId": first[2][2]["pauseId"], "approved": True}
        place = f"/threads/{thread}/resume"
        rest = events((await http.post(place, json=body, headers=STREAM)).text)
        assert [number for number, _, _ in rest] == list(range(5, 5 + len(rest)))
        path = f"/threads/{thread}/terns/1/events"
        assert events((await http.get(path)).text) == first + rest
        assert events((await http.get(path, headers={"Last-Event-ID": "3"})).text) == first[3:] + rest
        await http.post(place, json=body, headers=STREAM)  # once more: its stored result
        assert events((await http.get(path)).text) == first + rest


async def test_a_pause_that_is_only_in_the_store_is_told_as_events() -> None:
    async with app(call_tool(pay, amount=5), reply("Paid.")) as served:
        async with client(make_server(served)) as http:
            thread = (await http.post("/threads")).json()["id"]
            paused = (await http.post(f"/threads/{thread}/terns", json={"input": "Pay."})).json()["pause"]
        async with client(make_server(served)) as http:
            told = events((await http.get(f"/threads/{thread}/terns/1/events")).text)
            assert [kind for _, kind, _ in told] == ["paused", "ended"]
            assert told[0][2]["pauseId"] == paused["id"]


async def test_ag_ui_ends_with_an_interrupt_and_resumes() -> None:
    steps = ([call_tool(pay, amount=1), call_tool(pay, amount=2)], reply("Paid."))
    async with app(*steps) as served, client(make_server(served)) as http:
        asked = {"threadId": "t", "runId": "r1", "messages": [{"role": "user", "content": "Pay."}]}
        heard = told((await http.post("/ag-ui", json=asked)).text)
        kinds = [event["type"] for event in heard]
        assert kinds[0] == "RUN_STARTED"
        assert kinds[-1] == "RUN_FINISHED"
        outcome = heard[-1]["outcome"]
        assert outcome["type"] == "interrupt"
        calls = [event["toolCallId"] for event in heard if event["type"] == "TOOL_CALL_START"]
        assert [one["toolCallId"] for one in outcome["interrupts"]] == calls
        first, second = (one["id"] for one in outcome["interrupts"])
        resume = [
            {"interruptId": first, "status": "resolved", "payload": {"approved": True}},
            {"interruptId": second, "status": "cancelled"},
        ]
        heard = told((await http.post("/ag-ui", json=asked | {"runId": "r2", "resume": resume})).text)
        assert "outcome" not in heard[-1]
        assert "".join(event["delta"] for event in heard if event["type"] == "TEXT_MESSAGE_CONTENT") == "Paid."
        results = [m.content for m in (await served.threads.export("t")).messages if m.role == "tool"]
        assert results == ["paid 1", "Error: not run, a person denied this call of pay."]


async def test_vercel_asks_for_approval_and_takes_it() -> None:
    async with app(call_tool(pay, amount=1), reply("No.")) as served, client(make_server(served)) as http:
        user = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Pay."}]}
        heard = told((await http.post("/api/chat", json={"id": "t", "messages": [user]})).text)
        kinds = [event["type"] for event in heard]
        assert kinds == ["start", "start-step", "tool-input-available", "tool-approval-request", "finish"]
        approval = {"id": heard[3]["approvalId"], "approved": False, "reason": "no money"}
        part = {"type": "tool-pay", "toolCallId": heard[3]["toolCallId"], "state": "approval-responded"}
        for wrong in (None, {"id": approval["id"]}):
            answered = {"id": "m2", "role": "assistant", "parts": [part | {"approval": wrong}]}
            refused = await http.post("/api/chat", json={"id": "t", "messages": [user, answered]})
            assert refused.status_code == 400
        answered = {"id": "m2", "role": "assistant", "parts": [part | {"approval": approval}]}
        heard = told((await http.post("/api/chat", json={"id": "t", "messages": [user, answered]})).text)
        assert "".join(event["delta"] for event in heard if event["type"] == "text-delta") == "No."
        results = [m.content for m in (await served.threads.export("t")).messages if m.role == "tool"]
        assert results == ["Error: not run, a person denied this call of pay: no money"]


async def test_openai_tells_in_words_what_waits() -> None:
    asked = {"model": "clerk", "messages": [{"role": "user", "content": "Pay."}]}
    for stream in (False, True):
        async with app(call_tool(pay, amount=1)) as served, client(make_server(served)) as http:
            got = await http.post("/v1/chat/completions", json=asked | {"stream": stream})
            if stream:
                chunks = [event["choices"][0] for event in told(got.text)]
                text = "".join(chunk["delta"].get("content") or "" for chunk in chunks)
                finish = chunks[-1]["finish_reason"]
            else:
                assert got.json()["metadata"]["status"] == "paused"
                choice = got.json()["choices"][0]
                text, finish = choice["message"]["content"], choice["finish_reason"]
            assert finish == "stop"
            assert text.startswith('[paused] pay({"amount":1}) waits for approval: POST /threads/')
