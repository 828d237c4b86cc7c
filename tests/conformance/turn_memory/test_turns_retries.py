"""A failed compaction never fails the Tern: it is tried again three times, then skipped, and can be caught up."""

from __future__ import annotations

import asyncio
import pickle

import pytest
from desks import Crash, FaultyStore, Helper, Models, answers, desk, raw_turns, shown_summaries, sum_up, talk, yes

from agboss import App, CompactionError, ModelError, create_app
from agboss.testing import Call, MakeApp, MockCompaction, MockLlm
from agboss_memory.messages import Block

DOWN = ModelError("model.connection", "the summariser is down", "")


def fail(mock_compaction: MockCompaction, times: int) -> None:
    for _ in range(times):
        mock_compaction.then_fail(DOWN)


async def blocks(app: App, thread: str = "t") -> list[Block]:
    runtime = await app._lifecycle.runtime()  # pyright: ignore[reportPrivateUsage]
    state = await app.memory._state(runtime, thread, None)  # pyright: ignore[reportPrivateUsage]
    return list(await runtime.store.blocks(state.key, ("open", "due", "done", "skipped", "retired"), 99))


async def test_every_turn_can_be_a_block(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    mock_llm(Helper).then_return(*answers(3))
    mock_compaction.then_return("S1", "S2", "S3")
    async with agboss_app(desk(every=1, keep=2)) as app:
        results = await talk(app, 3)
    assert [result.memory for result in results] == [
        "turns 1–1 → summary 1/2",
        "turns 2–2 → summary 2/2",
        "turns 3–3 → summary 2/2",
    ]
    report = results[2].compaction
    assert report is not None
    assert (report.keep, report.active, [item.text for item in report.summaries]) == (2, (2,), ["S3"])


async def test_a_failed_block_is_tried_with_the_next_turns_oldest_first(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    mock_llm(Helper).then_return(*answers(6))
    fail(mock_compaction, 2)
    mock_compaction.then_return("S1", "S2", "S3")
    async with agboss_app(desk(every=2, keep=3, limit=1)) as app:
        results = await talk(app, 6)
        assert [block.state for block in await blocks(app)] == ["done", "done", "done"]
    assert [result.memory for result in results] == [
        None,
        None,
        None,
        "turns 1–2 → summary 1/3; turns 3–4 → summary 2/3",
        None,
        "turns 5–6 → summary 3/3",
    ]
    assert [result.status for result in results] == ["answered"] * 6
    assert "the summariser is down" in results[1].warnings[0]
    assert "turns 1–2" in results[2].warnings[0]
    assert raw_turns(mock_llm(Helper).requests[4]) == [4]
    assert shown_summaries(mock_llm(Helper).requests[5]) == ["1–2", "3–4"]
    assert raw_turns(mock_llm(Helper).requests[5]) == [5]


async def test_after_an_older_block_was_late_every_later_block_is_still_planned(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    mock_llm(Helper).then_return(*answers(10))
    fail(mock_compaction, 2)
    mock_compaction.then_return("S1", "S2", "S3", "S4", "S5")
    async with agboss_app(desk(every=2, keep=9, limit=1)) as app:
        results = await talk(app, 10)
    assert [result.memory for result in results if result.memory] == [
        "turns 1–2 → summary 1/9; turns 3–4 → summary 2/9",
        "turns 5–6 → summary 3/9",
        "turns 7–8 → summary 4/9",
        "turns 9–10 → summary 5/9",
    ]
    assert [raw_turns(request) for request in mock_llm(Helper).requests][4:] == [[4], [5], [6], [7], [8], [9]]


async def test_after_four_tries_a_block_is_skipped_and_later_ones_go_on(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    mock_llm(Helper).then_return(*answers(8))
    fail(mock_compaction, 5)  # the first block with turns 2 to 5, the second with turn 4
    mock_compaction.then_return("S2", "S3", "S4")
    async with agboss_app(desk(every=2, keep=3, limit=2)) as app:
        results = await talk(app, 8)
        found = await blocks(app)
    assert results[3].memory is None
    assert [(block.last, block.state, block.attempts) for block in found] == [
        (2, "skipped", 4),
        (4, "done", 2),
        (6, "done", 1),
        (8, "done", 1),
    ]
    assert found[0].error == "the summariser is down"
    assert "skipped" in "".join(results[4].warnings)
    assert len(mock_compaction.requests) == 8
    assert "task 1." not in mock_compaction.requests[-1].text


async def test_at_most_two_blocks_a_turn(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    mock_llm(Helper).then_return(*answers(5))
    fail(mock_compaction, 5)
    mock_compaction.then_return("S1", "S2", "S3", "S4")
    async with agboss_app(desk(every=1, keep=9)) as app:
        results = await talk(app, 3)  # tries: 1; 1, 2; 1, 2 (3 waits)
        assert [len(result.warnings) for result in results] == [1, 2, 2]
        results = await talk(app, 2, first=4)
    assert [result.memory for result in results] == [
        "turns 1–1 → summary 1/9; turns 2–2 → summary 2/9",
        "turns 3–3 → summary 3/9; turns 4–4 → summary 4/9",
    ]


async def test_compact_catches_up_with_skipped_due_and_unplanned_blocks(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    mock_llm(Helper).then_return(*answers(7))
    fail(mock_compaction, 8)
    async with agboss_app(desk(every=2, keep=9, limit=1)) as app:
        await talk(app, 6)
        assert [block.state for block in await blocks(app)] == ["skipped", "due", "due"]
        mock_compaction.then_return("S1", "S2", "S3")
        report = await app.memory.compact("t")
        assert [item.text for item in report.summaries] == ["S1", "S2", "S3"]
        assert report.compressed_messages == 6
        again = await app.memory.compact("t")
        assert (again.compressed_messages, again.summaries) == (0, ())
        result = (await talk(app, 1, first=7))[0]
        assert result.memory is None
    assert shown_summaries(mock_llm(Helper).requests[-1]) == ["1–2", "3–4", "5–6"]
    assert raw_turns(mock_llm(Helper).requests[-1]) == [6]


async def test_a_failing_compact_keeps_what_it_wrote_and_raises(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    mock_llm(Helper).then_return(*answers(4))
    fail(mock_compaction, 4)
    async with agboss_app(desk(every=2, keep=9)) as app:
        await talk(app, 4)
        mock_compaction.then_return("S1")
        fail(mock_compaction, 1)
        with pytest.raises(CompactionError) as raised:
            await app.memory.compact("t")
        assert "turns 3–4" in raised.value.message
        assert raised.value.hint
        assert [item.text for item in await app.memory.summaries("t")] == ["S1"]


async def test_strict_raises_with_the_stored_run(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    mock_llm(Helper).then_return(*answers(3))
    fail(mock_compaction, 1)
    mock_compaction.then_return("S1")
    async with agboss_app(desk(every=2, keep=3, strict=True)) as app:
        await talk(app, 1)
        with pytest.raises(CompactionError) as raised:
            await talk(app, 1, first=2)
        error = raised.value
        assert (error.run.answer, error.run.tern, error.run.status) == ("answer 2.", 2, "answered")
        assert error.hint
        again = pickle.loads(pickle.dumps(error))
        assert (again.code, again.run.answer) == (error.code, "answer 2.")
        assert (await talk(app, 1, first=3))[0].memory == "turns 1–2 → summary 1/3"


async def test_a_reply_with_tool_calls_or_without_text_is_no_summary(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    mock_llm(Helper).then_return(*answers(4))
    mock_compaction.then_return("", Call(tool="write", arguments='{"text": "x"}'), "  \n\t ", "S1", "S2", "S3", "S4")
    async with agboss_app(desk(every=1, keep=9)) as app:
        results = await talk(app, 4)
    assert [result.memory for result in results] == [
        None,
        None,
        "turns 1–1 → summary 1/9; turns 2–2 → summary 2/9",
        "turns 3–3 → summary 3/9; turns 4–4 → summary 4/9",
    ]
    assert "answered nothing" in results[0].warnings[0]
    assert "tool calls" in results[1].warnings[0]


async def test_a_summary_that_is_too_long_is_asked_for_once_more_then_refused(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    long = "word " * 40
    mock_llm(Helper).then_return(*answers(3))
    mock_compaction.then_return(long, long, long, "short")
    async with agboss_app(desk(every=2, keep=3, max_tokens=20)) as app:
        results = await talk(app, 3)
    assert [result.memory for result in results] == [None, None, "turns 1–2 → summary 1/3"]
    assert "max_tokens=20" in results[1].warnings[0]
    requests = mock_compaction.requests
    assert len(requests) == 4
    assert [message.role for message in requests[1].messages] == ["user", "assistant", "user"]
    assert "shorter" in requests[1].messages[-1].content
    assert requests[1].messages[0] == requests[0].messages[0]
    assert sum(record.purpose == "compaction" for record in results[1].usage) == 2
    assert sum(record.purpose == "compaction" for record in results[2].usage) == 2


async def test_a_store_that_fails_during_the_work_leaves_it_to_the_next_turn() -> None:
    store = FaultyStore()
    models = Models(yes, sum_up)
    async with create_app(desk(every=2, keep=3), store=store, models=models) as app:
        await talk(app, 1)
        store.faults["write_summary"] = ModelError("store.locked", "locked", "")
        second = (await talk(app, 1, first=2))[0]
        assert (second.status, second.memory) == ("answered", None)
        assert "left to the next turn" in second.warnings[0]
        third = (await talk(app, 1, first=3))[0]
        assert third.memory == "turns 1–2 → summary 1/3"
        terns = (await app.threads.get("t")).terns
    booked = [record.purpose for tern in terns for record in tern.usage]
    assert booked.count("compaction") == models.calls.count("compaction") == 2


async def test_a_crash_in_the_summariser_is_repaired_at_the_next_turn() -> None:
    store = FaultyStore()
    models = Models(yes, sum_up)
    async with create_app(desk(every=2, keep=3), store=store, models=models) as app:
        await talk(app, 1)
        store.faults["write_summary"] = Crash()
        with pytest.raises(Crash):
            await talk(app, 1, first=2)
    async with create_app(desk(every=2, keep=3), store=store, models=models) as app:
        results = await talk(app, 2, first=3)
    assert [result.memory for result in results] == [
        "turns 1–2 → summary 1/3",
        "turns 3–4 → summary 2/3",
    ]


async def test_one_bad_thread_does_not_hold_up_another() -> None:
    models = Models(yes, sum_up)
    async with create_app(desk(every=1, keep=3), store="memory://", models=models) as app:
        results = await asyncio.gather(*[talk(app, 3, thread=f"t{number}") for number in range(5)])
    assert all(result.memory == f"turns {n}–{n} → summary {n}/3" for run in results for n, result in enumerate(run, 1))
