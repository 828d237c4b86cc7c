"""Agents from definitions: sessions, memory, edits while turns run, tools by name."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from desks import Gate, Models, sum_up, yes

from agboss import (
    AgentDefinition,
    AgentRuntime,
    AnswerFinish,
    DefinitionFolder,
    TaskStart,
    ToolRef,
    chain,
    create_app,
    defined_agent,
    tool,
    workflow,
)
from agboss.errors import AppStateError, AssemblyError, InvalidInputError, ThreadOwnerError
from agboss.models import ModelReply, ModelRequest
from agboss_memory import MemoryStore, SummarizingWindowConfig

CLERK = AgentDefinition(name="clerk", system_prompt="Be brief.", model="openai:gpt-5-mini")


@tool
def find_page(title: str) -> str:
    """Find a page."""
    return f"page {title}"


class Recorder:
    """A model that keeps what it was asked."""

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []

    async def generate(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        return ModelReply(text=f"answer {len(self.requests)}")


def runtime(definitions: Any = (CLERK,), **given: Any) -> AgentRuntime:
    values: dict[str, Any] = {"store": "memory://", "models": Models(yes, sum_up), **given}
    return AgentRuntime(definitions, **values)


async def test_m012_without_memory_config_summarizing_window_counts_and_the_stored_value_stays_null() -> None:
    async with runtime() as agents:
        session = await agents.open_session("clerk", "ada")
        assert (await agents.chat(session, "Hello.")).answer == "Yes."
        view = await agents.memory("clerk").view(session.thread, owner="ada")
        assert view.kind == "summarizing_window"
        assert view.config == SummarizingWindowConfig().model_dump(mode="json", by_alias=True)
        assert [agent.memory_config for agent in agents.agents()] == [None]
        with pytest.raises(ThreadOwnerError):
            await agents.memory("clerk").view(session.thread, owner="bob")


async def test_an_edited_definition_counts_from_the_next_turn_on_and_a_running_one_ends(tmp_path: Path) -> None:
    folder = DefinitionFolder(tmp_path)
    folder.save(CLERK)
    gate = Gate("From the old one.")
    async with runtime(folder, models=Models(gate, sum_up)) as agents:
        first = await agents.open_session("clerk")
        running = asyncio.create_task(agents.chat(first, "Wait."))
        await gate.reached.wait()
        async with agents.app("clerk") as old:
            agents.save(CLERK.model_copy(update={"memory_config": None, "system_prompt": "Be long."}))
            async with agents.app("clerk") as new:
                assert new is not old
        second = await agents.open_session("clerk")
        gate.open.set()
        assert (await running).answer == "From the old one."
        assert (await agents.chat(second, "Now.")).warnings == ()
        assert len((await agents.threads("clerk").get(first.thread)).terns) == 1
        with pytest.raises(AppStateError):
            await asyncio.wait_for(_closed(old), 10)


async def _closed(app: Any) -> None:
    while True:
        await app.threads.list()


async def test_a_thread_goes_on_under_the_edited_definition(tmp_path: Path) -> None:
    folder, model = DefinitionFolder(tmp_path), Recorder()
    folder.save(CLERK)
    async with runtime(tmp_path, models={"openai:gpt-5-mini": model}) as agents:
        session = await agents.open_session("clerk")
        await agents.chat(session, "One.")
        folder.save(CLERK.model_copy(update={"system_prompt": "Be long."}))
        result = await agents.chat(session, "Two.")
    assert (result.tern, result.warnings) == (2, ())
    assert model.requests[1].system == "Be long."
    assert "One." in model.requests[1].text


async def test_a_stream_can_be_watched() -> None:
    async with runtime() as agents:
        session = await agents.open_session("clerk")
        async with agents.stream(session, "Hello.") as run:
            assert run.thread == session.thread
            assert [event.type async for event in run][-1] == "ended"


async def test_tools_are_found_by_name_and_capped_per_agent() -> None:
    definition = AgentDefinition.model_validate(
        {
            "name": "clerk",
            "model": "openai:gpt-5-mini",
            "tools": [{"name": "find_page", "maxResultChars": 5}, {"name": "fetch_tool_result"}],
        }
    )
    async with runtime([definition], tools=[ToolRef(find_page)]) as agents, agents.app("clerk") as app:
        (info,) = await app.agents()
        assert info.tools == ("find_page",)
        assert info.kind == "summarizing_window"


def test_an_unknown_tool_is_told_with_the_nearest_name() -> None:
    definition = AgentDefinition.model_validate({"name": "clerk", "tools": [{"name": "find_pag"}, {"name": "x"}]})
    with pytest.raises(InvalidInputError) as caught:
        defined_agent(definition, tools=[find_page])
    assert caught.value.code == "definition.unknown-tool"
    assert caught.value.data["tools"] == ("find_pag", "x")
    assert "did you mean 'find_page'?" in caught.value.hint


def test_two_tools_of_one_name_are_refused() -> None:
    def find_page(other: str) -> str:
        """Another one."""
        return other

    with pytest.raises(InvalidInputError) as caught:
        defined_agent(CLERK, tools=[find_page, globals()["find_page"]])
    assert caught.value.code == "definition.duplicate-tool"


async def test_a_definition_is_a_node_of_a_workflow() -> None:
    clerk = defined_agent(CLERK)

    @workflow(name="desk", flow=chain(TaskStart, clerk, AnswerFinish))
    class Desk: ...

    async with create_app(Desk, store="memory://", models=Models(yes, sum_up)) as app:
        assert (await app.execute("Hello.")).path == ("task-start", "clerk", "answer-finish")


async def test_what_cannot_work_is_not_saved(tmp_path: Path) -> None:
    DefinitionFolder(tmp_path).save(CLERK)
    async with runtime(tmp_path) as agents:
        with pytest.raises(InvalidInputError, match="find_page"):
            agents.save(AgentDefinition.model_validate({"name": "clerk", "tools": [{"name": "find_page"}]}))
        with pytest.raises(AssemblyError):
            agents.save(AgentDefinition(name="clerk", model="no id at all"))
        assert agents.agent("clerk") == CLERK


async def test_a_list_is_checked_when_the_runtime_is_entered_and_cannot_be_edited() -> None:
    with pytest.raises(AssemblyError):
        async with runtime([AgentDefinition(name="clerk")]):
            pass
    with pytest.raises(InvalidInputError, match="two definitions"):
        runtime([CLERK, CLERK])
    async with runtime() as agents:
        with pytest.raises(InvalidInputError) as caught:
            agents.save(CLERK)
        assert caught.value.code == "definition.read-only"
        with pytest.raises(InvalidInputError) as caught:
            await agents.open_session("clark")
        assert caught.value.hint == "did you mean 'clerk'?"


async def test_a_bad_file_does_not_take_the_others_down(tmp_path: Path) -> None:
    DefinitionFolder(tmp_path).save(CLERK)
    (tmp_path / "bad.json").write_text("{", encoding="utf-8")
    async with runtime(tmp_path) as agents:
        assert [problem.file for problem in agents.problems()] == ["bad.json"]
        await agents.open_session("clerk")
        with pytest.raises(InvalidInputError):
            await agents.open_session("bad")


async def test_a_runtime_that_is_not_open_says_so_and_closing_twice_is_allowed() -> None:
    agents = runtime()
    with pytest.raises(AppStateError, match="async with"):
        await agents.open_session("clerk")
    async with agents:
        pass
    await agents.aclose()


async def test_the_store_is_opened_once_and_closed_last() -> None:
    calls: list[str] = []

    class Counting(MemoryStore):
        async def open(self) -> None:
            calls.append("open")

        async def close(self) -> None:
            calls.append("close")

    async with runtime(store=Counting()) as agents:
        await agents.open_session("clerk")
    assert calls == ["open", "close"]
