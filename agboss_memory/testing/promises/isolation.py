"""Promise 8: nothing of one thread is reachable from another; a strategy object holds no state of a thread."""

from __future__ import annotations

from collections.abc import Sequence

from agboss_memory.testing.promises.broken import must
from agboss_memory.testing.shown import Shown


def check_isolation(alone: Sequence[Shown | None], among_others: Sequence[Shown | None]) -> None:
    """A thread is shown the same whether or not the strategy object serves others meanwhile.

    Args:
        alone: Its requests when the object served only this thread, in order; None = refused.
        among_others: The same when it served other threads in between.

    Raises:
        BrokenPromise: A request differs.
    """
    for place, (one, other) in enumerate(zip(alone, among_others, strict=True), 1):
        must(_sent(one) == _sent(other), 8, f"request {place} of a thread differs when another thread is served too")


def _sent(shown: Shown | None) -> object:
    if shown is None:
        return None
    return shown.system, [(m.role, m.content, m.tool_calls, m.tool_call_id) for m in shown.messages]
