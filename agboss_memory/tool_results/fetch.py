"""``fetch_tool_result``: the full text of a result that a stub stands for."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agboss_memory.contract import ConversationLog
from agboss_memory.messages import Message

FETCH_TOOL_RESULT = "fetch_tool_result"
"""Name under which the function is offered to a model."""

_ID = r"m-([1-9][0-9]{0,17})"


async def fetch_tool_result(log: ConversationLog, id: object) -> str:
    """The full stored text of a tool result of this conversation.

    Args:
        log: The conversation. No id reaches another one.
        id: The message id from a stub, such as ``m-7``. Whatever a model sends is taken.

    Returns:
        The text, or one that begins with ``Error:``.
    """
    if not isinstance(id, str) or not id.strip():
        return "Error: fetch_tool_result needs the message id from a stub, such as m-7."
    match = re.fullmatch(_ID, id.strip())
    if match is None:
        return f"Error: {id.strip()[:80]!r} is no message id; ids look like m-7."
    message = await log.message(int(match[1]))
    if message is None:
        return f"Error: this conversation has no message {match[0]}."
    if message.role != "tool":
        return f"Error: message {match[0]} is no tool result."
    return message.content


def holds_stub(messages: Iterable[Message]) -> bool:
    """Whether a view shows a stub, so that ``fetch_tool_result`` is to be offered."""
    return any(message.state in ("compressed", "evicted") for message in messages)
