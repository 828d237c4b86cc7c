"""Every strategy that comes with the package keeps the promises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agboss_memory import MemoryModel, SlidingWindowStrategy, TurnMemory, parse_memory_config, strategy_for
from agboss_memory.strategies import WindowStrategy
from agboss_memory.testing import strategy_conformance

EAGER = {
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
}
EVICTING = {
    "kind": "auto_compact",
    "compactAtRatio": 0.3,
    "summaryPlacement": "SYSTEM_PROMPT",
    "toolResultEviction": {"afterTurns": 1, "aboveTokens": 10},
}


def kind(config: dict[str, Any]) -> Callable[[MemoryModel], WindowStrategy]:
    return lambda model: strategy_for(parse_memory_config(config), model)


def wrong(**config: Any) -> Callable[[], object]:
    return lambda: parse_memory_config(config)


TestSlidingWindow = strategy_conformance(
    lambda model: SlidingWindowStrategy(turns=2, summaries=1),
    refused=[lambda: SlidingWindowStrategy(turns=-1), lambda: SlidingWindowStrategy(summaries=True)],
)
TestTurnMemory = strategy_conformance(lambda model: TurnMemory(turns=2, summaries=2, every=3))
TestSummarizingWindow = strategy_conformance(
    kind({"kind": "summarizing_window", "autoSummarize": True}),
    names_all=True,
    refused=[
        wrong(kind="summarizing_window", maxMessageRatio=0),
        wrong(kind="summarizing_window", maxMessageRatio=float("nan")),
        wrong(kind="summarising_window"),
    ],
)
TestEagerSummarizingWindow = strategy_conformance(kind(EAGER), names_all=True)
TestAutoCompact = strategy_conformance(
    kind({"kind": "auto_compact"}), names_all=True, refused=[wrong(kind="auto_compact", compactAtRatio=1.1)]
)
TestEvictingAutoCompact = strategy_conformance(kind(EVICTING), names_all=True)
TestWindowed = strategy_conformance(
    kind({"kind": "windowed", "windowSize": 4}), names_all=True, refused=[wrong(kind="windowed", windowSise=4)]
)
TestFull = strategy_conformance(
    kind({"kind": "full", "maxHistoryFetch": 7}), names_all=True, refused=[wrong(kind="full", maxHistoryFetch=0)]
)
TestNone = strategy_conformance(kind({"kind": "none"}), names_all=True, refused=[wrong(kind="none", limit=1)])
