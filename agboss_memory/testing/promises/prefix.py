"""Promise 13: between two memory events the system part and the summaries do not move by a byte."""

from __future__ import annotations

from agboss_memory.testing.promises.broken import must
from agboss_memory.testing.shown import Shown


def check_stable_prefix(before: Shown, after: Shown) -> None:
    """Two requests between which nothing was summarised begin alike. Raises BrokenPromise."""
    must(before.system == after.system, 13, "the system text moved although nothing was summarised")
    must(before.lead == after.lead, 13, "the leading summaries moved although nothing was summarised")
