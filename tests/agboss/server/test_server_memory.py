"""The /memory endpoints: cases M143 to M150, and what else may be asked of memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from asgi import client
from desks import Gate, Models, desk, sum_up, yes
from httpx2 import AsyncClient

from agboss import ModelSpec, agent, create_app, tool
from agboss.models import ModelRequest
from agboss.server import make_server
from agboss.testing import MakeApp, MockCompaction, MockLlm, call_tool
from agboss_memory.tokens import counter_for

FIELDS = {
    "kind",
    "config",
    "systemPrompt",
    "systemPromptTokens",
    "messages",
    "leftOut",
    "totalTokens",
    "tokenCounterName",
    "contextWindowTokens",
}
ROW = {
    "type",
    "role",
    "sequenceNum",
    "sentAtMs",
    "tokens",
    "content",
    "compressed",
    "compressedContent",
    "compressedTokenCount",
    "state",
}
MODEL = ModelSpec("ollama:test", context_window=1000)
COMPRESSING = {
    "kind": "summarizing_window",
    "minToolResultCompressTokens": 50,
    "toolResultThresholdRatio": 0.001,
    "compressWhenWindowAboveRatio": 0.01,
}


@tool
def look_up(topic: str) -> str:
    """Look something up.

    Args:
        topic: What.
    """
    return f"{topic}: " + "fact " * 120


def helper(config: Any, **more: Any) -> type[Any]:
    @agent(name="helper", model=more.pop("model", MODEL), prompt="Be brief.", memory_config=config, **more)
    class Helper: ...

    return Helper


async def talk(http: AsyncClient, *tasks: str, thread: str | None = None) -> str:
    known: str = thread or (await http.post("/threads")).json()["id"]
    for task in tasks:
        ran = await http.post(f"/threads/{known}/terns", json={"input": task})
        assert ran.status_code == 200, ran.text
    return known


def total(sent: ModelRequest) -> int:
    """Text tokens of a request: its system text and what its messages say."""
    counter = counter_for("ollama:test")
    return sum(counter.count([sent.system, *(message.content for message in sent.messages)]))


async def test_m143_the_fields_and_a_total_in_which_nothing_counts_twice(
    agboss_app: MakeApp, mock_llm: MockLlm
) -> None:
    Helper = helper({"kind": "full"})
    mock_llm(Helper).then_return("one", "two", "three")
    async with agboss_app(Helper) as app, client(make_server(app)) as http:
        thread = await talk(http, "a", "b")
        found = (await http.get(f"/threads/{thread}/memory")).json()
        await talk(http, "c", thread=thread)
    assert set(found) >= FIELDS
    assert all(set(row) >= ROW for row in found["messages"])
    assert (found["kind"], found["config"]) == ("full", {"kind": "full", "maxHistoryFetch": 500})
    assert (found["systemPrompt"], found["contextWindowTokens"]) == ("Be brief.", 1000)
    assert [(row["type"], row["role"], row["sequenceNum"], row["content"]) for row in found["messages"]] == [
        ("CHAT", "user", 1, "a"),
        ("CHAT", "assistant", 2, "one"),
        ("CHAT", "user", 3, "b"),
        ("CHAT", "assistant", 4, "two"),
    ]
    assert found["totalTokens"] == found["systemPromptTokens"] + sum(row["tokens"] for row in found["messages"])
    assert found["totalTokens"] + counter_for("ollama:test").count(["c"])[0] == total(mock_llm(Helper).requests[-1])


async def test_m143_of_turn_memory_summaries_come_first_and_the_rows_add_up() -> None:
    async with create_app(desk(), store="memory://", models=Models(yes, sum_up)) as app:
        async with client(make_server(app)) as http:
            thread = await talk(http, "a", "b", "c")
            found = (await http.get(f"/threads/{thread}/memory")).json()
    assert found["kind"] == "turns"
    (summary,) = [row for row in found["messages"] if row["type"] == "SUMMARY"]
    assert (summary["sequenceNum"], summary["compressed"], summary["state"]) == (-100, True, "summary")
    assert "In short." in summary["compressedContent"]
    assert found["totalTokens"] == found["systemPromptTokens"] + sum(row["tokens"] for row in found["messages"])


async def test_m145_of_a_compressed_message_the_stub_counts_and_the_original_is_told(
    agboss_app: MakeApp, mock_llm: MockLlm
) -> None:
    Helper = helper(COMPRESSING, tools=[look_up], model=ModelSpec("ollama:test", context_window=8000))
    mock_llm(Helper).then_return(*[call_tool(look_up, topic=topic) for topic in "xyzuv"], "found")
    async with agboss_app(Helper) as app, client(make_server(app)) as http:
        thread = await talk(http, "a")
        rows: Sequence[Any] = (await http.get(f"/threads/{thread}/memory")).json()["messages"]
        row = next(row for row in rows if row["type"] == "TOOL_RESULT")
        assert (row["state"], row["compressed"], row["content"]) == ("compressed", True, look_up("x"))
        assert (
            row["tokens"]
            == row["compressedTokenCount"]
            == counter_for("ollama:test").count([row["compressedContent"]])[0]
        )
        full = await http.get(f"/threads/{thread}/tool-results/m-{row['sequenceNum']}")
        assert full.json() == {"id": f"m-{row['sequenceNum']}", "content": look_up("x")}
        for wrong in ("m-1", "m-99", "m-", "x", "m-" + "9" * 30):
            assert (await http.get(f"/threads/{thread}/tool-results/{wrong}")).status_code == 404


async def test_m146_a_change_after_the_turn_shows_in_the_next_view(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    Helper = helper({"kind": "windowed", "windowSize": 2})
    mock_llm(Helper).then_return("one", "two")
    async with agboss_app(Helper) as app, client(make_server(app)) as http:
        thread = await talk(http, "a")
        before = (await http.get(f"/threads/{thread}/memory")).json()
        await app.execute("b", thread=thread)
        after = (await http.get(f"/threads/{thread}/memory")).json()
    assert [row["content"] for row in before["messages"]] == ["a", "one"]
    assert [row["content"] for row in after["messages"]] == ["b", "two"]


async def test_m148_compact_tells_the_count_and_the_view_is_fresh(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    Helper = helper({"kind": "auto_compact"})
    mock_llm(Helper).then_return("one", "two", "three")
    mock_compaction(Helper).then_return("Ada said a and b.")
    async with agboss_app(Helper) as app, client(make_server(app)) as http:
        thread = await talk(http, "a", "b", "c")
        done = (await http.post(f"/threads/{thread}/memory/compact", params={"agent": "helper"})).json()
        assert set(done) == {"threadId", "compressedMessages", "summaries"}
        assert done["threadId"] == thread
        assert done["compressedMessages"] > 0
        (summary,) = done["summaries"]
        assert summary["text"] == "Ada said a and b."
        found = (await http.get(f"/threads/{thread}/memory")).json()
        assert found["messages"][0]["sequenceNum"] == -100
        undone = (await http.post(f"/threads/{thread}/memory/undo")).json()
        assert undone["summary"]["state"] == "retired"
        assert (await http.post(f"/threads/{thread}/memory/undo")).json() == {"summary": None}


async def test_a_compact_that_stops_tells_what_was_made_before() -> None:
    answers = ["Ada said a."]

    async def once(_: ModelRequest) -> str:
        if answers:
            return answers.pop()
        raise ConnectionError("no route to 10.0.0.7")

    app = create_app(desk(every=1), store="memory://", models=Models(yes, once))
    async with app, client(make_server(app)) as http:
        thread = await talk(http, "a")
        answers.clear()
        await talk(http, "b", "c", thread=thread)
        answers.append("They said b.")
        done = await http.post(f"/threads/{thread}/memory/compact")
        assert done.status_code == 200
        told = done.json()
        assert set(told) == {"threadId", "compressedMessages", "summaries", "stopped"}
        assert [one["text"] for one in told["summaries"]] == ["They said b."]
        assert (told["compressedMessages"], told["stopped"]["code"]) == (1, "compaction.failed")
        assert "10.0.0.7" not in done.text
        nothing = await http.post(f"/threads/{thread}/memory/compact")
        assert (nothing.status_code, nothing.json()["code"]) == (502, "compaction.failed")


async def test_nothing_to_gain_is_no_fault() -> None:
    async def long(_: ModelRequest) -> str:
        return "word " * 150

    Helper = helper({"kind": "auto_compact"})
    app = create_app(Helper, store="memory://", models=Models(yes, long))
    async with app, client(make_server(app)) as http:
        thread = await talk(http, "Ada likes tea. " * 5, "Bob likes milk. " * 5, "c")
        done = await http.post(f"/threads/{thread}/memory/compact")
        assert done.status_code == 200, done.text
        told = done.json()
        assert (told["compressedMessages"], told["summaries"]) == (0, [])
        assert told["stopped"]["code"] == "compaction.no-progress"


async def test_a_summary_that_is_not_there_cannot_be_undone(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    Helper = helper({"kind": "auto_compact"})
    mock_llm(Helper).then_return("one", "two", "three")
    mock_compaction(Helper).then_return("Ada said a and b.")
    async with agboss_app(Helper) as app, client(make_server(app)) as http:
        thread = await talk(http, "a", "b", "c")
        path, body = f"/threads/{thread}/memory/undo", {"summary": 77}
        none = await http.post(path, json=body)
        assert (none.status_code, none.json()["code"]) == (404, "memory.no-such-summary")
        made = (await http.post(f"/threads/{thread}/memory/compact")).json()["summaries"][0]["id"]
        refused = await http.post(path, json=body)
        assert refused.json()["hint"] == f"those that can be undone: {made}"
        assert (await http.post(path, json={"summary": made})).json()["summary"]["id"] == made


async def test_m149_an_unknown_thread_never_reaches_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    async with create_app(desk(), store="memory://", models=Models(yes, sum_up)) as app:
        await app.execute("a", thread="adas", create_thread=True, owner="ada")
        token = "bob-token-0123456789"
        async with client(make_server(app, tokens={token: "bob"}), token) as http:

            async def reached(*_: object, **__: object) -> None:
                raise AssertionError("the memory was reached")

            monkeypatch.setattr(app.memory, "view", reached)
            monkeypatch.setattr(app.memory, "compact", reached)
            answers = [
                await http.request(method, f"/threads/{thread}/memory{path}")
                for thread in ("adas", "nobody")
                for method, path in (("GET", ""), ("POST", "/compact"))
            ]
    assert [answer.status_code for answer in answers] == [404] * 4
    assert len({answer.content for answer in answers}) == 1


async def test_m150_a_summariser_that_is_down_is_a_typed_error_and_nothing_changes() -> None:
    async def down(_: ModelRequest) -> str:
        raise ConnectionError("no route to 10.0.0.7")

    Helper = helper({"kind": "auto_compact"})
    async with create_app(Helper, store="memory://", models=Models(yes, down)) as app:
        async with client(make_server(app)) as http:
            thread = await talk(http, "a", "b", "c")
            before = (await http.get(f"/threads/{thread}/memory")).json()
            failed = await http.post(f"/threads/{thread}/memory/compact")
            assert (failed.status_code, failed.json()["code"]) == (502, "compaction.failed")
            assert "10.0.0.7" not in failed.text
            assert (await http.get(f"/threads/{thread}/memory")).json() == before


async def test_an_agent_must_be_named_when_there_are_several() -> None:
    from agboss import AnswerFinish, TaskStart, chain, workflow

    @agent(name="first", model=MODEL, prompt="x")
    class First: ...

    @agent(name="second", model=MODEL, prompt="x")
    class Second: ...

    @workflow(name="pair", flow=chain(TaskStart, First, Second, AnswerFinish))
    class Pair: ...

    async with create_app(Pair, store="memory://", models=Models(yes, sum_up)) as app:
        async with client(make_server(app)) as http:
            thread = await talk(http, "a")
            refused = await http.get(f"/threads/{thread}/memory")
            assert (refused.status_code, refused.json()["code"]) == (400, "memory.which-agent")
            assert refused.json()["hint"] == "name one of: first, second"
            assert (await http.get(f"/threads/{thread}/memory?agent=second")).json()["agent"] == "second"
            assert (await http.get(f"/threads/{thread}/memory?agent=third")).status_code == 400


async def test_an_earlier_call_is_explained_and_another_config_is_tried(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    Helper = helper({"kind": "full"})
    mock_llm(Helper).then_return("one", "two")
    async with agboss_app(Helper) as app, client(make_server(app)) as http:
        thread = await talk(http, "a", "b")
        path = f"/threads/{thread}/memory"
        told = (await http.get(f"{path}/explain", params={"tern": 2, "call": 0})).json()
        assert [row["content"] for row in told["messages"]] == ["a", "one", "b"]
        missing = await http.get(f"{path}/explain", params={"tern": 2, "call": 5})
        assert (missing.status_code, missing.json()["code"]) == (404, "memory.no-such-call")
        tried = (await http.post(f"{path}/what-if", json={"config": {"kind": "windowed", "windowSize": 1}})).json()
        assert [call["shown"] for call in tried["calls"]] == [1, 1]
        wrong = await http.post(f"{path}/what-if", json={"config": {"kind": "windowed", "windowSise": 1}})
        assert (wrong.status_code, wrong.json()["problems"][0]["pointer"]) == (400, "/windowSise")


async def test_compact_is_refused_while_a_tern_runs_and_looking_is_not() -> None:
    import asyncio

    gate = Gate()
    async with create_app(desk(), store="memory://", models=Models(gate, sum_up)) as app:
        async with client(make_server(app)) as http:
            thread = (await http.post("/threads")).json()["id"]
            running = asyncio.create_task(http.post(f"/threads/{thread}/terns", json={"input": "a"}))
            await gate.reached.wait()
            for path in ("compact", "undo"):
                busy = await http.post(f"/threads/{thread}/memory/{path}")
                assert (busy.status_code, busy.json()["code"]) == (409, "run.thread-busy")
            assert (await http.get(f"/threads/{thread}/memory")).status_code == 200
            gate.open.set()
            await running
