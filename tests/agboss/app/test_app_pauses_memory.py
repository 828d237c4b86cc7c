"""What memory makes of a Tern that paused: strategies learn of it, and conversations get it, when it has ended."""

from __future__ import annotations

from typing import Any

from agboss import agent, tool
from agboss.testing import MakeApp, MockLlm, call_tool, reply
from agboss_memory import SlidingWindowStrategy


@tool(needs_approval=True)
def refund(order: str, amount: int = 1) -> str:
    """Pay money back."""
    return f"refunded {amount}"


async def test_strategies_learn_of_a_turn_when_it_has_ended(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    learned: list[str] = []

    class Learning(SlidingWindowStrategy):
        async def update_memory(self, turn: Any) -> Any:
            learned.append(f"{turn.tern.number} {turn.tern.status}")
            return await super().update_memory(turn)

    @agent(name="learner", model="openai:gpt-5-mini", tools=[refund], memory_strategy=Learning(turns=2, summaries=0))
    class Learner:
        """Learns."""

    mock_llm(Learner).then_return(call_tool(refund, order="A"))
    async with agboss_app(Learner) as app:
        await app.execute("Go", thread="t", create_thread=True)
        assert learned == []
        mock_llm(Learner).then_return(reply("Done."))
        await app.resume("t", True)
        assert learned == ["1 answered"]


async def test_an_agent_with_its_own_conversation_pauses_too(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    @agent(
        name="talker",
        model="openai:gpt-5-mini",
        tools=[refund],
        memory_config={"kind": "full"},
    )
    class Talker:
        """Talks."""

    mock_llm(Talker).then_return(call_tool(refund, order="A"))
    async with agboss_app(Talker) as app:
        await app.execute("Go", thread="t", create_thread=True)
        mock_llm(Talker).then_return(reply("Hello."))
        await app.execute("Hi", thread="t")
        assert "Go" not in mock_llm(Talker).requests[-1].text
        mock_llm(Talker).then_return(reply("Done."))
        assert (await app.resume("t", True)).answer == "Done."
        mock_llm(Talker).then_return(reply("Bye."))
        await app.execute("Bye", thread="t")
        shown = mock_llm(Talker).requests[-1].text
        assert shown.index("Hello.") < shown.index("refunded 1") < shown.index("Done.")
        assert await app.threads.check() == ()
