"""The strategies that come with the package."""

from typing import TYPE_CHECKING

from agboss_memory.later import later

if TYPE_CHECKING:
    from agboss_memory.strategies.auto_compact import AutoCompactMemory
    from agboss_memory.strategies.full import FullMemory
    from agboss_memory.strategies.kinds import WindowStrategy, strategy_for
    from agboss_memory.strategies.none import NoneMemory
    from agboss_memory.strategies.summarizing_window import SummarizingWindowMemory
    from agboss_memory.strategies.turns import SlidingWindowStrategy, TurnMemory, raw_part
    from agboss_memory.strategies.windowed import WindowedMemory
else:
    __getattr__ = later(
        __name__,
        {
            "agboss_memory.strategies.auto_compact": ("AutoCompactMemory",),
            "agboss_memory.strategies.full": ("FullMemory",),
            "agboss_memory.strategies.kinds": (
                "WindowStrategy",
                "strategy_for",
            ),
            "agboss_memory.strategies.none": ("NoneMemory",),
            "agboss_memory.strategies.summarizing_window": ("SummarizingWindowMemory",),
            "agboss_memory.strategies.turns": (
                "SlidingWindowStrategy",
                "TurnMemory",
                "raw_part",
            ),
            "agboss_memory.strategies.windowed": ("WindowedMemory",),
        },
    )

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
