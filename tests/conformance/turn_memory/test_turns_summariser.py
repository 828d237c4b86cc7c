"""What the summariser reads: the block, the raw turns of the block before, never a summary."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from desks import Helper, answers, desk, talk

from agboss import ModelError
from agboss.testing import MakeApp, MockCompaction, MockLlm
from agboss_memory import MemoryStore
from agboss_memory.compaction import SummaryTask, prompt_of, summarise
from agboss_memory.messages import Tern, TernStatus
from agboss_memory.tokens import HeuristicCounter


async def test_input_is_the_block_and_the_raw_block_before(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    mock_llm(Helper).then_return(*answers(9))
    mock_compaction.then_return("MARK-1", "MARK-2", "MARK-3")
    async with agboss_app(desk(every=3, keep=3, limit=1)) as app:
        await talk(app, 9)
    first, second, third = mock_compaction.requests
    assert first.messages[0].content == (
        "Turns to summarise:\nQ: task 1.\nA: answer 1.\nQ: task 2.\nA: answer 2.\nQ: task 3.\nA: answer 3.\n"
    )
    assert second.messages[0].content == (
        "Turns before (context only):\nQ: task 1.\nA: answer 1.\nQ: task 2.\nA: answer 2.\nQ: task 3.\nA: answer 3.\n"
        "\nTurns to summarise:\nQ: task 4.\nA: answer 4.\nQ: task 5.\nA: answer 5.\nQ: task 6.\nA: answer 6.\n"
    )
    assert "task 3." not in third.text
    assert not any("MARK" in request.text for request in mock_compaction.requests)
    assert all(request.tools == () and request.output_schema is None for request in mock_compaction.requests)
    assert "Be brief." not in first.text


async def test_turns_without_an_answer_are_shown_with_their_status(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    mock_llm(Helper).then_fail(ModelError("model.http", "the provider said 500", "")).then_return(*answers(2, first=2))
    mock_compaction.then_return("S1")
    async with agboss_app(desk(every=2, keep=3)) as app:
        with pytest.raises(ModelError):
            await talk(app, 1)
        await talk(app, 2, first=2)
    assert "Q: task 1.\nA: [failed] the provider said 500\n" in mock_compaction.requests[0].text
    assert "Q: task 1.\nA: [failed] the provider said 500\n" in mock_llm(Helper).requests[-1].text


async def test_the_block_before_is_the_one_before_whatever_its_size(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    mock_llm(Helper).then_return(*answers(6))
    mock_compaction.then_return("S1", "S2")
    async with agboss_app(desk(every=4, keep=3), store=(store := MemoryStore())) as app:
        await talk(app, 4)
    async with agboss_app(desk(every=3, keep=3), store=store) as app:
        await talk(app, 2, first=5)
    text = mock_compaction.requests[1].messages[0].content
    before, _, block = text.partition("Turns to summarise:\n")
    assert [f"task {number}." in before for number in range(1, 7)] == [True, True, True, True, False, False]
    assert [f"task {number}." in block for number in range(1, 7)] == [False, False, False, False, True, True]


def test_paused_turns_are_left_to_the_caller_and_statuses_are_shown() -> None:
    terns = [
        Tern(number=1, task="a", status=TernStatus.CANCELLED, error="The turn was cancelled."),
        Tern(number=2, task="b", answer="I may not.", status=TernStatus.GUARDED),
    ]
    assert prompt_of(SummaryTask(terns=terns)) == (
        "Turns to summarise:\nQ: a\nA: [cancelled] The turn was cancelled.\nQ: b\nA: [guarded] I may not.\n"
    )


LONG = "The quick brown fox jumps over the lazy dog. " * 400


class Window:
    """A summariser that refuses what does not fit its window, as providers do."""

    def __init__(self, tokens: int, *replies: str) -> None:
        self.tokens = tokens
        self.replies = list(replies)
        self.seen: list[str] = []
        self.counter = HeuristicCounter()

    async def ask(self, system: str, dialogue: Sequence[tuple[str, str]]) -> tuple[str, bool]:
        texts = [system, *(text for _, text in dialogue)]
        self.seen.append("\n".join(texts))
        sent = sum(self.counter.count(texts))
        assert sent <= self.tokens, f"{sent} tokens sent, the window has {self.tokens}"
        return self.replies.pop(0), True


@pytest.mark.parametrize("window", [700, 1000, 2000, 8192])
@pytest.mark.parametrize("max_tokens", [50, 200])
async def test_the_input_fits_the_summarisers_window_also_when_asked_again(window: int, max_tokens: int) -> None:
    too_long = "word " * 400
    model = Window(window, too_long, "short")
    terns = [Tern(number=number, task=f"{number} {LONG}", answer=LONG) for number in range(1, 9)]
    task = SummaryTask(terns=terns, before=terns, max_tokens=max_tokens, window=window)
    text, _ = await summarise(task, model.ask, HeuristicCounter())
    assert text == "short"
    assert len(model.seen) == 2
    assert "cut to fit" in model.seen[0]


async def test_one_giant_error_text_is_cut_too() -> None:
    model = Window(1000, "short")
    terns = [Tern(number=1, task="go", status=TernStatus.FAILED, error="x" * 200_000), Tern(number=2, task="b")]
    await summarise(SummaryTask(terns=terns, max_tokens=50, window=1000), model.ask, HeuristicCounter())


async def test_very_many_small_turns_are_cut_at_last() -> None:
    model = Window(1000, "short")
    terns = [Tern(number=number, task="question", answer="answer") for number in range(1, 3000)]
    await summarise(SummaryTask(terns=terns, max_tokens=50, window=1000), model.ask, HeuristicCounter())


async def test_without_a_known_window_the_input_is_bounded_all_the_same() -> None:
    model = Window(40_000, "short")
    terns = [Tern(number=1, task="go", answer="A" * 1_500_000)]
    await summarise(SummaryTask(terns=terns), model.ask, HeuristicCounter())
