"""Agents with a ``memory_config`` in a workflow: what they see, what is stored, what is told."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from agboss import (
    AgbossError,
    AnswerFinish,
    App,
    AssemblyError,
    Compaction,
    Defaults,
    FunctionRouter,
    History,
    InvalidInputError,
    ModelSpec,
    RouteRequest,
    TaskStart,
    ToolRef,
    UnknownThreadError,
    agent,
    chain,
    create_app,
    from_,
    router,
    tool,
    workflow,
)
from agboss.testing import MakeApp, MockCompaction, MockLlm, call_tool
from agboss.testing.steps import Call
from agboss_memory import AutoCompactConfig, SlidingWindowStrategy

SPEC = ModelSpec("ollama:test", context_window=1000)


def helper(config: Any, **more: Any) -> type[Any]:
    @agent(name="helper", model=more.pop("model", SPEC), prompt="Be brief.", memory_config=config, **more)
    class Helper: ...

    return Helper


@tool
def look_up(topic: str) -> str:
    """Look something up.

    Args:
        topic: What.
    """
    return f"{topic}: " + "fact " * 300


async def talk(app: App, *tasks: str, thread: str = "t") -> list[Any]:
    return [await app.execute(task, thread=thread, create_thread=True) for task in tasks]


def flat(error: AssemblyError) -> list[AgbossError]:
    return [one for one in error.exceptions if isinstance(one, AgbossError)]


async def shown(app: App, **which: Any) -> list[str]:
    return [row.shown for row in (await app.memory.view("t", **which)).messages]


async def test_an_agent_sees_its_own_conversation_message_by_message(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    Helper = helper({"kind": "windowed", "windowSize": 3})
    mock_llm(Helper).then_return("one", "two", "three")
    async with agboss_app(Helper) as app:
        await talk(app, "a", "b", "c")
        sent = mock_llm(Helper).requests[-1].messages
        assert [(message.role, message.content) for message in sent] == [
            ("user", "b"),
            ("assistant", "two"),
            ("user", "c"),
        ]
        view = await app.memory.view("t")
    assert view.kind == "windowed"
    assert view.config == {"kind": "windowed", "windowSize": 3}
    assert [(row.sequence_num, row.content, row.last_tern) for row in view.messages] == [(5, "c", 3), (6, "three", 3)]
    assert [(gap.first, gap.last, gap.reason) for gap in view.left_out] == [
        (1, 3, "beyond_reach"),
        (4, 4, "no_opening_user"),
    ]


@pytest.mark.parametrize("config", ['{"kind": "full"}', {"kind": "full"}])
async def test_full_sends_everything(agboss_app: MakeApp, mock_llm: MockLlm, config: Any) -> None:
    Helper = helper(config)
    mock_llm(Helper).then_return("one", "two", "three")
    async with agboss_app(Helper) as app:
        await talk(app, "a", "b", "c")
    assert [message.content for message in mock_llm(Helper).requests[-1].messages] == ["a", "one", "b", "two", "c"]


async def test_none_sends_the_running_turn_alone(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    Helper = helper({"kind": "none"}, tools=[look_up])
    mock_llm(Helper).then_return("one", call_tool(look_up, topic="x"), "two")
    async with agboss_app(Helper) as app:
        await talk(app, "a", "b")
        assert await shown(app) == []
    assert [message.role for message in mock_llm(Helper).requests[-1].messages] == ["user", "assistant", "tool"]


async def test_auto_compact_folds_after_the_turn_and_tells(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    Helper = helper(AutoCompactConfig(compact_at_ratio=Decimal("0.1")))
    mock_llm(Helper).then_return("one " * 60, "two " * 60, "three")
    mock_compaction(Helper).then_return("Ada asked twice.")
    async with agboss_app(Helper) as app:
        first, second = await talk(app, "a", "b")
        assert first.memory is None
        assert second.memory == "messages 1–4 → summary"
        (summary,) = second.compaction.conversations
        assert (summary.first, summary.last, summary.kind, summary.agent) == (1, 4, "auto_compact", "helper")
        assert summary.model == "ollama:test"
        assert [record.purpose for record in second.usage] == ["answer", "compaction"]
        assert "one one" in mock_compaction(Helper).requests[0].text
        view = await app.memory.view("t")
        assert [(row.type, row.sequence_num, row.first_tern, row.last_tern) for row in view.messages] == [
            ("SUMMARY", -100, 1, 2)
        ]
        (third,) = await talk(app, "c")
        assert third.memory is None
        sent = mock_llm(Helper).requests[-1].messages
        assert [message.role for message in sent] == ["user", "user"]
        assert "session is being continued" in sent[0].content
        assert "Ada asked twice." in sent[0].content
        assert view.messages[0].shown in sent[0].content
        retired = await app.memory.undo("t")
        assert retired is not None
        assert retired.state == "retired"
        assert len(await shown(app)) == 6
        thread = await app.threads.get("t")
        assert [tern.answer for tern in thread.terns][2] == "three"
        assert [record.purpose for record in thread.terns[1].usage] == ["answer", "compaction"]


async def test_summaries_may_stand_in_the_system_prompt(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    Helper = helper({"kind": "summarizing_window", "autoSummarize": True, "autoSummarizeRatio": 0.1})
    mock_llm(Helper).then_return("one " * 150, "two", "three")
    mock_compaction.then_return("Ada asked once.")
    async with agboss_app(Helper) as app:
        first, second = await talk(app, "a", "b")
        assert first.memory is None, "the newest turn stays"
        assert second.memory == "messages 1–2 → summary"
        view = await app.memory.view("t")
        await talk(app, "c")
        request = mock_llm(Helper).requests[-1]
        assert request.system == view.system_prompt
        assert request.system.startswith("Be brief.\n\nEarlier conversation")
        assert "Ada asked once." in request.system
        assert [message.content for message in request.messages] == ["b", "two", "c"]
        counted = view.system_prompt_tokens + sum(row.tokens for row in view.messages)
        assert view.total_tokens == counted


async def test_the_view_is_the_next_request(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    Helper = helper(
        {"kind": "auto_compact", "toolResultEviction": {"aboveTokens": 100}}, tools=[look_up], model=SPEC.with_values()
    )
    mock_llm(Helper).then_return(call_tool(look_up, topic="x"), "one", "two", "three")
    async with agboss_app(Helper) as app:
        await talk(app, "a", "b")
        view = await app.memory.view("t")
        await talk(app, "c")
        sent = mock_llm(Helper).requests[-1].messages[:-1]
        assert [row.shown for row in view.messages] == [message.content for message in sent]
        evicted = next(row for row in view.messages if row.state == "evicted")
        assert evicted.compressed
        assert evicted.content.startswith("x: fact")
        assert evicted.shown.startswith("[Tool result evicted")


async def test_a_stub_offers_fetch_tool_result(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    config = {"kind": "auto_compact", "toolResultEviction": {"afterTurns": 1, "aboveTokens": 10}}
    Helper = helper(config, tools=[ToolRef(look_up, max_result_chars=400)])
    fetch = Call(tool="fetch_tool_result", arguments='{"id": "m-3"}', strict=True)
    wrong = Call(tool="fetch_tool_result", arguments='{"id": "m-1"}')
    mock_llm(Helper).then_return(call_tool(look_up, topic="x"), "one", (fetch, wrong), "two")
    async with agboss_app(Helper) as app:
        await talk(app, "a")
        first = mock_llm(Helper).requests[0]
        assert [one.name for one in first.tools] == ["look_up"]
        await talk(app, "b")
        asked = mock_llm(Helper).requests[2]
        assert [one.name for one in asked.tools] == ["look_up", "fetch_tool_result"]
        assert "m-3" in asked.messages[2].content
        whole, none = mock_llm(Helper).requests[3].messages[-2:]
        assert whole.content.startswith("x: fact fact")
        assert "only its first 400" in whole.content
        assert none.content == "Error: message m-1 is no tool result."


async def test_fetch_tool_result_may_be_named_and_not_taken(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    Helper = helper({"kind": "full"}, tools=["fetch_tool_result"])
    mock_llm(Helper).then_return("one")
    async with agboss_app(Helper) as app:
        await talk(app, "a")
    assert [one.name for one in mock_llm(Helper).requests[0].tools] == ["fetch_tool_result"]

    @tool(name="fetch_tool_result")
    def mine(id: str) -> str:
        """Mine."""
        return id

    with pytest.raises(AssemblyError) as raised:
        create_app(helper({"kind": "full"}, tools=[mine]))
    assert {error.code for error in flat(raised.value)} == {"assembly.reserved-tool"}


async def test_results_of_the_running_turn_are_shortened_too(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    config = {
        "kind": "summarizing_window",
        "minToolResultCompressTokens": 50,
        "toolResultThresholdRatio": 0.001,
        "compressWhenWindowAboveRatio": 0.05,
    }
    Helper = helper(config, tools=[look_up], model=ModelSpec("ollama:test", context_window=8000))
    calls = [call_tool(look_up, topic=f"topic {n}") for n in range(5)]
    mock_llm(Helper).then_return(*calls, Call(tool="fetch_tool_result", arguments='{"id": "m-3"}'), "done")
    async with agboss_app(Helper) as app:
        await talk(app, "a")
        last = mock_llm(Helper).requests[-1].messages
        results = [message for message in last if message.role == "tool"]
        assert [message.state for message in results] == ["compressed"] * 3 + ["live"] * 3
        assert "call the tool again" in results[0].content
        assert results[-1].content.startswith("topic 0: fact"), "a result of the running turn can be fetched"
        stored = [row for row in (await app.memory.view("t")).messages if row.type == "TOOL_RESULT"]
        assert [row.state for row in stored] == ["compressed"] * 3 + ["live"] * 3
        assert all(row.content.startswith("topic") for row in stored)


async def test_every_problem_of_a_memory_config_is_told_at_once() -> None:
    @agent(name="one", model=SPEC, prompt="x", memory_config={"kind": "windowed", "windowSise": 3})
    class One: ...

    @agent(
        name="two", model=SPEC, prompt="x", memory_config={"kind": "none"}, history_limit=3,
        memory_strategy=SlidingWindowStrategy(turns=1, summaries=0),
    )  # fmt: skip
    class Two: ...

    @agent(name="three", model=SPEC, prompt="x", shares_thread=True)
    class Three: ...

    @workflow(name="w", version="1.0.0", flow=[chain(TaskStart, One, Two, Three, AnswerFinish)])
    class Desk: ...

    with pytest.raises(AssemblyError) as raised:
        create_app(Desk)
    found = {error.code: str(error) for error in flat(raised.value)}
    assert set(found) == {"memory.bad-config", "memory.two-kinds", "memory.no-effect", "memory.no-config"}
    assert "/windowSise" in found["memory.bad-config"]
    assert "did you mean 'windowSize'" in found["memory.bad-config"]
    assert "'one'" in found["memory.bad-config"]


async def test_an_agent_may_share_the_thread(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    @agent(name="alone", model=SPEC, prompt="x", memory_config={"kind": "full"})
    class Alone: ...

    @agent(name="sharing", model=SPEC, prompt="x", memory_config={"kind": "full"}, shares_thread=True)
    class Sharing: ...

    @agent(name="turns", model=SPEC, prompt="x")
    class Turns: ...

    def first_word(request: RouteRequest) -> str:
        return request.task.split()[0]

    @router(name="pick", router=FunctionRouter(first_word))
    class Pick: ...

    @workflow(
        name="w", version="1.0.0",
        flow=[chain(TaskStart, Pick), from_(Pick).routes(Alone, Sharing, Turns, then=AnswerFinish)],
    )  # fmt: skip
    class Desk: ...

    mock_llm(Alone).then_return("A1", "A2")
    mock_llm(Sharing).then_return("S1")
    mock_llm(Turns).then_return("T1")
    async with agboss_app(Desk) as app:
        await talk(app, "alone 1", "turns 2", "sharing 3", "alone 4")
        (shares,) = mock_llm(Sharing).requests
        assert [(one.role, one.content) for one in shares.messages] == [
            ("user", "alone 1"), ("assistant", "A1"), ("user", "turns 2"), ("assistant", "T1"), ("user", "sharing 3"),
        ]  # fmt: skip
        assert [one.content for one in mock_llm(Alone).requests[1].messages] == ["alone 1", "A1", "alone 4"]
        assert await shown(app, agent="sharing") == [
            "alone 1", "A1", "turns 2", "T1", "sharing 3", "S1", "alone 4", "A2",
        ]  # fmt: skip


async def test_results_of_earlier_nodes_are_part_of_the_conversation(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    @agent(name="finder", model=SPEC, prompt="x")
    class Finder: ...

    @agent(name="writer", model=SPEC, prompt="x", memory_config={"kind": "full"})
    class Writer: ...

    @workflow(name="w", version="1.0.0", flow=[chain(TaskStart, Finder, Writer, AnswerFinish)])
    class Desk: ...

    mock_llm(Finder).then_return("found", "found more")
    mock_llm(Writer).then_return("written", "again")
    async with agboss_app(Desk) as app:
        await talk(app, "a", "b")
    first, second = mock_llm(Writer).requests
    assert "found" in first.messages[0].content
    assert first.messages[0].content.endswith("Task:\na")
    assert second.messages[0].content == first.messages[0].content, "what was said stays as it was said"
    assert "found more" in second.messages[-1].content


async def test_memory_makes_at_most_four_calls_in_a_turn(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    """Promise 4, over everything that writes summaries in one Tern."""
    agents: list[type[Any]] = []
    for number in range(3):

        @agent(
            name=f"a{number}", model=SPEC, prompt="x", memory_config={"kind": "auto_compact", "compactAtRatio": 0.01}
        )
        class One: ...

        agents.append(One)

    @workflow(
        name="w", version="1.0.0", flow=[chain(TaskStart, *agents, AnswerFinish)], compaction=Compaction(every=1, keep=1),
        defaults=Defaults(history=History(limit=1)),
    )  # fmt: skip
    class Desk: ...

    for one in agents:
        mock_llm(one).then_return("word " * 50, "word " * 50)
        mock_compaction(one).then_return("Short.", "Short.")
    mock_compaction.then_return("turns", "turns")
    async with agboss_app(Desk) as app:
        first, _ = await talk(app, "a", "b")
        assert sum(record.purpose == "compaction" for record in first.usage) <= 4
        assert first.memory is not None
        assert first.memory.count("messages 1–2 → summary") == 3
        report = await app.memory.compact("t", "a0")
        assert report.summaries == ()


async def test_a_failing_summariser_never_fails_the_turn(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    Helper = helper({"kind": "auto_compact", "compactAtRatio": 0.05})
    mock_llm(Helper).then_return("one " * 60, "two " * 60)
    mock_compaction(Helper).then_fail(RuntimeError("down")).then_return("Both.")
    async with agboss_app(Helper) as app:
        first, second = await talk(app, "a", "b")
        assert first.memory is None
        assert any("RuntimeError" in line for line in first.warnings)
        assert second.memory == "messages 1–4 → summary"


async def test_what_a_past_turn_saw_can_be_explained(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    Helper = helper(
        {"kind": "auto_compact", "compactAtRatio": 0.2},
        tools=[look_up],
        model=ModelSpec("ollama:test", context_window=4000),
    )
    mock_llm(Helper).then_return("one", call_tool(look_up, topic="x"), "two " * 100, "three " * 500, "four")
    mock_compaction(Helper).then_return("All so far.")
    async with agboss_app(Helper) as app:
        await talk(app, "a", "b", "c", "d")
        for number, request in ((1, 0), (2, 1), (3, 3), (4, 4)):
            told = await app.memory.explain("t", tern=number)
            sent = mock_llm(Helper).requests[request].messages
            assert [row.shown for row in told.messages if row.type != "SUMMARY"] == [
                one.content for one in sent if one.state != "summary"
            ]
            assert all(row.reason for row in told.messages)
        inside = await app.memory.explain("t", tern=2, call=1)
        assert [row.type for row in inside.messages][-2:] == ["TOOL_CALL", "TOOL_RESULT"]


async def test_another_config_can_be_tried_on_a_stored_thread(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    Helper = helper({"kind": "full"}, tools=[look_up])
    mock_llm(Helper).then_return("one", call_tool(look_up, topic="x"), "two", "three")
    async with agboss_app(Helper) as app:
        await talk(app, "a", "b", "c")
        as_it_was = await app.memory.what_if("t", {"kind": "full"})
        assert [call.shown for call in as_it_was.calls] == [len(one.messages) for one in mock_llm(Helper).requests]
        assert [(call.tern, call.call) for call in as_it_was.calls] == [(1, 0), (2, 0), (2, 1), (3, 0)]
        tried = await app.memory.what_if("t", {"kind": "windowed", "windowSize": 2})
        assert tried.tokens < as_it_was.tokens
        with pytest.raises(InvalidInputError, match="windowSise"):
            await app.memory.what_if("t", {"kind": "windowed", "windowSise": 2})


async def test_a_message_is_told_by_its_number_also_when_the_view_leaves_it_out(
    agboss_app: MakeApp, mock_llm: MockLlm
) -> None:
    Helper = helper({"kind": "windowed", "windowSize": 2})
    mock_llm(Helper).then_return("one", "two")
    async with agboss_app(Helper) as app:
        for task in ("a", "b"):
            await app.execute(task, thread="t", create_thread=True, owner="ada")
        found = [await app.memory.message("t", number, owner="ada") for number in range(6)]
        assert [None if one is None else one.content for one in found] == [None, "a", "one", "b", "two", None]
        with pytest.raises(UnknownThreadError):
            await app.memory.message("t", 1, owner="bob")
