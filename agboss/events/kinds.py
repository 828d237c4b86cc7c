"""What a stream yields: a frozen union, told apart by ``type``. Every event knows its node and can be dumped as JSON."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator

from agboss.pauses import Pause

_SURROGATE = re.compile("[\ud800-\udfff]")


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, defer_build=True)

    @field_validator("*", mode="after")
    @classmethod
    def _can_be_written(cls, value: Any) -> Any:
        """Lone surrogates have no UTF-8: an event shows them as U+FFFD; the log keeps them as they were."""
        return _SURROGATE.sub("\ufffd", value) if isinstance(value, str) and not value.isascii() else value

    node: str = ""
    """Name of the node that it concerns; empty for the run as a whole."""


class TernStarted(_Event):
    """The Tern was admitted."""

    type: Literal["tern_started"] = "tern_started"
    thread: str
    tern: int


class NodeStarted(_Event):
    """A node begins."""

    type: Literal["node_started"] = "node_started"


class RouteChosen(_Event):
    """A router chose; ``confidence`` is 0 to 1, None when unknown."""

    type: Literal["route_chosen"] = "route_chosen"
    next: str
    confidence: float | None = None
    source: str = ""


class TextDelta(_Event):
    """A piece of an agent's text. ``certain`` = it can only be part of that agent's answer (no tool call can follow)."""

    type: Literal["text_delta"] = "text_delta"
    text: str
    certain: bool = False


class ToolStarted(_Event):
    """A tool is about to run; ``arguments`` is JSON text."""

    type: Literal["tool_started"] = "tool_started"
    tool: str
    call_id: str
    arguments: str


class ToolFinished(_Event):
    """A tool has run; ``ok`` is False when ``result`` is an error text."""

    type: Literal["tool_finished"] = "tool_finished"
    tool: str
    call_id: str
    result: str
    ok: bool


class NodeFinished(_Event):
    """A node has ended; ``answer`` is what it gave, as text."""

    type: Literal["node_finished"] = "node_finished"
    answer: str = ""


class Answered(_Event):
    """The Tern is stored; this is its answer. Memory work may still follow."""

    type: Literal["answered"] = "answered"
    answer: str
    status: str


class Paused(_Event):
    """The Tern is stored and waits for a decision about a call: one event for each, in place of ``answered``.

    ``arguments`` is what the tool is to be called with, ``asked_at`` the moment in ISO form.
    """

    type: Literal["paused"] = "paused"
    thread: str
    tern: int
    pause_id: str
    tool: str
    call_id: str
    arguments: dict[str, Any]
    asked_at: str

    @classmethod
    def of(cls, pause: Pause) -> Paused:
        """The event of a pause."""
        return cls(
            node=pause.agent,
            thread=pause.thread,
            tern=pause.tern,
            pause_id=pause.id,
            tool=pause.tool,
            call_id=pause.tool_call_id,
            arguments=pause.arguments,
            asked_at=pause.asked_at.isoformat(),
        )


class Compacted(_Event):
    """Memory work wrote a summary. Its text is not part of the answer."""

    type: Literal["compacted"] = "compacted"
    memory: str
    input_tokens: int = 0
    output_tokens: int = 0


class Warned(_Event):
    """Something a person should know."""

    type: Literal["warned"] = "warned"
    text: str


class Ended(_Event):
    """The last event of a run that gave a result."""

    type: Literal["ended"] = "ended"
    thread: str
    tern: int
    status: str
    answer: str
    memory: str | None = None


class Failed(_Event):
    """The last event of a run that raised."""

    type: Literal["failed"] = "failed"
    code: str
    message: str


RunEvent: TypeAlias = Annotated[
    TernStarted
    | NodeStarted
    | RouteChosen
    | TextDelta
    | ToolStarted
    | ToolFinished
    | NodeFinished
    | Answered
    | Paused
    | Compacted
    | Warned
    | Ended
    | Failed,
    Field(discriminator="type"),
]
"""Any event of a run."""
