"""Promise 6: memory work never edits or deletes what was said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agboss_memory.messages import Message
from agboss_memory.testing.promises.broken import must


def check_append_only(before: Sequence[Message], after: Sequence[Message]) -> None:
    """What the log held it still holds, in the same places.

    Args:
        before: The whole log at one moment, oldest first.
        after: The whole log later.

    Raises:
        BrokenPromise: Something is gone or changed.
    """
    must(len(after) >= len(before), 6, f"the log had {len(before)} messages and has {len(after)}")
    for old, new in zip(before, after, strict=False):
        must(_said(old) == _said(new), 6, f"message {old.number} was changed")


def _said(message: Message) -> tuple[Any, ...]:
    return (
        message.number,
        message.role,
        message.content,
        message.tool_calls,
        message.tool_call_id,
        message.tool_name,
        message.thinking,
    )
