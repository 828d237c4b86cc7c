"""``app.threads.decisions``: what a Tern was asked about and what was decided."""

from __future__ import annotations

import pytest

from agboss import Decision, InvalidInputError, UnknownThreadError, agent, tool
from agboss.testing import MakeApp, MockLlm, call_tool, reply


@tool(needs_approval=True)
def refund(order: str, amount: int) -> str:
    """Pay money back."""
    return f"refunded {amount} for {order}"


@agent(name="clerk", model="openai:gpt-5-mini", prompt="Help.", tools=[refund])
class Clerk: ...


async def test_what_was_decided_is_told_as_long_as_the_thread_is_there(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    calls = [call_tool(refund, order=order, amount=2) for order in ("A1", "A2", "A3")]
    mock_llm(Clerk).then_return(calls, reply("Done."))
    async with agboss_app(Clerk) as app:
        first, second, third = (await app.execute("Refund.", thread="t", create_thread=True, owner="ada")).pauses
        decided = [
            Decision(approved=False, reason="no"),
            Decision(approved=True, arguments={"order": "B", "amount": 1}),
        ]
        for pause, decision in zip((first, second), decided, strict=True):
            await app.resume("t", decision, pause_id=pause.id, owner="ada")
        told = await app.threads.decisions("t", 1)
        assert [one.pause for one in told] == [first, second, third]
        assert [one.decision for one in told] == [*decided, None]
        await app.resume("t", True, pause_id=third.id, owner="ada")
        assert [one.decision for one in await app.threads.decisions("t", 1, owner="ada")] == [
            *decided,
            Decision(approved=True),
        ]
        for number in (0, 2):
            with pytest.raises(InvalidInputError):
                await app.threads.decisions("t", number)
        with pytest.raises(UnknownThreadError):
            await app.threads.decisions("t", 1, owner="bob")
