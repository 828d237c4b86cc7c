"""Faults of others, classes A to C and H: pairs, parallel and pending calls, window semantics."""

from __future__ import annotations

import pytest
from window_memory import (
    C4,
    TR,
    Summariser,
    call,
    chat,
    left,
    memory_of,
    numbered,
    numbers,
    result,
    rounds,
    said,
    stored,
)

from agboss_memory import Memory, MemoryContext, Message, Store, SummarizingWindowMemory, Summary
from agboss_memory.contract import Budget
from agboss_memory.stores.contract import SummaryWrite
from agboss_memory.testing.store_requests import NOW

FULL = {"kind": "full"}
COMPACT = {"kind": "auto_compact"}


async def covered(store: Store, memory: Memory, first: int, last: int) -> None:
    """A summary as an older release, or an import, may have left it."""
    log = await memory.log("t")
    old = Summary(first=first, last=last, text="old", kind="auto_compact", agent="ag")
    await store.write_summary(SummaryWrite(key=log.key, tern=0, summary=old, now=NOW))


def valid(messages: tuple[Message, ...]) -> bool:
    waiting: list[str] = []
    for message in messages:
        if message.role == "tool":
            if not waiting or waiting.pop(0) != message.tool_call_id:
                return False
        elif waiting:
            return False
        waiting = waiting or [c.id for c in message.tool_calls]
    return not waiting and (not messages or messages[0].role == "user")


async def test_b001_a_window_does_not_begin_with_a_result(store: Store) -> None:
    memory = memory_of(store, {"kind": "windowed", "windowSize": 3})
    talk = [chat(1), call("c1"), result("c1"), said("a"), chat(1)]
    await memory.remember("t", talk)
    view = await memory.view("t")
    assert (numbers(view.messages), valid(view.messages)) == ([5], True)
    assert left(view) == [(1, 2, "beyond_reach"), (3, 3, "no_call"), (4, 4, "no_opening_user")]
    assert [m.content for m in await stored(memory)] == [m.content for m in talk]


@pytest.mark.parametrize("keep", range(1, 13))
async def test_b003_a_parallel_batch_is_kept_or_left_whole(store: Store, keep: int) -> None:
    memory = memory_of(store, {"kind": "windowed", "windowSize": keep})
    ids = [f"c{n}" for n in range(10)]
    await memory.remember("t", [chat(1), call(*ids), *(result(id) for id in ids), said("a")])
    shown = set(numbers((await memory.view("t", "next")).messages))
    assert len(shown & set(range(2, 13))) in (0, 11)


async def test_b003_compaction_takes_it_whole(store: Store) -> None:
    ids = [f"c{n}" for n in range(10)]
    for budget in (0.001, 0.05, 0.3):
        memory = memory_of(store, {"kind": "summarizing_window", "maxConversationRatio": budget}, model=Summariser())
        thread = f"t{budget}"
        await memory.remember(thread, [chat(30), call(*ids), *(TR(id, 80) for id in ids), said("a" * 200), chat(1)])
        for summary in (await memory.compress(thread)).summaries:
            inside = set(range(summary.first, summary.last + 1)) & set(range(2, 13))
            assert len(inside) in (0, 11)


async def test_b005_only_the_orphan_goes(store: Store) -> None:
    memory = memory_of(store, {"kind": "windowed", "windowSize": 2})
    await memory.remember("t", [chat(1), call("c"), result("c"), Message(role="user", content="the text beside it")])
    view = await memory.view("t")
    assert [m.content for m in view.messages] == ["the text beside it"]


async def test_b006_a_boundary_inside_a_batch_is_healed(store: Store) -> None:
    memory = memory_of(store, COMPACT)
    await memory.remember("t", [chat(1), call("a", "b"), result("a"), result("b"), said("x"), chat(1)])
    await covered(store, memory, 1, 3)
    view = await memory.view("t")
    assert valid(view.messages)
    assert numbers(view.messages) == [2, 3, 4, 5, 6]


async def test_b008_b108_a_late_result_is_not_left_behind(store: Store) -> None:
    memory = memory_of(store, COMPACT)
    await memory.remember(
        "t", [chat(1), call("a", "b"), result("b"), chat(2), result("a"), said("x"), chat(1)], imported=True
    )
    await covered(store, memory, 1, 4)
    view = await memory.view("t")
    assert valid(view.messages)
    assert numbers(view.messages) == [2, 5, 3, 6, 7]


async def test_b009_every_call_id_occurs_once(store: Store) -> None:
    memory = memory_of(store, COMPACT, model=Summariser())
    await memory.remember("t", [chat(200), said("a" * 400), chat(1), call("a", "b"), result("b"), result("a")])
    await memory.compress("t")
    view = await memory.view("t")
    asked = [c.id for m in view.messages for c in m.tool_calls]
    answered = [m.tool_call_id for m in view.messages if m.role == "tool"]
    assert (asked, answered) == (["a", "b"], ["a", "b"])


