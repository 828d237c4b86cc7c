"""Blocks of one thread of the in-memory store."""

from __future__ import annotations

from bisect import insort

from agboss_memory.messages import Block
from agboss_memory.records import replace
from agboss_memory.stores.contract import Window


class MemoryBlocks:
    """Blocks by their last Tern, and which of them are due."""

    __slots__ = ("_due", "_ends", "by_last")

    def __init__(self) -> None:
        self.by_last: dict[int, Block] = {}
        self._ends: list[int] = []
        self._due: list[int] = []

    def put(self, block: Block) -> None:
        """Add or replace a block."""
        if block.last not in self.by_last:
            insort(self._ends, block.last)
        self.by_last[block.last] = block
        if block.state == "due" and block.last not in self._due:
            insort(self._due, block.last)
        elif block.state != "due" and block.last in self._due:
            self._due.remove(block.last)

    def retire(self, first: int, last: int) -> None:
        """The summary of a block was undone."""
        block = self.by_last.get(last)
        if block is not None and block.first == first:
            self.put(replace(block, state="retired"))

    def due(self) -> tuple[Block, ...]:
        """Blocks that are due, oldest first."""
        return tuple([self.by_last[last] for last in self._due]) if self._due else ()

    def open_around(self, number: int) -> list[Block]:
        """Open blocks that a Tern belongs to, newest first."""
        found: list[Block] = []
        for last in reversed(self._ends):
            if last < number:
                break
            block = self.by_last[last]
            if block.state == "open" and block.first <= number:
                found.append(block)
        return found

    def shown(self, window: Window) -> Window:
        """A window with the blocks that touch its Terns, and all that are due."""
        ends: set[int] = set(self._due)
        terns = window.terns
        for end in reversed(self._ends if terns else []):
            if end < terns[0].number:
                break
            if self.by_last[end].first <= terns[-1].number:
                ends.add(end)
        blocks = tuple(self.by_last[last] for last in sorted(ends))
        return replace(window, blocks=blocks, planned_to=self._ends[-1] if self._ends else 0)
