"""Faults of others, class I: what is told of a compaction is told once, and one source of history is sent."""

from __future__ import annotations

from agboss import ModelSpec, agent
from agboss.testing import MakeApp, MockCompaction, MockLlm


@agent(
    name="helper",
    model=ModelSpec("ollama:test", context_window=1000),
    prompt="x",
    memory_config={"kind": "auto_compact", "compactAtRatio": 0.05},
)
class Helper: ...


async def test_b168_each_compaction_is_told_once_and_a_failed_one_never(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    mock_llm(Helper).then_return("one " * 60, "two " * 60)
    mock_compaction(Helper).then_fail(RuntimeError("down")).then_return("Both.")
    told: list[list[str]] = []
    async with agboss_app(Helper) as app:
        for task in ("a", "b"):
            async with app.stream(task, thread="t", create_thread=True) as run:
                told.append([event.memory async for event in run if event.type == "compacted"])
        (summary,) = await app.memory.summaries("t", "helper")
    assert told == [[], ["messages 1–4 → summary"]]
    assert (summary.first, summary.last) == (1, 4)


async def test_b060_a_request_holds_each_message_once(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    """No provider keeps a conversation for us: what was said is in the view, and nowhere else in the request."""
    mock_llm(Helper).then_return("first answer", "second answer", "third")
    async with agboss_app(Helper) as app:
        for task in ("first task", "second task", "third task"):
            await app.execute(task, thread="t", create_thread=True)
    text = mock_llm(Helper).requests[-1].text
    for said in ("first task", "first answer", "second task", "second answer", "third task"):
        assert text.count(said) == 1
