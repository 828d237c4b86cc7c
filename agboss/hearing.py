"""From what happens inside an agent's loop to events of the stream."""

from __future__ import annotations

from collections.abc import Callable

import agboss.events as events
from agboss_memory.messages import ToolCall


class Hearing:
    """A listener that turns text and tools into events.

    Args:
        emit: Receives the events.
        answer: Receives text that can only be part of the Tern's answer, None when the node's text cannot be.
    """

    def __init__(self, emit: Callable[[events.RunEvent], None], answer: Callable[[str], None] | None = None) -> None:
        self._emit = emit
        self._answer = answer

    def text(self, node: str, text: str, certain: bool) -> None:
        """A piece of text."""
        if certain and self._answer is not None:
            self._answer(text)
        self._emit(events.TextDelta(node=node, text=text, certain=certain))

    def tool_started(self, node: str, call: ToolCall) -> None:
        """A tool is about to run."""
        self._emit(events.ToolStarted(node=node, tool=call.name, call_id=call.id, arguments=call.arguments))

    def tool_finished(self, node: str, call: ToolCall, result: str, ok: bool) -> None:
        """A tool has run."""
        self._emit(events.ToolFinished(node=node, tool=call.name, call_id=call.id, result=result, ok=ok))
