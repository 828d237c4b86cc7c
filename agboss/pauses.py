"""What a Tern waits for, and what is decided about it; both as they stand in the Tern's journal."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from datetime import datetime
from typing import Any, cast

import msgspec

from agboss_memory.messages import Message, ToolCall
from agboss_memory.records import Record
from agboss_memory.stores.admissions import Step
from agboss_memory.stores.pauses import DECISION, PAUSE

SAID = "said"
"""Kind of a step that holds what agents had said when their Tern paused; for one that ends there."""


class Pause(Record, kw_only=True):
    """A call that waits for a decision.

    Attributes:
        id: Names it in ``app.resume``; unique in its thread.
        thread: Id of the thread.
        tern: Number of the Tern.
        agent: Name of the agent that calls.
        tool: Name of the tool.
        tool_call_id: Id of the call.
        arguments: What the tool is to be called with, as the model gave it.
        asked_at: When it was first asked, aware UTC.
    """

    id: str
    thread: str
    tern: int
    agent: str
    tool: str
    tool_call_id: str
    arguments: dict[str, Any]
    asked_at: datetime


class Decision(Record, kw_only=True):
    """What is decided about a call.

    Attributes:
        approved: Whether it may run.
        reason: Why not; told to the model when the call is denied.
        arguments: Run it with these instead; None = as the model gave them. Told to the model.
    """

    approved: bool
    reason: str = ""
    arguments: dict[str, Any] | None = None


class PauseAnswer(Record, kw_only=True):
    """A call that was asked about, and what came of it.

    Attributes:
        pause: What was asked.
        decision: What was decided; None = nothing, so far or before its Tern was cancelled.
    """

    pause: Pause
    decision: Decision | None


class Ask(Record, kw_only=True):
    """A call that needs approval and has no decision.

    Attributes:
        stem: Begins the names of the agent's steps.
        agent: Name of the agent.
        call: The call.
        earlier: The question as an earlier run of the Tern has asked it, as it is stored; None = it is new.
    """

    stem: str
    agent: str
    call: ToolCall
    earlier: dict[str, Any] | None = None


class PauseRequired(Exception):
    """Ends the run of a Tern that cannot go on without a decision; ``asks`` holds what it waits for."""

    def __init__(self, asks: tuple[Ask, ...]) -> None:
        super().__init__(asks)
        self.asks = asks


class Question(Record, kw_only=True):
    """A question of a Tern as its journal has it.

    Attributes:
        pause: The question.
        answer_step: Name of the step that answers it.
        stored: The answer as it is stored, None = it is open.
    """

    pause: Pause
    answer_step: str
    stored: str | None = None

    @property
    def decision(self) -> Decision | None:
        """The answer, None = it is open."""
        return None if self.stored is None else msgspec.convert(json.loads(self.stored), Decision)


def pause_step(stem: str, call: ToolCall) -> str:
    """Name of the step that asks about a call."""
    return f"{stem}.{PAUSE}.{call.id}"


def decision_step(stem: str, call: ToolCall) -> str:
    """Name of the step that answers it."""
    return f"{stem}.{DECISION}.{call.id}"


def asked(ask: Ask, thread: str, tern: int, now: datetime) -> tuple[Pause, dict[str, Any]]:
    """The question, and the same as it is stored. An id begins with the number of the Tern, so that it can be found."""
    stored = ask.earlier or {
        "id": f"{tern}-{secrets.token_hex(6)}",
        "agent": ask.agent,
        "tool": ask.call.name,
        "call": ask.call.id,
        "arguments": _object(ask.call.arguments),
        "at": now.isoformat(),
        "answer": decision_step(ask.stem, ask.call),
    }
    return _pause(stored, thread, tern), stored


def answer(step: str, decision: Decision) -> Step:
    """A decision as a step."""
    return Step(
        key=step, kind=DECISION, input_hash="", outcome=json.dumps(msgspec.to_builtins(decision), sort_keys=True)
    )


def questions(steps: Iterable[Step], thread: str, tern: int) -> tuple[Question, ...]:
    """The questions of a Tern, in the order in which they were asked."""
    steps = tuple(steps)
    answers = {step.key: step.outcome for step in steps if step.kind == DECISION}
    found: list[Question] = []
    for step in steps:
        if step.kind == PAUSE:
            stored = json.loads(step.outcome)
            name = stored["answer"]
            found.append(Question(pause=_pause(stored, thread, tern), answer_step=name, stored=answers.get(name)))
    return tuple(found)


def open_pauses(steps: Iterable[Step], thread: str, tern: int) -> tuple[Pause, ...]:
    """What a Tern waits for, in the order in which it was asked."""
    return tuple(one.pause for one in questions(steps, thread, tern) if one.stored is None)


def tern_of(pause_id: str) -> int:
    """The number of the Tern that an id of a pause belongs to; 0 = it is none."""
    number = pause_id.partition("-")[0]
    return int(number) if number.isascii() and number.isdigit() and len(number) < 16 else 0


def as_said(messages: Iterable[Message]) -> list[Any]:
    """Messages as JSON values."""
    return [msgspec.to_builtins(message) for message in messages]


def said(steps: Iterable[Step]) -> list[Message]:
    """What agents had said when a Tern paused for the last time."""
    kept = [step.outcome for step in steps if step.kind == SAID]
    return [msgspec.convert(one, Message) for one in json.loads(kept[-1])] if kept else []


def _object(arguments: str) -> dict[str, Any]:
    given: Any = json.loads(arguments or "{}")
    return cast("dict[str, Any]", given) if isinstance(given, dict) else {"value": given}


def _pause(stored: dict[str, Any], thread: str, tern: int) -> Pause:
    return Pause(
        id=stored["id"],
        thread=thread,
        tern=tern,
        agent=stored["agent"],
        tool=stored["tool"],
        tool_call_id=stored["call"],
        arguments=stored["arguments"],
        asked_at=datetime.fromisoformat(stored["at"]),
    )
