"""The strategies that come with the package."""

from agboss_memory.strategies.turns import SlidingWindowStrategy, TurnMemory, raw_part

__all__ = ["SlidingWindowStrategy", "TurnMemory", "raw_part"]