@pytest.mark.parametrize("kind", ["auto_compact", "summarizing_window"])
async def test_b010_a_pending_call_is_never_compacted(store: Store, kind: str) -> None:
    model = Summariser()
    memory = memory_of(store, {"kind": kind}, model=model)
    await memory.remember("t", [chat(50), call("approve", arguments='{"secret": 1}')])
    for _ in range(4):
        await memory.remember("t", [chat(50), said("b" * 80)])
    await memory.compress("t")
    view = await memory.view("t", "now")
    assert [c.id for m in view.messages for c in m.tool_calls] == ["approve"]
    assert not any("secret" in text for text in model.inputs)
    assert all(not s.first <= 2 <= s.last for s in view.summaries)
    await memory.remember("t", [result("approve", "granted")])
    assert valid((await memory.view("t")).messages)
    await memory.remember("t", [said("c" * 80)])
    await memory.compress("t")
    covered_now = {n for s in (await memory.view("t", "q")).summaries for n in range(s.first, s.last + 1)}
    assert {1, 2} <= covered_now


async def test_b011_a_dangling_call_is_closed(store: Store) -> None:
    memory = memory_of(store)
    await memory.remember("t", [chat(1), call("c1")])
    view = await memory.view("t", "go on")
    assert [m.role for m in view.messages] == ["user", "assistant", "tool", "user"]
    assert "no result" in view.messages[2].content


async def test_b013_b014_compaction_waits_for_the_open_round(store: Store) -> None:
    memory = memory_of(store, COMPACT, model=Summariser())
    await memory.remember("t", [chat(100), said("a" * 400), chat(1), call("c1", "c2")])
    assert (await memory.compress("t")).compressed_messages == 2
    await memory.remember("t", [result("c1"), result("c2")])
    view = await memory.view("t")
    assert numbers(view.messages) == [3, 4, 5, 6]
    assert [(s.first, s.last) for s in view.summaries] == [(1, 2)]


@pytest.mark.parametrize("percent", range(5, 100, 10))
async def test_b048_a_ratio_is_honoured(store: Store, percent: int) -> None:
    memory = memory_of(store, {"kind": "summarizing_window", "maxConversationRatio": percent / 100}, window=2000)
    await memory.remember("t", [chat(10) for _ in range(100)])
    assert len((await memory.view("t")).messages) == min(100, percent * 2)


async def test_b050_b158_the_window_holds_inside_the_loop(store: Store) -> None:
    memory = memory_of(store, {"kind": "windowed", "windowSize": 12}, window=100_000)
    await memory.remember("t", [chat(1)])
    for number in range(20):
        await memory.remember("t", [call(f"c{number}"), result(f"c{number}")])
        view = await memory.view("t")
        assert valid(view.messages)
        assert view.messages[0].number == 1
        assert len(view.messages) <= 13


async def test_b051_the_oldest_round_goes_and_the_task_stays(store: Store) -> None:
    memory = memory_of(store, FULL, window=300)
    await memory.remember("t", [chat(10)])
    for number in range(3):
        await memory.remember("t", [call(f"c{number}"), TR(f"c{number}", 500)])
    view = await memory.view("t")
    assert numbers(view.messages) == [1, 4, 5, 6, 7]
    assert left(view) == [(2, 3, "over_window")]


async def test_b052_the_newest_turn_stays_verbatim(store: Store) -> None:
    memory = memory_of(store, {"kind": "summarizing_window"}, model=Summariser())
    for _ in range(3):
        await memory.remember("t", [chat(50), call("c"), TR("c", 200), said("a" * 40)])
    await memory.compress("t")
    view = await memory.view("t")
    assert numbers(view.messages) == [9, 10, 11, 12]
    assert [(s.first, s.last) for s in view.summaries] == [(1, 8)]


async def test_b053_a_cut_is_never_stored(store: Store) -> None:
    memory = memory_of(store, COMPACT, window=400, model=Summariser("the summary"))
    await memory.remember("t", [chat(300), said("a" * 400), chat(1), call("c"), TR("c", 4000)])
    view = await memory.view("t")
    assert [(s.text, s.last) for s in view.summaries] == [("S2", 2)]
    assert view.messages[-1].state == "cut"
    assert not any("cut:" in m.content for m in await stored(memory))


async def test_b104_equal_moments_keep_the_order_of_appending(store: Store) -> None:
    memory = memory_of(store, {"kind": "windowed", "windowSize": 5}, clock=lambda: NOW)
    await memory.remember("t", [chat(1, letter) for letter in "abcdefghij"])
    assert [m.content[0] for m in (await memory.view("t")).messages] == list("fghij")


async def test_b107_a_naive_moment_is_utc(store: Store) -> None:
    memory = memory_of(store)
    naive = NOW.replace(tzinfo=None)
    await memory.remember("t", [Message(role="user", content="a", created_at=naive), chat(1)])
    assert (await stored(memory))[0].created_at == NOW


async def test_b118_strategies_change_copies_only() -> None:
    messages = numbered([chat(1), *rounds(1, 4000), chat(1)])
    budget = Budget(window=1000, counter=C4())
    context = MemoryContext(thread_id="t", messages=messages, budget=budget)
    view = await SummarizingWindowMemory().build_context(context)
    assert [m.state for m in view.messages or ()][2] == "cut"
    assert messages == numbered([chat(1), *rounds(1, 4000), chat(1)])


async def test_b120_exactly_the_new_messages_are_stored(store: Store) -> None:
    memory = memory_of(store, {"kind": "windowed", "windowSize": 2})
    await memory.remember("t", [chat(1), said("a"), chat(1), said("b"), chat(1)])
    await memory.view("t")
    fresh = await memory.remember("t", [said("c"), chat(2)])
    assert [m.number for m in fresh] == [6, 7]
    assert len(await stored(memory)) == 7
