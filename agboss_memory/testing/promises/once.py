"""Promise 7: whatever is retried or repeated is written once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from agboss_memory.messages import Summary
from agboss_memory.testing.promises.broken import must


def check_once(summaries: Sequence[Summary]) -> None:
    """No two active summaries of a conversation stand for the same message. Raises BrokenPromise."""
    active = sorted((one for one in summaries if one.state == "active"), key=lambda one: one.first)
    for one, other in pairwise(active):
        must(
            one.last < other.first,
            7,
            f"the active summaries {one.first}-{one.last} and {other.first}-{other.last} overlap",
        )
