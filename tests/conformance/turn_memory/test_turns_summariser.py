"""What the summariser reads: the block, the raw turns of the block before, never a summary."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from desks import Helper, answers, desk, talk

from agboss import ModelError
from agboss.testing import MakeApp, MockCompaction, MockLlm
from agboss_memory import MemoryStore
from agboss_memory.compaction import SummaryTask, prompt_of, summarise
from agboss_memory.messages import Tern, TernStatus
from agboss_memory.tokens import HeuristicCounter, TiktokenCounter


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


class Unloaded(TiktokenCounter):
    """A counter whose vocabulary was not needed yet; says when it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    @property
    def loaded(self) -> bool:
        return self.asked > 0

    async def load(self) -> None:
        self.asked += 1

    def count(self, texts: Sequence[str]) -> list[int]:
        self.asked += 1
        return HeuristicCounter().count(texts)


async def _summary(counter: TiktokenCounter, reply: str, window: int | None = None) -> tuple[str, int | None]:
    task = SummaryTask(terns=[Tern(number=1, task="a", answer="b")], window=window)
    return await summarise(task, Window(40_000, reply, "short").ask, counter)


async def test_what_surely_fits_loads_no_vocabulary() -> None:
    counter = Unloaded()
    assert await _summary(counter, "x" * 512) == ("x" * 512, None)
    assert await _summary(counter, "é" * 256) == ("é" * 256, None)
    assert counter.asked == 0


async def test_what_may_be_too_long_is_counted() -> None:
    for text, tokens in (("x" * 513, 129), ("é" * 257, 155)):
        counter = Unloaded()
        assert await _summary(counter, text) == (text, tokens)
        assert counter.asked


async def test_a_loaded_counter_counts_every_summary() -> None:
    counter = Unloaded()
    await counter.load()
    assert await _summary(counter, "eight by") == ("eight by", 2)


async def test_a_window_that_may_be_too_small_is_counted() -> None:
    counter = Unloaded()
    assert await _summary(counter, "short", window=400) == ("short", 2)
    assert counter.asked


async def test_a_short_answer_that_was_cut_off_is_asked_for_again() -> None:
    asked: list[int] = []

    async def ask(_: str, dialogue: Sequence[tuple[str, str]]) -> tuple[str, bool]:
        asked.append(len(dialogue))
        return "part", len(dialogue) > 1

    await summarise(SummaryTask(terns=[Tern(number=1, task="a")]), ask, Unloaded())
    assert asked == [1, 3]


PROGRAM = """
import asyncio, sys
from agboss import Compaction, ModelReply, TaskStart, AnswerFinish, agent, chain, create_app, workflow

class Model:
    async def generate(self, request):
        return ModelReply(text="hi")

@agent(model="ollama:stub", prompt="x")
class Helper: ...

@workflow(name="w", flow=[chain(TaskStart, Helper, AnswerFinish)], compaction=Compaction(every=2))
class Flow: ...

async def main():
    async with create_app(Flow, store=sys.argv[1], models={"ollama:stub": Model()}) as app:
        for _ in range(4):
            result = await app.execute("hello", thread="t", create_thread=True)
        told = [one.tokens for one in result.compaction.summaries]
        loaded = [name for name in ("toktok", "tiktoken") if name in sys.modules]
        print(told, loaded, [one.tokens for one in await app.memory.summaries("t")])

asyncio.run(main())
"""


@pytest.mark.parametrize("kept", [False, True])
def test_a_program_with_short_summaries_loads_no_vocabulary_until_it_asks(kept: bool, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'a.db'}" if kept else "memory://"
    done = subprocess.run([sys.executable, "-c", PROGRAM, store], capture_output=True, text=True, check=True)
    assert done.stdout == "[None] [] [1, 1]\n"
