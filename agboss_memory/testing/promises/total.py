"""Promise 11: any unicode and any id is accepted and comes back as it was."""

from __future__ import annotations

from collections.abc import Sequence

from agboss_memory.messages import Message
from agboss_memory.testing.promises.broken import must


def check_round_trip(said: Sequence[Message], kept: Sequence[Message]) -> None:
    """A store gives back what it was given. Raises BrokenPromise."""
    must(len(said) == len(kept), 11, f"{len(said)} messages were said, {len(kept)} are kept")
    for place, (one, other) in enumerate(zip(said, kept, strict=True), 1):
        for name in ("role", "content", "tool_calls", "tool_call_id", "tool_name", "thinking"):
            must(getattr(one, name) == getattr(other, name), 11, f"{name} of message {place} is not what was said")
