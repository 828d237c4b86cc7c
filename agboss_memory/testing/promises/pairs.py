"""Promise 1: every call has its one result right behind it, and the first message is the user's."""

from __future__ import annotations

from agboss_memory.testing.promises.broken import must
from agboss_memory.testing.shown import Shown


def check_pairs(shown: Shown) -> None:
    """The messages are what a provider accepts. Raises BrokenPromise."""
    messages = shown.messages
    must(not messages or messages[0].role == "user", 1, "the first message is not from the user")
    place = 0
    while place < len(messages):
        head = messages[place]
        must(head.role != "tool", 1, f"the result of call {head.tool_call_id!r} at {place} has no call before it")
        calls = [call.id for call in head.tool_calls]
        results = messages[place + 1 : place + 1 + len(calls)]
        answered = [result.tool_call_id for result in results if result.role == "tool"]
        must(answered == calls, 1, f"calls {calls} at {place} are followed by results of {answered}")
        place += 1 + len(calls)
