"""Estimates follow what the provider reports, within bounds."""

from __future__ import annotations

import pytest
from window_memory import C4

from agboss import ModelSpec, agent
from agboss.testing import MakeApp, MockLlm, reply
from agboss_memory import Budget, MemoryStore, Message
from agboss_memory.memory import Memory
from agboss_memory.tokens.calibration import LEAST, MOST, SMALL, Calibration


def test_the_first_report_counts_whole_and_later_ones_in_part() -> None:
    calibration = Calibration()
    assert calibration.factor == 1.0
    calibration.observe(1000, 1200)
    assert calibration.factor == pytest.approx(1.2)
    calibration.observe(1000, 1600)
    assert calibration.factor == pytest.approx(1.3)


@pytest.mark.parametrize(("reported", "factor"), [(1, LEAST), (100_000, MOST), (0, 1.0)])
def test_a_report_counts_within_bounds(reported: int, factor: float) -> None:
    calibration = Calibration()
    calibration.observe(1000, reported)
    assert calibration.factor == factor


def test_small_requests_are_not_compared() -> None:
    calibration = Calibration()
    calibration.observe(SMALL - 1, 5000)
    assert calibration.factor == 1.0


def test_the_reply_reserve_is_not_scaled() -> None:
    budget = Budget(window=1000, reply_reserve=200, calibration=2.0)
    assert budget.calibrated(1000) == 200 + 400
    assert Budget(window=1000, reply_reserve=200).calibrated(1000) == 1000


async def test_a_view_shrinks_when_the_provider_counts_more() -> None:
    memory = Memory(MemoryStore(), {"kind": "full"}, counter=C4(), window=1000, reply_reserve=0)
    said = [Message(role="user" if n % 2 == 0 else "assistant", content="x" * 400) for n in range(9)]
    await memory.remember("t", said)
    before = await memory.view("t")
    memory.reported(before, before.tokens * 2)
    after = await memory.view("t")
    assert before.tokens <= 1000
    assert after.tokens <= 500
    assert after.messages[-1].content == said[-1].content


@agent(name="helper", model=ModelSpec("ollama:test", context_window=3000, max_tokens=1), prompt="x", history_limit=50)
class Helper: ...


async def test_an_agent_learns_from_its_model(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    task = "one two three four five six seven eight nine ten " * 20
    mock_llm(Helper).then_return(*(reply("ok", input_tokens=100_000) for _ in range(8)), "last")
    async with agboss_app(Helper) as app:
        for _ in range(9):
            await app.execute(task, thread="t", create_thread=True)
    sizes = [len(request.text) for request in mock_llm(Helper).requests]
    assert max(sizes) < 1.1 * 3000 * 5 / MOST, "twice as many tokens per word: half as many words fit"
