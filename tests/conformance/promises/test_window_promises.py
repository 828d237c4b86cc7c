"""The promises as properties, over random threads, kinds, budgets and failures of the summariser."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from window_memory import C4, memory_of, said, stored

from agboss_memory import Memory, MemoryStore, Message
from agboss_memory.errors import CompactionError, StrategyError
from agboss_memory.testing import (
    MoodySummariser,
    Turn,
    check_append_only,
    check_calls,
    check_cover,
    check_fit,
    check_once,
    check_pairs,
    check_pins,
    check_progress,
    check_round_trip,
    check_trust,
    moods,
    shown,
    threads,
    windows,
)

KINDS: tuple[dict[str, Any], ...] = (
    {"kind": "summarizing_window", "autoSummarize": True},
    {
        "kind": "summarizing_window",
        "maxConversationRatio": 0.5,
        "maxMessageRatio": 1.0,
        "minToolResultCompressTokens": 5,
        "toolResultThresholdRatio": 0.001,
        "compressWhenWindowAboveRatio": 0.05,
        "summaryPlacement": "USER_MESSAGE",
        "maxHistoryFetch": 3,
        "autoSummarize": True,
        "autoSummarizeRatio": 0.3,
    },
    {"kind": "auto_compact"},
    {
        "kind": "auto_compact",
        "compactAtRatio": 0.3,
        "summaryPlacement": "SYSTEM_PROMPT",
        "toolResultEviction": {"afterTurns": 1, "aboveTokens": 10},
    },
    {"kind": "windowed", "windowSize": 4},
    {"kind": "windowed"},
    {"kind": "full", "maxHistoryFetch": 7},
    {"kind": "none"},
)
SUMMARISING = KINDS[:4]


@dataclass
class Play:
    """One thread that is played through ``Memory``."""

    memory: Memory
    store: MemoryStore
    model: MoodySummariser
    said: list[Message] = field(default_factory=list[Message])

    async def look(self, running: Sequence[Message]) -> None:
        """Take a view and check it; a request that cannot fit is refused."""
        try:
            view = shown(await self.memory.view("t"), self.memory)
        except StrategyError as error:
            if error.code not in ("memory.fixed-overhead", "memory.open-round"):
                raise
            return
        kept = await stored(self.memory)
        check_pairs(view)
        check_pins(view, system="P", running=running)
        check_fit(view)
        check_cover(view, kept)
        check_trust(view)
        check_append_only(self.said, kept)
        check_round_trip(self.said, kept)


async def play(config: dict[str, Any], talk: tuple[Turn, ...], window: int, moods: list[str]) -> Play:
    """Remember step by step, look after each, let the kind work after each turn, at the end Compact."""
    store = MemoryStore()
    model = MoodySummariser(moods)
    memory = memory_of(store, config, window=window, model=model, system="P", reply_reserve=None)
    played = Play(memory, store, model)
    for turn in talk:
        running: list[Message] = []
        for step in turn.steps:
            running += await memory.remember("t", step)
            played.said += running[-len(step) :]
            await played.look(() if step[-1] is turn.answer else running)
        before = model.calls
        await memory.after_turn("t")
        check_calls(model.calls - before)
    with suppress(CompactionError):
        await memory.compress("t")
    await played.look(())
    log = await memory.log("t")
    check_once(await store.summaries(log.key, "ag", True))
    return played


@given(config=st.sampled_from(KINDS), talk=threads(), window=windows(), moods=moods())
def test_promises_1_2_3_5_6_9_hold_for_every_kind(
    config: dict[str, Any], talk: tuple[Turn, ...], window: int, moods: list[str]
) -> None:
    asyncio.run(play(config, talk, window, moods))


@given(config=st.sampled_from(SUMMARISING), talk=threads(), window=st.integers(60, 3000), moods=moods())
def test_promise_4_every_summary_is_smaller_than_what_it_stands_for(
    config: dict[str, Any], talk: tuple[Turn, ...], window: int, moods: list[str]
) -> None:
    async def check() -> None:
        played = await play(config, talk, window, moods)
        log = await played.memory.log("t")
        check_progress(await played.store.summaries(log.key, "ag", True), await stored(played.memory), C4())

    asyncio.run(check())


@given(config=st.sampled_from(SUMMARISING), talk=threads(), window=st.integers(200, 3000), moods=moods())
def test_promise_6_undo_brings_everything_back(
    config: dict[str, Any], talk: tuple[Turn, ...], window: int, moods: list[str]
) -> None:
    async def check() -> None:
        played = await play(config, talk, window, moods)
        memory, store = played.memory, played.store
        log = await memory.log("t")
        for summary in await store.summaries(log.key, "ag"):
            assert await memory.undo("t", summary.id)
        talk_now = await log.newest(10_000)
        assert talk_now.summaries == ()
        stub_or_text = [m.tokens if m.compressed_tokens is None else m.compressed_tokens for m in talk_now.messages]
        assert talk_now.live_tokens == sum(tokens or 0 for tokens in stub_or_text)

    asyncio.run(check())


@given(config=st.sampled_from(SUMMARISING), talk=threads(), window=st.integers(200, 3000))
def test_promise_13_the_prefix_is_stable_between_memory_events(
    config: dict[str, Any], talk: tuple[Turn, ...], window: int
) -> None:
    async def check() -> None:
        played = await play(config, talk, window, [])
        memory = memory_of(
            played.store,
            {**config, "autoSummarize": False} if "autoSummarize" in config else config,
            window=100_000,
            system="P",
        )
        prefixes: set[tuple[str, str]] = set()
        for text in ("one", "two", "three"):
            view = await memory.view("t", text)
            lead = view.messages[0].content if view.messages[0].state == "summary" else ""
            prefixes.add((view.system, lead))
            await memory.remember("t", [Message(role="user", content=text), said("fine")])
        assert len(prefixes) == 1

    asyncio.run(check())
