"""Which messages a window holds."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
from window_memory import C4, Summariser, call, chat, left, memory_of, numbered, numbers, result, rounds, said, stored

from agboss_memory import (
    Budget,
    MediaPart,
    Memory,
    MemoryContext,
    Message,
    Store,
    SummarizingWindowMemory,
    parse_memory_config,
    strategy_for,
)
from agboss_memory.fit import IMAGE_TOKENS, document_tokens, estimate
from agboss_memory.strategies.selection import share
from agboss_memory.tokens import encoding_for

CONVERSATION = "maxConversationRatio"


def windowed_to(tokens: int, **more: object) -> dict[str, object]:
    return {"kind": "summarizing_window", CONVERSATION: tokens / 1000, **more}


async def ten(memory: Memory, count: int = 10, tokens: int = 100) -> None:
    await memory.remember("t", [chat(tokens) for _ in range(count)])


def test_m012_alone_the_kind_is_summarizing_window_with_its_defaults() -> None:
    from agboss_memory import MemoryStore

    memory = Memory(MemoryStore())
    assert memory.config == parse_memory_config({"kind": "summarizing_window"})


@pytest.mark.parametrize("kind", ["summarizing_window", "auto_compact", "windowed", "full", "none"])
def test_m015_a_strategy_bears_the_kind_of_its_config(kind: str) -> None:
    config = parse_memory_config({"kind": kind})
    strategy = strategy_for(config)
    assert (strategy.kind, strategy.config) == (kind, config)


def test_m018_m020_m021_budgets_are_floors_of_exact_products() -> None:
    config = SummarizingWindowMemory().config
    ratios = (config.max_conversation_ratio, config.max_message_ratio, config.tool_result_threshold_ratio)
    assert [share(128_000, ratio) for ratio in ratios] == [102_400, 25_600, 2_560]
    assert [share(window, ratios[2]) for window in (25_049, 25_050)] == [500, 501]
    exact = parse_memory_config('{"kind": "summarizing_window", "maxConversationRatio": 0.29}')
    assert share(100, exact.model_dump()["maxConversationRatio"]) == 29


def test_m024_a_custom_prefix_wins() -> None:
    custom = {"gpt-4o": "cl100k_base"}
    assert encoding_for("gpt-4o-mini", custom) == "cl100k_base"
    assert encoding_for("gpt-4", custom) == encoding_for("gpt-4")


def test_m025_what_media_and_messages_count() -> None:
    assert (IMAGE_TOKENS, document_tokens(300_000), document_tokens(3)) == (1600, 3000, 1000)
    assert estimate([chat(5)], C4()) == 9
    for media_type, size, tokens in (
        ("image/png", 5, 1600),
        ("image/png", 300_000, 1600),
        ("application/pdf", 300_000, 3000),
        ("application/pdf", 3, 1000),
    ):
        part = MediaPart(name="x", media_type=media_type, data=b"d" * size)
        assert estimate([replace(chat(5), media=(part,))], C4()) == 9 + tokens


@pytest.mark.parametrize(("budget", "first"), [(300, 8), (299, 9)])
async def test_m028_m029_the_newest_that_fit(store: Store, budget: int, first: int) -> None:
    memory = memory_of(store, windowed_to(budget))
    await ten(memory)
    view = await memory.view("t")
    assert numbers(view.messages) == list(range(first, 11))
    assert left(view) == [(1, first - 1, "over_budget")]


async def test_the_newest_message_is_always_kept(store: Store) -> None:
    memory = memory_of(store, windowed_to(10, maxMessageRatio=1.0))
    await ten(memory, 3)
    assert numbers((await memory.view("t")).messages) == [3]


async def summarised(store: Store, placement: str, budget: int = 800) -> Memory:
    memory = memory_of(
        store, windowed_to(budget, summaryPlacement=placement), model=Summariser(), summary_window=100_000
    )
    await ten(memory, 9)
    await memory.compress("t")
    await ten(memory, 1)
    return memory


async def test_m034_summaries_in_the_system_prompt(store: Store) -> None:
    memory = await summarised(store, "SYSTEM_PROMPT")
    view = await memory.view("t")
    assert numbers(view.messages) == [9, 10]
    assert view.messages[0].number == 9
    for text in ("Earlier conversation", "Messages 1 to 8", "S1"):
        assert text in view.system


async def test_m035_summaries_as_a_user_message(store: Store) -> None:
    memory = await summarised(store, "USER_MESSAGE")
    view = await memory.view("t")
    first = view.messages[0]
    assert (first.role, first.state, view.system) == ("user", "summary", "")
    for text in ("session is being continued", "Messages 1 to 8", "S1"):
        assert text in first.content
    assert numbers(view.messages) == [9, 10]


@pytest.mark.parametrize("placement", ["SYSTEM_PROMPT", "USER_MESSAGE"])
async def test_m036_two_summaries_are_numbered_in_order(store: Store, placement: str) -> None:
    memory = await summarised(store, placement, 400)
    view = await memory.view("t")
    text = view.system + view.messages[0].content
    assert [(s.first, s.last) for s in view.summaries] == [(1, 4), (5, 8)]
    assert text.index("1. Messages 1 to 4") < text.index("2. Messages 5 to 8")


@pytest.mark.parametrize("placement", ["SYSTEM_PROMPT", "USER_MESSAGE"])
async def test_m037_no_summary_adds_nothing(store: Store, placement: str) -> None:
    memory = memory_of(store, windowed_to(800, summaryPlacement=placement))
    await ten(memory, 2)
    view = await memory.view("t")
    assert (view.system, numbers(view.messages), len(view.messages)) == ("", [1, 2], 2)


async def test_m039_m127_a_long_message_is_cut_in_the_view_only(store: Store) -> None:
    memory = memory_of(store, {"kind": "summarizing_window", "maxMessageRatio": 0.1})
    await memory.remember("t", [Message(role="user", content="x" * size) for size in (403, 404, 1000)])
    view = await memory.view("t")
    short, cut, long = view.messages
    assert (len(short.content), short.state) == (403, "live")
    for message in (cut, long):
        assert message.content.startswith("x" * 403 + "\n[... message cut")
        assert message.state == "cut"
    assert [len(message.content) for message in await stored(memory)] == [403, 404, 1000]


async def test_m128_arguments_are_not_cut_by_the_cap(store: Store) -> None:
    memory = memory_of(store, {"kind": "summarizing_window", "maxMessageRatio": 0.01}, window=100_000)
    arguments = '{"a": "' + "y" * 40_000 + '"}'
    await memory.remember("t", [chat(1), call("c", arguments=arguments), result("c")])
    assert (await memory.view("t")).messages[1].tool_calls[0].arguments == arguments


async def test_m040_a_result_without_its_call_is_not_sent(store: Store) -> None:
    memory = memory_of(store, windowed_to(100))
    await memory.remember("t", [chat(1), call("c", arguments="a" * 400), result("c"), said("a"), chat(1)])
    view = await memory.view("t")
    assert [message.role for message in view.messages] == ["user"]
    assert left(view) == [(1, 3, "over_budget"), (4, 4, "no_opening_user")]


async def test_m041_m118_an_open_call_gets_one_placeholder(store: Store) -> None:
    memory = memory_of(store)
    await memory.remember("t", [chat(1), call("c"), chat(1), result("orphan")])
    view = await memory.view("t")
    assert [message.role for message in view.messages] == ["user", "assistant", "tool", "user"]
    assert [m.state for m in view.messages].count("placeholder") == 1
    assert left(view) == [(4, 4, "no_call")]
    assert len(await stored(memory)) == 4


async def test_m119_of_imported_results_the_last_counts(store: Store) -> None:
    memory = memory_of(store)
    await memory.remember("t", [chat(1), call("c"), result("c", "one"), result("c", "two")], imported=True)
    view = await memory.view("t")
    assert [m.content for m in view.messages if m.role == "tool"] == ["two"]
    assert left(view) == [(3, 3, "repeated")]


async def test_m042_older_pages_are_loaded_while_there_is_room(store: Store) -> None:
    memory = memory_of(store, {"kind": "summarizing_window", "maxConversationRatio": 0.6}, window=10_000)
    await ten(memory, 700, 10)
    view = await memory.view("t")
    assert numbers(view.messages) == list(range(101, 701))


async def test_m043_the_explained_view_is_the_next_one(store: Store) -> None:
    memory = memory_of(store, {"kind": "summarizing_window", "maxConversationRatio": 0.6}, window=10_000)
    await ten(memory, 700, 10)
    rows = (await memory.explain("t")).rows
    assert [row.number for row in rows] == numbers((await memory.view("t")).messages)


async def test_m058_shuffled_history_is_put_in_order() -> None:
    messages = numbered([chat(100, letter) for letter in "abcdefghij"])
    strategy = SummarizingWindowMemory()
    budget = Budget(window=1000, counter=C4())
    sorted_view = await strategy.build_context(MemoryContext(thread_id="t", messages=messages, budget=budget))
    shuffled = (messages[4], messages[9], *messages[:4], *messages[5:9])
    assert await strategy.build_context(MemoryContext(thread_id="t", messages=shuffled, budget=budget)) == sorted_view
    assert numbers(sorted_view.messages or ()) == [3, 4, 5, 6, 7, 8, 9, 10]


async def test_m087_an_unknown_window_counts_8192_and_warns_once(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    for window in (None, 0, -5):
        caplog.clear()
        memory = memory_of(store, {"kind": "full"}, window=window)
        await memory.remember(f"t{window}", [chat(9000)])
        with caplog.at_level(logging.WARNING, "agboss_memory"):
            view = await memory.view(f"t{window}")
            await memory.view(f"t{window}")
        assert (view.window, view.messages[0].state) == (8192, "cut")
        assert view.tokens <= 8192
        assert [r.getMessage() for r in caplog.records if "context_window=" in r.getMessage()] != []
        assert len(caplog.records) == 1


async def test_m107_windowed_is_the_last_messages(store: Store) -> None:
    memory = memory_of(store, {"kind": "windowed", "windowSize": 3}, model=Summariser())
    await ten(memory, tokens=10)
    view = await memory.view("t")
    assert (numbers(view.messages), view.system) == ([8, 9, 10], "")
    assert left(view) == [(1, 7, "beyond_reach")]
    assert (await memory.compress("t")).compressed_messages == 0
    assert numbers((await memory.view("t", "next")).messages) == [8, 9, 10, 11]


async def test_m110_windowed_in_a_long_thread(store: Store) -> None:
    memory = memory_of(store, {"kind": "windowed", "windowSize": 19}, window=100_000)
    await memory.remember("t", [message for _ in range(250) for message in (chat(1), said("a"))])
    rows = (await memory.explain("t")).rows
    assert [row.number for row in rows] == list(range(483, 501))
    assert [row.number for row in rows] == numbers((await memory.view("t")).messages)


async def test_m111_full_is_the_newest_page_in_whole_atoms(store: Store) -> None:
    memory = memory_of(store, {"kind": "full"}, window=1_000_000)
    await ten(memory, 199, 1)
    await memory.remember("t", [call("a", "b"), result("a"), result("b"), *[chat(1) for _ in range(498)]])
    view = await memory.view("t")
    assert numbers(view.messages) == list(range(203, 701))
    assert left(view) == [(1, 200, "beyond_reach"), (201, 202, "no_call")]


async def test_m112_full_ignores_summaries(store: Store) -> None:
    await summarised(store, "SYSTEM_PROMPT")
    view = await memory_of(store, {"kind": "full"}, window=10_000).view("t")
    assert (numbers(view.messages), view.summaries, view.system) == (list(range(1, 11)), (), "")


async def test_m113_m116_none_is_the_current_turn(store: Store) -> None:
    memory = memory_of(store, {"kind": "none"}, system="P")
    await memory.remember("t", [chat(1), *rounds(2, 40)])
    assert (await memory.view("t")).messages == ()
    assert (await memory.explain("t")).rows == ()
    assert (await memory.compress("t")).compressed_messages == 0
    assert numbers((await memory.view("t", "now")).messages) == [8]
    await memory.remember("t", [chat(1), call("x"), result("x")])
    view = await memory.view("t")
    assert (numbers(view.messages), view.system) == ([8, 9, 10], "P")
    assert left(view) == [(1, 7, "not_of_this_turn")]
