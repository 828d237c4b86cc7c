"""Which Terns form a block, when a block is tried, and when it is given up."""

from __future__ import annotations

from agboss_memory.messages import Block
from agboss_memory.records import replace

TRIES = 4
"""First try with the Tern that completed the block, then one after each of the next three."""

PER_TERN = 2
"""Blocks that one Tern may summarise."""


def plan_blocks(planned_to: int, number: int, every: int) -> tuple[Block, ...]:
    """The blocks that end at or before Tern ``number`` and are not planned yet; at most two, oldest first.

    A block ends at a multiple of ``every`` and begins after the last planned Tern, so that ranges never overlap, even
    when ``every`` was changed in between.
    """
    found: list[Block] = []
    first = planned_to + 1
    while len(found) < PER_TERN:
        last = -(-first // every) * every
        if last > number:
            break
        found.append(Block(first=first, last=last))
        first = last + 1
    return tuple(found)


def after_failure(block: Block, error: str) -> Block:
    """The block after one more failed try: still due, or skipped for good."""
    attempts = block.attempts + 1
    return replace(block, state="skipped" if attempts >= TRIES else "due", attempts=attempts, error=error)
