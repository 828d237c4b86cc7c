"""What a provider would refuse: the reasons why a request is malformed."""

from __future__ import annotations

from collections.abc import Sequence

from agboss.models import ModelRequest
from agboss_memory.messages import Message
from agboss_memory.tokens import counter_for


def refusals(request: ModelRequest, window: int | None) -> list[str]:
    """Every reason, empty for a request that any provider accepts. ``window`` in tokens, None = not checked."""
    messages = request.messages
    found: list[str] = []
    if not messages:
        found.append("the request has no messages")
    elif messages[0].role != "user":
        found.append(f"the first message is from {messages[0].role!r}, not from the user")
    found += _pairs(messages)
    for number, message in enumerate(messages, start=1):
        if not (message.content or message.tool_calls or message.thinking or message.media):
            found.append(f"message {number} ({message.role}) is empty")
    names = [tool.name for tool in request.tools]
    found += [f"tool {name!r} is offered twice" for name in sorted({n for n in names if names.count(n) > 1})]
    if window is not None:
        tokens = counter_for(request.model).count([request.text])[0]
        if tokens > window:
            found.append(f"the request has about {tokens} tokens, the window {window}")
    return found


def _pairs(messages: Sequence[Message]) -> list[str]:
    found: list[str] = []
    open_calls: set[str] = set()
    seen: set[str] = set()
    for number, message in enumerate(messages, start=1):
        if message.role == "tool":
            if message.tool_call_id not in open_calls:
                found.append(f"message {number} is the result of {message.tool_call_id!r}, which is no open call")
            open_calls.discard(message.tool_call_id or "")
            continue
        if open_calls:
            found.append(f"message {number} ({message.role}) comes before the results of {sorted(open_calls)}")
            open_calls.clear()
        for call in message.tool_calls:
            if call.id in seen:
                found.append(f"message {number} repeats the call id {call.id!r}")
            seen.add(call.id)
            open_calls.add(call.id)
    if open_calls:
        found.append(f"the request ends with unanswered calls {sorted(open_calls)}")
    return found
