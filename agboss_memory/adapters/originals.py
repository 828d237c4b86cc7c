"""The framework's own objects, found again for what a view shows as it was said.

A record holds text; the object of the framework may hold more (images, documents, ids of the provider). While the
framework still has it, the model gets the object itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

from agboss_memory.messages import Message

OriginalT = TypeVar("OriginalT")


class Originals(Generic[OriginalT]):
    """Objects by what they say.

    Args:
        pairs: Record and object, in the order in which they were said.
    """

    def __init__(self, pairs: Iterable[tuple[Message, OriginalT]]) -> None:
        self._found: dict[Any, list[OriginalT]] = {}
        for message, original in pairs:
            self._found.setdefault(_key(message), []).append(original)

    def of(self, messages: Sequence[Message]) -> list[OriginalT | None]:
        """The object of each message that is shown as it was said; None for the others. The newest match first."""
        made: list[OriginalT | None] = []
        for message in reversed(messages):
            found = self._found.get(_key(message), []) if message.state == "live" else []
            made.append(found.pop() if found else None)
        return made[::-1]


def _key(message: Message) -> Any:
    return message.role, message.content, message.tool_call_id, message.tool_calls, message.thinking
