"""Promise 4: a compaction makes the conversation smaller, and memory makes at most four model calls a turn."""

from __future__ import annotations

from collections.abc import Sequence

from agboss_memory.compaction import PER_TURN
from agboss_memory.contract import TokenCounter
from agboss_memory.fit import PER_MESSAGE
from agboss_memory.messages import Message, Summary
from agboss_memory.render import numbered_summaries
from agboss_memory.testing.promises.broken import must


def check_progress(summaries: Sequence[Summary], log: Sequence[Message], counter: TokenCounter) -> None:
    """Every summary is smaller than what it stood for when it was written.

    Args:
        summaries: All summaries of messages, replaced ones too.
        log: All messages, with their tokens.
        counter: Counts tokens.

    Raises:
        BrokenPromise: One is empty, or not smaller.
    """
    size = {message.number: (_shown(message) or 0) + PER_MESSAGE for message in log}
    rendered = {one.id: counter.count(numbered_summaries([one]))[0] for one in summaries}
    for one in summaries:
        must(bool(one.text.strip()), 4, f"the summary of {one.first} to {one.last} is empty")
        inside = [old for old in summaries if old.id < one.id and one.first <= old.first and old.last <= one.last]
        stood_for = sum(size.get(n, 0) for n in range(one.first, one.last + 1)) + sum(
            rendered[old.id] for old in inside
        )
        must(
            rendered[one.id] < stood_for,
            4,
            f"the summary of {one.first} to {one.last} has {rendered[one.id]} tokens, what it stands for {stood_for}",
        )


def _shown(message: Message) -> int | None:
    """Tokens of what stood in the window: the stub of a result that has one, which may be longer than a short result."""
    return message.tokens if message.compressed_content is None else message.compressed_tokens


def check_calls(calls: int, *, most: int = PER_TURN) -> None:
    """Memory made few enough model calls in one turn. Raises BrokenPromise."""
    must(calls <= most, 4, f"{calls} model calls for memory in one turn; at most {most} are allowed")
