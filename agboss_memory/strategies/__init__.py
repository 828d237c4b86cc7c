"""The strategies that come with the package."""

from agboss_memory.strategies.auto_compact import AutoCompactMemory
from agboss_memory.strategies.full import FullMemory
from agboss_memory.strategies.kinds import WindowStrategy, strategy_for
from agboss_memory.strategies.none import NoneMemory
from agboss_memory.strategies.summarizing_window import SummarizingWindowMemory
from agboss_memory.strategies.turns import SlidingWindowStrategy, TurnMemory, raw_part
from agboss_memory.strategies.windowed import WindowedMemory

__all__ = [
    "AutoCompactMemory",
    "FullMemory",
    "NoneMemory",
    "SlidingWindowStrategy",
    "SummarizingWindowMemory",
    "TurnMemory",
    "WindowStrategy",
    "WindowedMemory",
    "raw_part",
    "strategy_for",
]
