"""The model that a strategy asks for: scripted by its class, booked in the Tern."""

from __future__ import annotations

from agboss import (
    agent,
)
from agboss.testing import MakeApp, MockLlm, reply
from agboss_memory.contract import BaseMemoryStrategy, MemoryContext, MemoryModel, MemoryTurn, MemoryUpdate, MemoryView

MODEL = "openai:gpt-5-mini"


class Learning(BaseMemoryStrategy):
    """Asks its model after each turn."""

    def __init__(self, model: MemoryModel) -> None:
        self.model = model
        self.said: list[str] = []

    def build_context(self, context: MemoryContext) -> MemoryView:
        return MemoryView(recalled=tuple(self.said))

    async def update_memory(self, turn: MemoryTurn) -> MemoryUpdate:
        self.said.append(await self.model.generate(f"Learn: {turn.tern.task}"))
        return MemoryUpdate()


@agent(model=MODEL, memory_strategy=Learning)
class Pupil:
    """Learns."""


async def test_a_strategys_model_is_scripted_and_booked(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Pupil).then_return(reply("hello"), reply("again"))
    mock_llm(Learning).then_return(reply("a fact"), reply("more"))
    async with agboss_app(Pupil) as app:
        first = await app.execute("Hi")
        await app.execute("Hm", thread=first.thread)
    assert [(record.caller, record.purpose) for record in first.usage] == [("pupil", "answer"), ("Learning", "memory")]
    assert mock_llm(Learning).requests[0].text == "Learn: Hi"
    assert "a fact" in mock_llm(Pupil).requests[1].text


class Extractor:
    def __init__(self, model: MemoryModel) -> None:
        self.model = model


class Indirect(BaseMemoryStrategy):
    def __init__(self, extractor: Extractor) -> None:
        self.extractor = extractor

    def build_context(self, context: MemoryContext) -> MemoryView:
        return MemoryView()

    async def update_memory(self, turn: MemoryTurn) -> MemoryUpdate:
        await self.extractor.model.generate("Extract")
        return MemoryUpdate()


async def test_a_model_behind_another_class_is_scripted_under_that_class(
    agboss_app: MakeApp, mock_llm: MockLlm
) -> None:
    @agent(model=MODEL, memory_strategy=Indirect)
    class Clerk:
        """Files."""

    mock_llm(Clerk).then_return(reply("ok"))
    mock_llm(Extractor).then_return(reply("x"))
    async with agboss_app(Clerk) as app:
        result = await app.execute("Hi")
    assert [record.caller for record in result.usage] == ["clerk", "Extractor"]
