"""Turn memory: the last Terns raw, extended over Terns that no summary covers, and the latest summaries."""

from __future__ import annotations

from collections.abc import Sequence

from agboss_memory.contract import BaseMemoryStrategy, MemoryContext, MemoryView, Reach
from agboss_memory.messages import Block, Tern
from agboss_memory.wording import quoted

KIND = "turns"


class TurnMemory(BaseMemoryStrategy):
    """What routers and agents see unless they name a strategy of their own.

    Args:
        turns: Last Terns shown raw, in turns.
        summaries: Latest summaries shown.
        every: Size of a compaction block in turns; 0 = no compaction.
    """

    kind = KIND

    def __init__(self, *, turns: int = 10, summaries: int = 0, every: int = 0) -> None:
        self.turns = turns
        self.every = every
        self.reach = Reach(terns=turns + 2 * every if turns else 0, summaries=summaries)

    def build_context(self, context: MemoryContext) -> MemoryView:
        """The newest Terns and summaries of the context, within the limits."""
        return MemoryView(history=raw_part(context.history, context.blocks, self.turns), summaries=context.summaries)


class SlidingWindowStrategy(BaseMemoryStrategy):
    """The last Terns, whether or not summarised, and the latest summaries.

    Args:
        turns: Last Terns shown raw, in turns.
        summaries: Latest summaries shown. Default 0.
    """

    def __init__(self, turns: int = 10, summaries: int = 0) -> None:
        for name, value in (("turns", turns), ("summaries", summaries)):
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise ValueError(f"{type(self).__name__}: {name}={quoted(value)}; use a whole number, 0 or more")
        self.turns = turns
        self.summaries = summaries
        self.reach = Reach(terns=turns, summaries=summaries)

    def build_context(self, context: MemoryContext) -> MemoryView:
        """The newest Terns and summaries of the context."""
        history = context.history[-self.turns :] if self.turns else ()
        summaries = context.summaries[-self.summaries :] if self.summaries else ()
        return MemoryView(history=history, summaries=summaries)


def raw_part(history: Sequence[Tern], blocks: Sequence[Block], turns: int) -> tuple[Tern, ...]:
    """The last ``turns`` Terns, extended back without a gap over Terns whose block has no summary and never had one.

    ``history`` bounds how far it can extend.
    """
    if turns == 0:
        return ()
    settled = [block for block in blocks if block.state in ("done", "retired")]
    start = max(0, len(history) - turns)
    while start > 0 and not any(block.first <= history[start - 1].number <= block.last for block in settled):
        start -= 1
    return tuple(history[start:])
