"""Promise 5: every request fits the model's window, whatever the strategy selected."""

from __future__ import annotations

from agboss_memory.testing.promises.broken import must
from agboss_memory.testing.promises.cover import MARKS
from agboss_memory.testing.shown import Shown


def check_fit(shown: Shown) -> None:
    """The estimate is within the window, and what was cut says so. Raises BrokenPromise."""
    must(shown.tokens <= shown.window, 5, f"the request has {shown.tokens} tokens, the window {shown.window}")
    for message in shown.messages:
        marked = message.state != "cut" or message.content.endswith(MARKS)
        must(marked, 5, f"message {message.number} was cut without a mark")
