"""Paused Terns: what their journal keeps of questions and answers, and going on with one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from agboss_memory.errors import PauseError
from agboss_memory.records import Record
from agboss_memory.stores.admissions import Step, WindowSpec

PAUSE = "pause"
"""Kind of a step that is a question: what the Tern waits for."""

DECISION = "decision"
"""Kind of a step that is the answer to one."""

LASTING = frozenset({PAUSE, DECISION})
"""Kinds of steps that outlive the Tern: they tell who was asked for what, and let an answer that comes again be known."""


class Resumption(Record, kw_only=True):
    """A request to go on with a paused Tern, or with one that went on and whose process is gone.

    Attributes:
        key: The thread's key.
        number: The Tern's number.
        holder: Identifies this App in the lease.
        now: Aware UTC.
        thread: Id of the thread, for its line.
        workflow: Name of the workflow.
        steps: Answers, kept in the same transaction; none = take the Tern without one, to end it.
        lease_seconds: How long the lease lasts unless renewed.
        window: What to read.
        queue: Take a ticket when the thread is busy.
        ticket: The ticket that the request waited with, 0 = none.
    """

    key: int
    number: int
    holder: str
    now: datetime
    thread: str
    workflow: str
    steps: tuple[Step, ...] = ()
    lease_seconds: float = 10.0
    window: WindowSpec = WindowSpec()
    queue: bool = False
    ticket: int = 0


def fresh_answers(request: Resumption, kept: Iterable[Step], *, finished: bool) -> tuple[Step, ...]:
    """The answers of the request that are not kept yet.

    Raises:
        PauseError: One of them was given otherwise (``pause.decided``), or the Tern has ended (``pause.closed``).
    """
    known = {step.key: step.outcome for step in kept}
    for step in request.steps:
        if known.get(step.key, step.outcome) != step.outcome:
            raise PauseError(
                "pause.decided",
                f"Tern {request.number} of thread {request.thread!r} was decided otherwise before; nothing changed.",
                "Read the thread: the first decision counts.",
                thread=request.thread,
                tern=request.number,
            )
    fresh = tuple(step for step in request.steps if step.key not in known)
    if fresh and finished:
        raise PauseError(
            "pause.closed",
            f"Tern {request.number} of thread {request.thread!r} has ended; it waits for nothing any more.",
            "Read the thread; a new task begins a new Tern.",
            thread=request.thread,
            tern=request.number,
        )
    return fresh


def goes_on(request: Resumption, kept: Sequence[Step], fresh: Sequence[Step]) -> bool:
    """Whether a paused Tern has something new to do: an answer that it did not have, or none that it lacks."""
    return bool(fresh) or not request.steps or not open_questions(kept)


def open_questions(steps: Iterable[Step]) -> int:
    """How many questions have no answer."""
    kinds = [step.kind for step in steps]
    return kinds.count(PAUSE) - kinds.count(DECISION)


def lasting(steps: Mapping[str, Step]) -> dict[str, Step]:
    """What of a journal outlives its Tern."""
    return {key: step for key, step in steps.items() if step.kind in LASTING}
