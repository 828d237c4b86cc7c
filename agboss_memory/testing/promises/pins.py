"""Promise 3: system text, the newest user message and open calls are in every view, byte for byte or marked as cut."""

from __future__ import annotations

from collections.abc import Sequence

from agboss_memory.messages import Message
from agboss_memory.testing.promises.broken import must
from agboss_memory.testing.promises.cover import MARKS
from agboss_memory.testing.shown import Shown


def check_pins(shown: Shown, *, system: str, running: Sequence[Message]) -> None:
    """The running turn is there.

    Args:
        shown: The request.
        system: The agent's own system text.
        running: What the running turn said so far, the task first; () = no turn is running.

    Raises:
        BrokenPromise: A pin is missing, or changed without a mark.
    """
    must(shown.system.startswith(system), 3, "the system text is not the agent's")
    if not running:
        return
    task = running[0].content
    users = [message for message in shown.messages if message.role == "user"]
    held = any(task == message.content if shown.exact else task in message.content for message in users)
    cut = any(message.content.endswith(MARKS) and (message.state == "cut" or not shown.exact) for message in users)
    must(held or cut, 3, "the newest user message is not there")
    head = next((message for message in reversed(running) if message.tool_calls), None)
    if head is None:
        return
    there = {(call.id, call.name, call.arguments) for message in shown.messages for call in message.tool_calls}
    missing = [call.id for call in head.tool_calls if (call.id, call.name, call.arguments) not in there]
    must(not missing, 3, f"the open calls {missing} are not there as the model made them")
