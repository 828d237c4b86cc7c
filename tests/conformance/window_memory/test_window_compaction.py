"""Summaries: chunks, triggers, failures, what replaces what."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from window_memory import Summariser, call, chat, left, memory_of, numbers, result, said, stored

from agboss_memory import CompressReport, Memory, Store, Summary
from agboss_memory.errors import CompactionError


def window_of(tokens: int, **more: Any) -> dict[str, Any]:
    return {"kind": "summarizing_window", "maxConversationRatio": tokens / 1000, **more}


async def ten(memory: Memory, count: int = 10, tokens: int = 100) -> None:
    await memory.remember("t", [chat(tokens) for _ in range(count)])


def ranges(summaries: tuple[Summary, ...]) -> list[tuple[int, int]]:
    return [(summary.first, summary.last) for summary in summaries]


def done(report: CompressReport) -> tuple[int, list[tuple[int, int]]]:
    return report.compressed_messages, ranges(report.summaries)


async def lineage(memory: Memory, store: Store) -> list[tuple[int, int, str]]:
    log = await memory.log("t")
    return [(s.first, s.last, s.state) for s in await store.summaries(log.key, "ag", True)]


async def test_m066_an_empty_conversation(store: Store) -> None:
    model = Summariser()
    for config in ({"kind": "summarizing_window"}, {"kind": "auto_compact"}):
        assert done(await memory_of(store, config, model=model).compress("t")) == (0, [])
    assert model.inputs == []


async def test_m067_m091_b045_nothing_left_to_do(store: Store) -> None:
    model = Summariser()
    memory = memory_of(store, window_of(250), model=model)
    await ten(memory)
    await memory.compress("t")
    before, calls = await lineage(memory, store), len(model.inputs)
    for _ in range(2):
        assert done(await memory.compress("t")) == (0, [])
    assert (await lineage(memory, store), len(model.inputs)) == (before, calls)


@pytest.mark.parametrize("budget", [250, 300])
async def test_m068_m069_chunks_close_at_the_budget(store: Store, budget: int) -> None:
    model = Summariser()
    memory = memory_of(store, window_of(budget), model=model)
    await ten(memory)
    report = await memory.compress("t")
    assert done(report) == (9, [(1, 3), (4, 6), (7, 9)])
    assert [summary.text for summary in report.summaries] == ["S1", "S2", "S3"]
    assert all(s.prompt_hash and s.kind == "summarizing_window" and s.agent == "ag" for s in report.summaries)
    assert len(report.usage) == 3


async def test_m070_m150_a_failed_chunk_keeps_the_earlier_ones(store: Store) -> None:
    memory = memory_of(store, window_of(250), model=Summariser("S1", RuntimeError("down")))
    await ten(memory)
    with pytest.raises(CompactionError) as caught:
        await memory.compress("t")
    assert caught.value.code == "compaction.failed"
    assert await lineage(memory, store) == [(1, 3, "active")]
    assert numbers((await memory_of(store, window_of(800)).view("t")).messages) == list(range(4, 11))


@pytest.mark.parametrize("answer", ["", " \n\t"])
@pytest.mark.parametrize("kind", ["summarizing_window", "auto_compact"])
async def test_m071_b042_a_blank_answer_is_an_error(store: Store, kind: str, answer: str) -> None:
    memory = memory_of(store, {"kind": kind}, model=Summariser(answer))
    await memory.remember("t", [chat(100), said("x" * 40), chat(1), said("y")])
    with pytest.raises(CompactionError) as caught:
        await memory.compress("t")
    assert caught.value.code == "compaction.empty"
    assert await lineage(memory, store) == []


async def test_m073_after_compress(store: Store) -> None:
    memory = memory_of(store, window_of(250), model=Summariser())
    await ten(memory)
    await memory.compress("t")
    view = await memory.view("t")
    assert (ranges(view.summaries), numbers(view.messages), left(view)) == ([(1, 3), (4, 6), (7, 9)], [10], [])
    assert [message.content for message in await stored(memory)] == ["x" * 400] * 10


async def test_m074_b144_summaries_go_on_where_the_last_ended(store: Store) -> None:
    model = Summariser("FIRST-MARK", *(f"S{n}" for n in range(2, 9)))
    memory = memory_of(store, window_of(250), model=model)
    await ten(memory)
    await memory.compress("t")
    await ten(memory, 5)
    assert done(await memory.compress("t")) == (5, [(10, 12), (13, 14)])
    assert numbers((await memory.view("t")).messages) == [15]
    assert not any("FIRST-MARK" in text for text in model.inputs)


@pytest.mark.parametrize(("live", "expected"), [(750, 0), (751, 1)])
async def test_m077_live_tokens_above_the_ratio(store: Store, live: int, expected: int) -> None:
    memory = memory_of(store, {"kind": "summarizing_window", "autoSummarize": True}, model=Summariser())
    await memory.remember("t", [chat(live - 10), chat(10)])
    report = await memory.after_turn("t")
    assert (len(report.summaries), report.error_code) == (expected, "")


async def test_b134_without_the_switch_nothing_is_summarised(store: Store) -> None:
    model = Summariser()
    memory = memory_of(store, {"kind": "summarizing_window"}, model=model)
    await ten(memory, 30)
    assert await memory.after_turn("t") == CompressReport()
    assert model.inputs == []


async def turns(memory: Memory, count: int, tokens: int = 100) -> None:
    for _ in range(count):
        await memory.remember("t", [chat(tokens), said("a" * 40)])


async def compacted(store: Store, **given: Any) -> tuple[Memory, Summariser]:
    model = given.pop("model", Summariser())
    memory = memory_of(store, {"kind": "auto_compact", **given.pop("config", {})}, model=model, **given)
    await turns(memory, 8)
    assert done(await memory.after_turn("t"))[0] == 16
    return memory, model


async def test_m082_b031_the_window_restarts_from_the_summary(store: Store) -> None:
    memory, _ = await compacted(store, system="P")
    await memory.remember("t", [chat(5)])
    view = await memory.view("t")
    assert (view.system, numbers(view.messages)) == ("P", [17])
    assert "session is being continued" in view.messages[0].content
    assert view.messages[0].state == "summary"
    assert left(view) == []


async def test_m084_m085_b144_the_second_replaces_the_first(store: Store) -> None:
    memory, model = await compacted(store, model=Summariser("FIRST"), summary_window=100_000)
    await memory.remember("t", [chat(100, "n") for _ in range(1)])
    for _ in range(7):
        await memory.remember("t", [said("b" * 40), chat(110, "n")])
    await memory.remember("t", [said("end")])
    report = await memory.after_turn("t")
    assert ranges(report.summaries) == [(1, 32)]
    assert ranges((await memory.view("t", "q")).summaries) == [(1, 32)]
    assert await lineage(memory, store) == [(1, 16, "superseded"), (1, 32, "active")]
    assert "FIRST" in model.inputs[1]
    assert "nnnn" in model.inputs[1]
    assert "xxxx" not in model.inputs[1]


async def test_m086_there_is_no_message_cap(store: Store) -> None:
    memory = memory_of(store, {"kind": "auto_compact"})
    await memory.remember("t", [chat(500)])
    assert (await memory.view("t")).messages[0].state == "live"


async def test_m087_what_is_larger_than_the_window_is_cut(store: Store) -> None:
    memory = memory_of(store, {"kind": "auto_compact"}, model=Summariser())
    await memory.remember("t", [chat(1500)])
    view = await memory.view("t")
    assert (view.messages[0].state, len((await stored(memory))[0].content)) == ("cut", 6000)
    assert "cut" in view.messages[0].content
    assert view.tokens <= 1000
    assert [row.state for row in (await memory.explain("t")).rows] == ["cut"]


@pytest.mark.parametrize(("above", "summaries"), [(0, 0), (5000, 1)])
async def test_m088_the_trigger_sees_what_is_rendered(store: Store, above: int, summaries: int) -> None:
    config = {"kind": "auto_compact", "toolResultEviction": {"afterTurns": 1, "aboveTokens": above}}
    memory = memory_of(store, config, model=Summariser())
    await memory.remember("t", [chat(10), call("a"), result("a", "r" * 3400), said("a"), chat(10), said("b")])
    assert len((await memory.after_turn("t")).summaries) == summaries


@pytest.mark.parametrize("kind", ["summarizing_window", "auto_compact"])
async def test_m090_two_at_once(store: Store, kind: str) -> None:
    model = Summariser()
    memory = memory_of(store, {"kind": kind}, model=model)
    await turns(memory, 3)
    one, two = await asyncio.gather(memory.compress("t"), memory.compress("t"))
    assert min(one.compressed_messages, two.compressed_messages) == 0
    assert len(model.inputs) == 1
    view = await memory.view("t", "q")
    covered = {n for s in view.summaries for n in range(s.first, s.last + 1)}
    assert covered | set(numbers(view.messages)) == set(range(1, 8))


async def test_m090_two_processes_write_no_range_twice(store: Store) -> None:
    models = Summariser(), Summariser()
    memories = [memory_of(store, {"kind": "auto_compact"}, model=model) for model in models]
    await turns(memories[0], 3)
    await asyncio.gather(*(memory.compress("t") for memory in memories))
    assert await lineage(memories[0], store) == [(1, 6, "active")]


async def test_m148_m146_the_view_after_compact_is_fresh(store: Store) -> None:
    memory = memory_of(store, window_of(250), model=Summariser())
    await ten(memory)
    before = await memory.explain("t")
    report = await memory.compress("t")
    after = await memory.explain("t")
    assert report.compressed_messages == 9
    assert [row.type for row in after.rows] == ["SUMMARY"] * 3 + ["CHAT"]
    assert [row.number for row in after.rows] == [-100, -101, -102, 10]
    assert after.total_tokens < before.total_tokens
    assert after.total_tokens == after.system_tokens + sum(row.tokens for row in after.rows)


async def test_m161_forgetting_a_thread(store: Store) -> None:
    memory = memory_of(store, window_of(250), model=Summariser())
    await ten(memory)
    await memory.compress("t")
    await memory.remember("other", [chat(1)])
    await memory.forget("t")
    assert (await memory.view("t")).messages == ()
    assert await stored(memory) == ()
    assert numbers((await memory.view("other")).messages) == [1]
