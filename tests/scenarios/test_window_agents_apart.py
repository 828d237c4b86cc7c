"""Faults of others, classes S and V, for agents with a conversation of their own: nobody reads what is another's."""

from __future__ import annotations

from typing import Any

import pytest

from agboss import (
    AnswerFinish,
    AssemblyError,
    FunctionRouter,
    ModelSpec,
    RouteRequest,
    TaskStart,
    agent,
    chain,
    create_app,
    from_,
    router,
    tool,
    workflow,
)
from agboss.testing import MakeApp, MockLlm, call_tool

SPEC = ModelSpec("ollama:test", context_window=4000)


@tool
def secret() -> str:
    """Gives the secret."""
    return "the secret of B"


def desk(*, looped: bool) -> tuple[type[Any], type[Any], type[Any]]:
    @agent(name="a", model=SPEC, prompt="x", memory_config={"kind": "full"})
    class A: ...

    @agent(name="b", model=SPEC, prompt="x", memory_config={"kind": "full"}, tools=[secret])
    class B: ...

    def by_round(request: RouteRequest) -> str:
        order = ("a", "b", "a", "answer-finish") if looped else ("b", "answer-finish")
        return order[request.visit - 1]

    @router(name="pick", router=FunctionRouter(by_round))
    class Pick: ...

    @workflow(
        name="w", version="1.0.0", flow=[chain(TaskStart, Pick), from_(Pick).routes(A, B, AnswerFinish, then=Pick)]
    )
    class Desk: ...

    return Desk, A, B


async def test_b114_what_an_agent_did_inside_a_turn_is_in_no_other_view(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    """Router -> A -> B -> A in one Tern: one Tern in the thread, B's calls and results only in B's own view."""
    Desk, A, B = desk(looped=True)
    mock_llm(A).then_return("one", "two", "three", "four")
    mock_llm(B).then_return(call_tool(secret), "done", "again")
    async with agboss_app(Desk) as app:
        first = await app.execute("task", thread="t", create_thread=True)
        assert first.path[1:] == ("pick", "a", "pick", "b", "pick", "a", "pick", "answer-finish")
        assert len((await app.threads.get("t")).terns) == 1
        await app.execute("next", thread="t")
        for request in mock_llm(A).requests:
            assert "the secret of B" not in request.text
        assert [one.role for one in mock_llm(B).requests[-1].messages] == [
            "user",
            "assistant",
            "tool",
            "assistant",
            "user",
        ]
        view = await app.memory.view("t", "b")
        assert [row.type for row in view.messages] == ["CHAT", "TOOL_CALL", "TOOL_RESULT", "CHAT", "CHAT", "CHAT"]


async def test_b116_an_agent_that_ran_twice_in_a_turn_sees_each_message_once(
    agboss_app: MakeApp, mock_llm: MockLlm
) -> None:
    Desk, A, B = desk(looped=True)
    mock_llm(A).then_return("one", "two")
    mock_llm(B).then_return("done")
    async with agboss_app(Desk) as app:
        await app.execute("task", thread="t", create_thread=True)
        second = mock_llm(A).requests[1].messages
        assert [one.role for one in second] == ["user", "assistant", "user"]
        assert second[0].content == "task"
        assert second[1].content == "one"
        view = await app.memory.view("t", "a")
        assert [row.shown for row in view.messages] == ["task", "one", second[2].content, "two"]


def test_b130_a_tool_with_the_name_of_a_built_in_one_is_refused() -> None:
    @tool(name="fetch_tool_result")
    def mine(id: str) -> str:
        """Mine."""
        return id

    @agent(name="a", model=SPEC, prompt="x", tools=[mine])
    class A: ...

    with pytest.raises(AssemblyError) as raised:
        create_app(A)
    assert "fetch_tool_result" in str(raised.value.exceptions[0])
