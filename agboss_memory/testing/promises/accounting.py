"""Promise 10: every model call that is made for memory is booked, once."""

from __future__ import annotations

from agboss_memory.testing.promises.broken import must


def check_accounting(calls: int, booked: int) -> None:
    """As many calls are booked as were made.

    Args:
        calls: What the model counted.
        booked: What the store's ledger or the usage records say.

    Raises:
        BrokenPromise: A call was booked twice or not at all.
    """
    must(calls == booked, 10, f"{calls} model calls were made for memory, {booked} are booked")
