"""The shared fixture of the window memory cases: counter C4, a window of 1000, a scripted summariser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agboss_memory import Memory, Store, WindowView
from agboss_memory.contract import MemoryModel
from agboss_memory.messages import Message, ToolCall


class C4:
    """A quarter of the characters, rounded down."""

    name = "c4"

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(text) // 4 for text in texts]

    def truncate(self, text: str, limit: int) -> str:
        return text[: limit * 4 + 3] if limit > 0 else ""


class Summariser(MemoryModel):
    """Answers S1, S2, ... and records what it read; a script may answer otherwise or raise."""

    def __init__(self, *script: str | Exception) -> None:
        self.script = list(script)
        self.inputs: list[str] = []

    async def generate(self, prompt: str, output: Any = None) -> Any:
        self.inputs.append(prompt)
        answer = self.script.pop(0) if self.script else f"S{len(self.inputs)}"
        if isinstance(answer, Exception):
            raise answer
        return answer


def chat(tokens: int, letter: str = "x") -> Message:
    """A user message."""
    return Message(role="user", content=letter * (4 * tokens))


def said(text: str) -> Message:
    """An answer of the assistant."""
    return Message(role="assistant", content=text)


def call(*ids: str, name: str = "find", arguments: str = "{}") -> Message:
    """An assistant message that calls a tool once per id."""
    return Message(role="assistant", tool_calls=tuple(ToolCall(id=i, name=name, arguments=arguments) for i in ids))


def result(id: str, text: str = "r", name: str = "find") -> Message:
    """The result of a call."""
    return Message(role="tool", content=text, tool_call_id=id, tool_name=name)


def TR(id: str, characters: int) -> Message:
    """A result of so many characters."""
    return result(id, "t" * characters)


def rounds(count: int, characters: int, start: int = 1) -> list[Message]:
    """So many rounds of call, result and answer."""
    made: list[Message] = []
    for number in range(start, start + count):
        made += [call(f"c{number}"), TR(f"c{number}", characters), said(f"a{number}")]
    return made


def numbered(messages: Sequence[Message]) -> tuple[Message, ...]:
    """As a store would number them."""
    return tuple(replace(message, number=number) for number, message in enumerate(messages, 1))


def memory_of(store: Store, config: dict[str, Any] | None = None, **given: Any) -> Memory:
    """The memory of agent ``ag`` with counter C4 and a window of 1000."""
    values: dict[str, Any] = {"counter": C4(), "window": 1000, "agent": "ag", "reply_reserve": 0, **given}
    return Memory(store, config, **values)


def numbers(messages: Sequence[Message]) -> list[int]:
    """Their numbers, without what was made for a view."""
    return [message.number for message in messages if message.number]


async def stored(memory: Memory, thread: str = "t") -> tuple[Message, ...]:
    """All that the log holds."""
    log = await memory.log(thread)
    return (await log.newest(100_000)).messages


def left(view: WindowView) -> list[tuple[int, int, str]]:
    """What was left out."""
    return [(item.first, item.last, item.reason) for item in view.left_out]
