"""A tool that needs approval: the Tern is stored as paused, and a decision lets it go on, in any process, once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from agboss import (
    AgbossError,
    AnswerFinish,
    App,
    Decision,
    DeclarationError,
    InvalidInputError,
    Limits,
    PauseError,
    RunLimits,
    TaskStart,
    TernCancelledError,
    TernStatus,
    ThreadOwnerError,
    ToolContext,
    UnknownThreadError,
    agent,
    chain,
    create_app,
    tool,
    workflow,
)
from agboss.testing import MakeApp, MockLlm, ScriptedModels, call_tool, reply

ran: list[str] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:  # pyright: ignore[reportUnusedFunction]
    ran.clear()


@tool(needs_approval=True)
def refund(order: str, amount: int = 1) -> str:
    """Pay money back."""
    ran.append(f"refund {order} {amount}")
    return f"refunded {amount}"


@tool
def find(order: str, ctx: ToolContext) -> str:
    """Find an order."""
    ran.append(f"find {order}")
    ctx.report_cost(2, "search")
    return "found"


class Letter(BaseModel):
    to: str
    text: str = ""


async def _outside(args: Letter, ctx: ToolContext) -> bool:
    assert ctx.thread_id == "t"
    return not args.to.endswith("@home.example")


@tool(name="send", needs_approval=_outside)
class Send:
    """Send a letter."""

    async def run(self, args: Letter) -> str:
        ran.append(f"send {args.to}")
        return "sent"


def _broken(args: dict[str, Any], ctx: ToolContext) -> bool:
    raise KeyError("nothing here")


@tool(needs_approval=_broken)
def wipe(disk: str) -> str:
    """Wipe a disk."""
    ran.append(f"wipe {disk}")
    return "wiped"


@agent(name="clerk", model="openai:gpt-5-mini", prompt="Help.", tools=[refund, find, Send, wipe])
class Clerk: ...


async def _paused(app: App, mock_llm: MockLlm, *steps: Any, **arguments: Any) -> Any:
    mock_llm(Clerk).then_return(*(steps or (call_tool(refund, order="A1", amount=5),)))
    return await app.execute("Refund A1", thread="t", create_thread=True, **arguments)


async def test_an_approved_call_runs_and_the_turn_is_answered(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    async with agboss_app(Clerk) as app:
        result = await _paused(app, mock_llm)
        assert (result.status, result.answer, ran) == (TernStatus.PAUSED, "", [])
        pause = result.pause
        assert pause is not None
        assert (pause.thread, pause.tern, pause.agent, pause.tool) == ("t", 1, "clerk", "refund")
        assert pause.arguments == {"order": "A1", "amount": 5}
        assert pause.tool_call_id
        assert pause.asked_at.tzinfo is not None
        assert result.pauses == (pause,) == await app.threads.pauses("t")
        mock_llm(Clerk).then_return(reply("Done."))
        done = await app.resume("t", True)
        assert (done.tern, done.status, done.answer, done.pause) == (1, TernStatus.ANSWERED, "Done.", None)
        assert ran == ["refund A1 5"]
        assert "refunded 5" in mock_llm(Clerk).requests[-1].text
        (tern,) = (await app.threads.get("t")).terns
        assert (tern.answer, len(tern.usage)) == ("Done.", 2)
        assert await app.threads.pauses("t") == ()
        assert [item.role for item in (await app.threads.export("t")).messages] == [
            "user",
            "assistant",
            "tool",
            "assistant",
        ]
        assert await app.threads.check() == ()


async def test_a_denied_call_is_told_to_the_model_with_the_reason(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    async with agboss_app(Clerk) as app:
        await _paused(app, mock_llm)
        mock_llm(Clerk).then_return(reply("Sorry."))
        done = await app.resume("t", Decision(approved=False, reason="too much"))
        assert (done.answer, ran) == ("Sorry.", [])
        assert "a person denied this call of refund: too much" in mock_llm(Clerk).requests[-1].text


async def test_other_arguments_are_checked_run_and_told(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    async with agboss_app(Clerk) as app:
        await _paused(app, mock_llm)
        for wrong in (
            {"amount": 2},
            {"order": "A1", "amount": "much"},
            {"order": "A1", "more": 1},
            {"order": object()},
        ):
            with pytest.raises(InvalidInputError) as caught:
                await app.resume("t", Decision(approved=True, arguments=wrong))
            assert caught.value.code == "pause.bad-arguments"
            assert dict(caught.value.data["problems"]).keys() <= {"/amount", "/order", "/more"}
        assert len(await app.threads.pauses("t")) == 1
        mock_llm(Clerk).then_return(reply("Done."))
        await app.resume("t", Decision(approved=True, arguments={"order": "A1", "amount": 2}))
        assert ran == ["refund A1 2"]
        assert '[A person changed the arguments of this call to: {"amount": 2, "order": "A1"}]' in (
            mock_llm(Clerk).requests[-1].text
        )


async def test_all_calls_of_one_message_are_asked_and_decided_one_by_one(
    agboss_app: MakeApp, mock_llm: MockLlm
) -> None:
    async with agboss_app(Clerk) as app:
        calls = [call_tool(refund, order="A"), call_tool(find, order="B"), call_tool(refund, order="C")]
        result = await _paused(app, mock_llm, calls)
        assert ran == ["find B"]
        assert [pause.arguments["order"] for pause in result.pauses] == ["A", "C"]
        with pytest.raises(InvalidInputError) as caught:
            await app.resume("t", True)
        assert caught.value.code == "pause.which"
        first, second = result.pauses
        still = await app.resume("t", False, pause_id=second.id)
        assert (still.status, still.pauses) == (TernStatus.PAUSED, (first,))
        again = await app.resume("t", False, pause_id=second.id)
        assert again.pauses == (first,)
        mock_llm(Clerk).then_return(reply("Done."))
        done = await app.resume("t", True)
        assert done.answer == "Done."
        assert ran == ["find B", "refund A 1"]
        assert [record.usd for record in done.usage if record.source == "tool"] == [2]
        said = (await app.threads.export("t")).messages
        assert [item.content for item in said if item.role == "tool"][1] == "found"


async def test_a_rule_says_which_calls_need_approval(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    async with agboss_app(Clerk) as app:
        letters = [call_tool(Send, to="me@home.example"), call_tool(Send, to="you@far.example")]
        result = await _paused(app, mock_llm, letters)
        assert ran == ["send me@home.example"]
        assert [pause.arguments["to"] for pause in result.pauses] == ["you@far.example"]
        mock_llm(Clerk).then_return(reply("Sent."))
        await app.resume("t", True)
        assert ran == ["send me@home.example", "send you@far.example"]


async def test_a_rule_that_fails_asks(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    async with agboss_app(Clerk) as app:
        result = await _paused(app, mock_llm, call_tool(wipe, disk="c"))
        assert result.status is TernStatus.PAUSED
        assert any("needs_approval of tool 'wipe' failed" in line for line in result.warnings)
        assert ran == []


async def test_a_call_with_wrong_arguments_is_not_asked(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    async with agboss_app(Clerk) as app:
        result = await _paused(app, mock_llm, call_tool(refund, amount="x"), reply("I cannot."))
        assert result.answer == "I cannot."
        assert "invalid arguments" in mock_llm(Clerk).requests[-1].text


async def test_a_decision_counts_once(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    async with agboss_app(Clerk) as app:
        pause = (await _paused(app, mock_llm)).pause
        assert pause is not None
        mock_llm(Clerk).then_return(reply("Done."))
        done = await app.resume("t", True, pause_id=pause.id)
        again = await app.resume("t", True, pause_id=pause.id)
        assert (again.tern, again.answer, again.spend) == (1, done.answer, done.spend)
        assert ran == ["refund A1 5"]
        for decision in (False, Decision(approved=True, arguments={"order": "B"})):
            with pytest.raises(PauseError) as caught:
                await app.resume("t", decision, pause_id=pause.id)
            assert caught.value.code == "pause.decided"
        with pytest.raises(PauseError) as caught:
            await app.resume("t", True)
        assert caught.value.code == "pause.none"


async def test_what_cannot_be_decided(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    async with agboss_app(Clerk) as app:
        await _paused(app, mock_llm, owner="ada")
        wrong: Any = Decision
        cases: list[tuple[type[AgbossError], str, dict[str, Any]]] = [
            (UnknownThreadError, "run.unknown-thread", {"thread": "u"}),
            (ThreadOwnerError, "run.thread-owner", {}),
            (ThreadOwnerError, "run.thread-owner", {"owner": "bob"}),
            (PauseError, "pause.unknown", {"owner": "ada", "pause_id": "1-none"}),
            (PauseError, "pause.unknown", {"owner": "ada", "pause_id": "x"}),
            (PauseError, "pause.unknown", {"owner": "ada", "pause_id": "9-x"}),
            (InvalidInputError, "run.bad-id", {"owner": "ada", "pause_id": ""}),
            (InvalidInputError, "run.bad-timeout", {"owner": "ada", "timeout": 0}),
            (InvalidInputError, "pause.bad-decision", {"owner": "ada", "decision": "yes"}),
            (InvalidInputError, "pause.bad-decision", {"owner": "ada", "decision": wrong(approved=1)}),
            (InvalidInputError, "pause.bad-decision", {"owner": "ada", "decision": wrong(approved=False, reason=1)}),
            (
                InvalidInputError,
                "pause.bad-decision",
                {"owner": "ada", "decision": wrong(approved=True, arguments=[])},
            ),
            (
                InvalidInputError,
                "pause.bad-decision",
                {"owner": "ada", "decision": Decision(approved=False, arguments={})},
            ),
        ]
        for kind, code, arguments in cases:
            given: dict[str, Any] = {"thread": "t", "decision": True, **arguments}
            with pytest.raises(kind) as caught:
                await app.resume(**given)
            assert caught.value.code == code, arguments
        assert len(await app.threads.pauses("t", owner="ada")) == 1
        with pytest.raises(ThreadOwnerError):
            await app.threads.pauses("t", owner="bob")


async def test_a_key_that_comes_again_gives_the_paused_result(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    async with agboss_app(Clerk) as app:
        first = await _paused(app, mock_llm, idempotency_key="k")
        again = await app.execute("Refund A1", thread="t", idempotency_key="k")
        assert (again.status, again.pause, again.tern) == (TernStatus.PAUSED, first.pause, 1)
        assert len(mock_llm(Clerk).requests) == 1
        mock_llm(Clerk).then_return(reply("Done."))
        await app.resume("t", True)
        assert (await app.execute("Refund A1", thread="t", idempotency_key="k")).answer == "Done."


async def test_a_paused_turn_does_not_hold_the_thread_and_is_not_in_history(
    agboss_app: MakeApp, mock_llm: MockLlm
) -> None:
    async with agboss_app(Clerk) as app:
        mock_llm(Clerk).then_return(reply("Hello."))
        await app.execute("Hi", thread="t", create_thread=True)
        await _paused(app, mock_llm)
        mock_llm(Clerk).then_return(reply("Sunny."))
        third = await app.execute("Weather?", thread="t")
        assert third.tern == 3
        assert "Refund" not in mock_llm(Clerk).requests[-1].text
        mock_llm(Clerk).then_return(reply("Done."))
        second = await app.resume("t", True)
        assert second.tern == 2
        shown = mock_llm(Clerk).requests[-1].text
        assert "Hello." in shown
        assert "Sunny." not in shown, "it sees the Terns before its own number"
        mock_llm(Clerk).then_return(reply("Bye."))
        await app.execute("Bye", thread="t")
        shown = mock_llm(Clerk).requests[-1].text
        assert shown.index("Hello.") < shown.index("Done.") < shown.index("Sunny.")
        assert [tern.status for tern in (await app.threads.get("t")).terns] == ["answered"] * 4
        assert await app.threads.check() == ()


async def test_b008_a_waiting_call_is_never_summarised(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: Any
) -> None:
    from agboss import Compaction, ModelSpec

    @workflow(
        name="desk",
        version="1.0.0",
        flow=[chain(TaskStart, Clerk, AnswerFinish)],
        compaction=Compaction(every=3, model=ModelSpec("openai:gpt-5-mini")),
    )
    class Desk: ...

    async with agboss_app(Desk) as app:
        await _paused(app, mock_llm)
        mock_compaction.then_return("Turns four to six.")
        for number in range(2, 7):
            mock_llm(Clerk).then_return(reply(f"answer {number}"))
            await app.execute(f"task {number}", thread="t")
        assert "Refund" not in mock_compaction.requests[0].text
        mock_llm(Clerk).then_return(reply("Done."))
        mock_compaction.then_return("Turns one to three.")
        done = await app.resume("t", True)
        assert ran == ["refund A1 5"]
        assert done.memory == "turns 1–3 → summary 2/10"
        assert "Done." in mock_compaction.requests[-1].text
        mock_llm(Clerk).then_return(reply("Bye."))
        await app.execute("Bye", thread="t")
        shown = mock_llm(Clerk).requests[-1].text
        assert shown.index("Turns one to three.") < shown.index("Turns four to six.")
        assert await app.threads.check() == ()


async def test_cancel_ends_a_paused_turn_with_what_was_said(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    async with agboss_app(Clerk) as app:
        await _paused(app, mock_llm, [call_tool(find, order="B"), call_tool(refund, order="A")], idempotency_key="k")
        pause = (await app.threads.pauses("t"))[0]
        assert await app.cancel("t") is True
        assert await app.cancel("t") is False
        assert await app.cancel("other") is False
        (tern,) = (await app.threads.get("t")).terns
        assert (tern.status, tern.error_code) == (TernStatus.CANCELLED, "run.cancelled")
        assert len(tern.usage) == 2
        said = (await app.threads.export("t")).messages
        assert [item.content for item in said if item.role == "tool"] == [
            "found",
            "Error: not finished, the turn ended before the tool gave a result.",
        ]
        with pytest.raises(PauseError) as caught:
            await app.resume("t", True, pause_id=pause.id)
        assert caught.value.code == "pause.closed"
        with pytest.raises(TernCancelledError):
            await app.execute("Refund A1", thread="t", idempotency_key="k")
        mock_llm(Clerk).then_return(reply("Hello."))
        assert (await app.execute("Hi", thread="t")).tern == 2
        assert await app.threads.check() == ()


async def test_a_turn_may_pause_again_and_again(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    async with agboss_app(Clerk) as app:
        await _paused(app, mock_llm)
        for order in "BCD":
            mock_llm(Clerk).then_return(call_tool(refund, order=order))
            assert (await app.resume("t", True)).status is TernStatus.PAUSED
        mock_llm(Clerk).then_return(reply("All."))
        done = await app.resume("t", False)
        assert done.answer == "All."
        assert ran == ["refund A1 5", "refund B 1", "refund C 1"]
        assert len(done.usage) == 5
        assert await app.threads.check() == ()


async def test_another_app_goes_on_from_the_store(tmp_path: Path) -> None:
    url, models = f"sqlite:///{tmp_path}/a.db", ScriptedModels()
    models.llm(Clerk).then_return([call_tool(find, order="B"), call_tool(refund, order="A")])
    async with create_app(Clerk, store=url, models=models) as app:
        await app.execute("Go", thread="t", create_thread=True)
    models.verify()
    models = ScriptedModels()
    models.llm(Clerk).then_return(reply("Done."))
    async with create_app(Clerk, store=url, models=models) as app:
        assert await app.recover() == ()
        (pause,) = await app.threads.pauses("t")
        done = await app.resume("t", True, pause_id=pause.id)
        assert (done.tern, done.answer) == (1, "Done.")
        assert ran == ["find B", "refund A 1"]
        assert await app.threads.check() == ()
    models.verify()


async def test_an_exported_paused_turn_goes_on_elsewhere(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    async with agboss_app(Clerk) as app:
        await _paused(app, mock_llm, [call_tool(find, order="B"), call_tool(refund, order="A")])
        lines = list((await app.threads.export("t")).lines())
    async with agboss_app(Clerk) as app:
        await app.threads.import_(lines)
        assert list((await app.threads.export("t")).lines()) == lines
        mock_llm(Clerk).then_return(reply("Done."))
        assert (await app.resume("t", True)).answer == "Done."
        assert ran == ["find B", "refund A 1"]
        assert await app.threads.check() == ()


async def test_a_changed_workflow_refuses_what_it_cannot_run(tmp_path: Path) -> None:
    url, models = f"sqlite:///{tmp_path}/a.db", ScriptedModels()
    models.llm(Clerk).then_return(call_tool(refund, order="A"))
    async with create_app(Clerk, store=url, models=models) as app:
        await app.execute("Go", thread="t", create_thread=True)

    @agent(name="clerk", model="openai:gpt-5-mini", prompt="Help.", tools=[find])
    class Poorer: ...

    models = ScriptedModels()
    models.llm(Poorer).then_return(reply("Sorry."))
    async with create_app(Poorer, store=url, models=models) as app:
        with pytest.raises(PauseError) as caught:
            await app.resume("t", True)
        assert caught.value.code == "pause.no-tool"
        assert len(await app.threads.pauses("t")) == 1
        assert (await app.resume("t", False)).answer == "Sorry."


async def test_a_daily_limit_counts_what_was_done_before_the_pause_once(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    @workflow(
        name="desk",
        version="1.0.0",
        flow=[chain(TaskStart, Clerk, AnswerFinish)],
        limits=Limits(per_day=RunLimits(model_calls=2), per_run=RunLimits(model_calls=2)),
    )
    class Desk: ...

    async with agboss_app(Desk) as app:
        await _paused(app, mock_llm)
        mock_llm(Clerk).then_return(reply("Done."))
        assert (await app.resume("t", True)).answer == "Done."
        with pytest.raises(AgbossError) as caught:
            await app.execute("More", thread="t")
        assert caught.value.code == "limit.day-model-calls"


async def test_a_stream_ends_with_what_it_waits_for(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    async with agboss_app(Clerk) as app:
        mock_llm(Clerk).then_return([call_tool(refund, order="A"), call_tool(refund, order="B")])
        async with app.stream("Go", thread="t", create_thread=True, idempotency_key="k") as run:
            heard = [event async for event in run]
        kinds = [event.type for event in heard]
        assert kinds == ["tern_started", "node_started", "paused", "paused", "ended"]
        paused, ended = heard[-2], heard[-1]
        assert paused.type == "paused"
        assert ended.type == "ended"
        assert (paused.node, paused.tool, paused.arguments, paused.tern) == ("clerk", "refund", {"order": "B"}, 1)
        assert (ended.status, ended.answer) == ("paused", "")
        async with app.stream("Go", thread="t", idempotency_key="k") as run:
            assert [event.type async for event in run] == ["paused", "paused", "ended"]
        first, second = await app.threads.pauses("t")
        assert second.id == paused.pause_id
        await app.resume("t", False, pause_id=first.id)
        mock_llm(Clerk).then_return(reply("Done."))
        async with app.stream_resume("t", True, pause_id=second.id) as run:
            text = [piece async for piece in run.text()]
            assert (await run.result()).answer == "".join(text) == "Done."
        async with app.stream_resume("t", False, pause_id=first.id) as run:
            assert (await run.result()).answer == "Done."
        with pytest.raises(PauseError):
            async with app.stream_resume("t", True):
                pass


def test_a_script_resumes_without_a_loop(tmp_path: Path) -> None:
    models = ScriptedModels()
    models.llm(Clerk).then_return(call_tool(refund, order="A"), reply("Done."))
    with create_app(Clerk, store=f"sqlite:///{tmp_path}/a.db", models=models) as app:
        result = app.execute_sync("Go")
        assert result.to_dict()["pause"]["tool"] == "refund"
        assert app.resume_sync(result.thread, True).answer == "Done."


def test_a_wrong_declaration_is_told() -> None:
    with pytest.raises(DeclarationError) as caught:

        @tool(needs_approval="always")  # type: ignore[arg-type]
        def never(x: int) -> str:  # pyright: ignore[reportUnusedFunction]
            """Never."""
            return str(x)

    assert caught.value.code == "declaration.bad-approval"
