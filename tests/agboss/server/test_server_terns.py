"""Terns over HTTP: results, keys, errors, event streams, clients that vanish."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from asgi import Streamed, client, events
from desks import Gate, Helper, Models, desk, sum_up, yes
from pydantic import BaseModel

from agboss import (
    AnswerFinish,
    App,
    Finish,
    Start,
    TaskStart,
    TernStatus,
    agent,
    chain,
    create_app,
    workflow,
    workflow_finish,
    workflow_start,
)
from agboss.models import ModelRequest
from agboss.server import log as server_log
from agboss.server import make_server

STREAM = {"accept": "text/event-stream"}


def app(answer: Any = yes, **given: Any) -> App:
    return create_app(desk(every=None), store="memory://", models=Models(answer, sum_up), **given)


async def new_thread(http: Any) -> str:
    return (await http.post("/threads")).json()["id"]


async def test_a_key_makes_a_tern_once() -> None:
    models = Models(yes, sum_up)
    async with create_app(desk(every=None), store="memory://", models=models) as served:
        async with client(make_server(served)) as http:
            thread = await new_thread(http)
            key = {"Idempotency-Key": "k1"}
            first = await http.post(f"/threads/{thread}/terns", json={"input": "Hello."}, headers=key)
            again = await http.post(f"/threads/{thread}/terns", json={"input": "Hello."}, headers=key)
            other = await http.post(f"/threads/{thread}/terns", json={"input": "Other."}, headers=key)
    assert (first.json()["tern"], again.json()["tern"], again.json()["answer"]) == (1, 1, "Yes.")
    assert (other.status_code, other.json()["code"]) == (409, "run.idempotency-conflict")
    assert models.calls == ["agent"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/input"),
        ({"input": 3}, "/input/str"),
        ({"input": "x", "detatch": True}, "/detatch"),
        ({"input": "x", "timeout": 0}, "/timeout"),
        ({"input": "x", "attachments": [{"name": "a", "data": "!"}]}, "/attachments/0/data"),
    ],
)
async def test_a_wrong_body_is_told_with_its_place(body: Any, pointer: str) -> None:
    async with app() as served, client(make_server(served)) as http:
        thread = await new_thread(http)
        refused = await http.post(f"/threads/{thread}/terns", json=body)
        assert (refused.status_code, refused.headers["content-type"]) == (400, "application/problem+json")
        assert pointer in [problem["pointer"] for problem in refused.json()["problems"]]
        broken = await http.post(f"/threads/{thread}/terns", content=b'{"input": ')
        assert (broken.status_code, broken.json()["code"]) == (400, "server.bad-json")
        assert (await http.get(f"/threads/{thread}")).json()["terns"] == []


async def test_a_typed_start_takes_fields_and_may_be_named() -> None:
    class Order(BaseModel):
        number: int

    @workflow_start(name="order", input=Order)
    class OrderStart(Start[Order]): ...

    @workflow(name="orders", flow=chain(OrderStart, Helper, AnswerFinish))
    class Orders: ...

    async with create_app(Orders, store="memory://", models=Models(yes, sum_up)) as served:
        async with client(make_server(served)) as http:
            thread = await new_thread(http)
            path = f"/threads/{thread}/terns"
            assert (await http.post(path, json={"input": {"number": 7}})).status_code == 200
            assert (await http.post(path, json={"input": {"number": 8}, "start": "order"})).status_code == 200
            wrong = await http.post(path, json={"input": {"number": 8}, "start": "odre"})
            assert (wrong.status_code, wrong.json()["code"]) == (400, "run.wrong-start")
            bad = await http.post(path, json={"input": {"number": "x"}})
            assert (bad.status_code, bad.json()["code"]) == (400, "run.invalid-input")


async def test_a_file_comes_with_a_task() -> None:
    seen: list[str] = []

    async def look(request: ModelRequest) -> str:
        seen.append(request.text)
        return "Seen."

    async with app(look) as served, client(make_server(served)) as http:
        thread = await new_thread(http)
        files = [{"name": "note.txt", "mediaType": "text/plain", "data": "SGVsbG8="}]
        ran = await http.post(f"/threads/{thread}/terns", json={"input": "Read.", "attachments": files})
        assert ran.status_code == 200
        (tern,) = (await http.get(f"/threads/{thread}")).json()["terns"]
        assert [(item["name"], item["mediaType"]) for item in tern["attachments"]] == [("note.txt", "text/plain")]


async def test_a_busy_thread_is_told() -> None:
    gate = Gate()
    async with app(gate, thread_policy="reject") as served:
        server = make_server(served)
        async with client(server) as http:
            thread = await new_thread(http)
            running = asyncio.create_task(http.post(f"/threads/{thread}/terns", json={"input": "Wait."}))
            await gate.reached.wait()
            busy = await http.post(f"/threads/{thread}/terns", json={"input": "Me too."})
            assert (busy.status_code, busy.json()["code"]) == (409, "run.thread-busy")
            assert busy.headers["retry-after"] == "1"
            assert (await http.post(f"/threads/{thread}/memory/compact")).status_code == 409
            gate.open.set()
            assert (await running).json()["answer"] == "Through the gate."


async def test_what_a_model_raises_stays_in_the_log() -> None:
    async def fail(_: ModelRequest) -> str:
        raise RuntimeError("key sk-very-secret was refused")

    async with app(fail) as served:
        server = make_server(served)
        async with client(server) as http:
            thread = await new_thread(http)
            failed = await http.post(f"/threads/{thread}/terns", json={"input": "Hello."})
            streamed = await http.post(f"/threads/{thread}/terns", json={"input": "Hello."}, headers=STREAM)
    assert failed.status_code >= 500
    assert "sk-very-secret" not in failed.text + streamed.text
    assert failed.json()["run"]["tern"] == 1
    (_, kind, data) = events(streamed.text)[-1]
    assert (kind, data["status"], data["run"]["tern"]) == ("failed", failed.status_code, 2)


async def test_a_time_out_is_told() -> None:
    async with app(Gate()) as served, client(make_server(served)) as http:
        thread = await new_thread(http)
        late = await http.post(f"/threads/{thread}/terns", json={"input": "Hello.", "timeout": 0.05})
        assert (late.status_code, late.json()["code"]) == (504, "run.timeout")


async def test_events_come_while_a_tern_runs_and_from_any_position() -> None:
    gate = Gate()
    async with app(gate) as served:
        server = make_server(served)
        async with client(server) as http:
            thread = await new_thread(http)
            first = Streamed(server, "POST", f"/threads/{thread}/terns", {"input": "Hello."}, **STREAM)
            begun = events(await first.until("node_started"))
            assert [kind for _, kind, _ in begun] == ["tern_started", "node_started"]
            path = f"/threads/{thread}/terns/1/events"
            second = Streamed(server, "GET", path, last_event_id="1")
            assert [number for number, _, _ in events(await second.until("node_started"))] == [2]
            gate.open.set()
            rest = events(await first.rest())
            assert rest == events(await second.rest())
            assert [kind for _, kind, _ in rest] == ["node_finished", "answered", "ended"]
            again = await http.get(path, headers={"Last-Event-ID": "2"})
            assert events(again.text) == rest
            beyond = await http.get(path, headers={"Last-Event-ID": "99"})  # a number that was never given
            assert beyond.text == (await http.get(path)).text
            assert events(beyond.text)[-1] == rest[-1]
            assert (await http.get(path, headers={"Last-Event-ID": "x"})).status_code == 400
            none = await http.get(f"/threads/{thread}/terns/2/events")
            assert (none.status_code, none.json()["code"]) == (404, "server.no-events")


async def test_events_that_are_not_kept_any_more_leave_a_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_log, "MOST_EVENTS", 2)
    async with app() as served, client(make_server(served)) as http:
        thread = await new_thread(http)
        await http.post(f"/threads/{thread}/terns", json={"input": "Hello."})
        kept = events((await http.get(f"/threads/{thread}/terns/1/events")).text)
    assert [(number, kind) for number, kind, _ in kept] == [(3, "gap"), (4, "answered"), (5, "ended")]
    assert kept[0][2] == {"type": "gap", "from": 1, "to": 3}


async def status_of(served: App, thread: str) -> list[TernStatus]:
    return [tern.status for tern in (await served.threads.get(thread)).terns]


@pytest.mark.parametrize("headers", [STREAM, {}])
async def test_a_client_that_vanishes_leaves_no_tern_running(headers: dict[str, str]) -> None:
    gate = Gate()
    async with app(gate) as served:
        server = make_server(served)
        async with client(server) as http:
            thread = await new_thread(http)
            asked = Streamed(server, "POST", f"/threads/{thread}/terns", {"input": "Hello."}, **headers)
            await gate.reached.wait()
            await asked.vanish()
            (log,) = server.state.service.runs.running
            await log.task
            assert gate.cancelled
            assert await status_of(served, thread) == [TernStatus.CANCELLED]
            assert "agboss_terns_running 0" in (await http.get("/metrics")).text


async def test_a_detached_tern_goes_on_and_can_be_listened_to_again() -> None:
    gate = Gate()
    async with app(gate) as served:
        server = make_server(served)
        async with client(server) as http:
            thread = await new_thread(http)
            body = {"input": "Hello.", "detach": True}
            asked = Streamed(server, "POST", f"/threads/{thread}/terns", body, **STREAM)
            await gate.reached.wait()
            await asked.vanish()
            again = Streamed(server, "GET", f"/threads/{thread}/terns/1/events")
            await again.until("node_started")
            gate.open.set()
            assert "Through the gate." in await again.rest()
            assert await status_of(served, thread) == [TernStatus.ANSWERED]


async def test_a_client_with_a_key_comes_again_for_the_result() -> None:
    gate = Gate()
    async with app(gate) as served:
        server = make_server(served)
        async with client(server) as http:
            thread = await new_thread(http)
            path = f"/threads/{thread}/terns"
            lost = Streamed(server, "POST", path, {"input": "Hello."}, idempotency_key="k1")
            await gate.reached.wait()
            await lost.vanish()
            gate.open.set()
            again = await http.post(path, json={"input": "Hello."}, headers={"Idempotency-Key": "k1"})
            assert (again.status_code, again.json()["tern"]) == (200, 1)
            assert await status_of(served, thread) == [TernStatus.ANSWERED]


async def test_names_that_the_user_gave_are_left_alone() -> None:
    class Weather(BaseModel):
        air_pressure: int

    @workflow_finish(name="weather", output=Weather)
    class Report(Finish[Weather]): ...

    @agent(name="watcher", model="openai:gpt-5-mini", prompt="x", output=Weather)
    class Watcher: ...

    @workflow(name="weather-desk", flow=chain(TaskStart, Watcher, Report))
    class WeatherDesk: ...

    async def measure(_: ModelRequest) -> str:
        return '{"air_pressure": 1013}'

    async with create_app(WeatherDesk, store="memory://", models=Models(measure, sum_up)) as served:
        async with client(make_server(served)) as http:
            thread = await new_thread(http)
            body = {"input": "Hello.", "metadata": {"my_key": {"inner_key": 1}}}
            done = (await http.post(f"/threads/{thread}/terns", json=body)).json()
            assert done["output"] == {"air_pressure": 1013}
            (tern,) = (await http.get(f"/threads/{thread}")).json()["terns"]
            assert json.loads(tern["metadata"]) == body["metadata"]


async def test_a_client_that_vanishes_within_its_body_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    async with app() as served:
        server = make_server(served)
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/threads",
            "raw_path": b"/threads",
            "query_string": b"",
            "headers": [(b"host", b"localhost")],
        }

        async def receive() -> dict[str, Any]:
            return {"type": "http.disconnect"}

        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        await server(scope, receive, send)
    assert (sent, caplog.records) == ([], [])


async def test_of_two_listeners_the_last_one_takes_the_tern_along() -> None:
    gate = Gate()
    async with app(gate) as served:
        server = make_server(served)
        async with client(server) as http:
            thread = await new_thread(http)
            first = Streamed(server, "POST", f"/threads/{thread}/terns", {"input": "Hello."}, **STREAM)
            await first.until("node_started")
            second = Streamed(server, "GET", f"/threads/{thread}/terns/1/events")
            await second.until("node_started")
            await first.vanish()
            assert not gate.cancelled
            (log,) = server.state.service.runs.running
            await second.vanish()
            await log.task
            assert gate.cancelled


async def test_a_client_that_vanishes_while_it_waits_for_its_thread_never_runs() -> None:
    gate = Gate()
    async with app(gate) as served:
        server = make_server(served)
        async with client(server) as http:
            thread = await new_thread(http)
            first = asyncio.create_task(http.post(f"/threads/{thread}/terns", json={"input": "One."}))
            await gate.reached.wait()
            second = Streamed(server, "POST", f"/threads/{thread}/terns", {"input": "Two."}, **STREAM)
            await second.asked.wait()
            await second.vanish()
            gate.open.set()
            assert (await first).status_code == 200
            assert [tern.task for tern in (await served.threads.get(thread)).terns] == ["One."]


async def test_a_tern_can_be_cancelled() -> None:
    gate = Gate()
    async with app(gate) as served:
        server = make_server(served)
        async with client(server) as http:
            thread = await new_thread(http)
            assert (await http.post(f"/threads/{thread}/cancel")).json() == {"cancelled": False}
            asked = Streamed(server, "POST", f"/threads/{thread}/terns", {"input": "Hello."}, **STREAM)
            await gate.reached.wait()
            assert (await http.post(f"/threads/{thread}/cancel")).json() == {"cancelled": True}
            assert events(await asked.rest())[-1][2]["code"] == "run.cancelled"
            assert await status_of(served, thread) == [TernStatus.CANCELLED]


async def test_events_that_are_not_kept_are_told_from_the_store() -> None:
    async def fail(request: ModelRequest) -> str:
        if "fail" in request.text:
            raise RuntimeError("key sk-very-secret was refused")
        return "Yes."

    async with app(fail) as served:
        async with client(make_server(served)) as http:
            thread = await new_thread(http)
            for task in ("Hello.", "Please fail."):
                await http.post(f"/threads/{thread}/terns", json={"input": task})
        async with client(make_server(served)) as http:
            told = await http.get(f"/threads/{thread}/terns/1/events", headers={"Last-Event-ID": "7"})
            assert [(kind, data.get("answer")) for _, kind, data in events(told.text)] == [
                ("answered", "Yes."),
                ("ended", "Yes."),
            ]
            failed = await http.get(f"/threads/{thread}/terns/2/events")
            assert [kind for _, kind, _ in events(failed.text)] == ["failed"]
            assert "sk-very-secret" not in failed.text


@pytest.mark.parametrize("task", ["", "  \n"])
async def test_an_empty_task_is_refused_at_every_door(task: str) -> None:
    async with app() as served, client(make_server(served)) as http:
        thread = await new_thread(http)
        said = [{"role": "user", "content": task, "parts": [{"type": "text", "text": task}]}]
        for path, body in (
            (f"/threads/{thread}/terns", {"input": task}),
            ("/v1/chat/completions", {"model": served.name, "messages": said}),
            ("/ag-ui", {"threadId": "new", "runId": "r", "messages": said}),
            ("/api/chat", {"id": "new", "messages": said}),
        ):
            refused = await http.post(path, json=body)
            told = refused.json()
            assert (refused.status_code, told.get("code") or told["error"]["code"]) == (400, "server.no-task")
        listed = (await http.get("/threads")).json()["threads"]
        assert [(one["id"], one["terns"]) for one in listed] == [(thread, 0)]
