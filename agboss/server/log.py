"""The events of one Tern, kept for whoever listens, from any position."""

from __future__ import annotations

import asyncio
from collections import deque

from pydantic_core import to_json

from agboss.errors import AgbossError
from agboss.events import Answered, Ended, Paused, RunEvent, TernStarted, TextDelta
from agboss.run import RunResult
from agboss.server.problems import Problem, problem_of
from agboss.server.wire import camel, camel_keys
from agboss_memory.messages import TernStatus
from agboss_memory.records import Record

MOST_EVENTS = 5_000
"""Events that are kept of one Tern."""

MOST_CHARACTERS = 1_000_000
"""Characters of them."""


class LoggedEvent(Record, kw_only=True):
    """An event as it is kept.

    Attributes:
        number: From 1.
        type: Its name.
        data: JSON text.
        text: What it adds to the answer.
        source: The event itself; the error for ``failed``, None for ``gap``.
    """

    number: int
    type: str
    data: str
    text: str = ""
    source: RunEvent | Problem | None = None


class TernLog:
    """One Tern while it runs, and for some time after.

    Args:
        workflow: Name of its App.
        owner: Who asked for it.
        detached: Goes on when nobody listens any more.
    """

    def __init__(self, workflow: str, owner: str | None, *, detached: bool) -> None:
        self.workflow = workflow
        self.owner = owner
        self.detached = detached
        self.thread = ""
        self.tern = 0
        self.status = ""
        self.result: RunResult | None = None
        self.error: AgbossError | None = None
        self.ended = False
        self.listeners = 0
        self.task: asyncio.Task[None] | None = None
        self._direct: frozenset[str] = frozenset()
        self._shown = ""
        self._events: deque[LoggedEvent] = deque()
        self._characters = 0
        self._last = 0
        self.before = 0
        """Number of the last event that came before this part of the Tern: what led to its pause."""

        self._changed = asyncio.Event()

    @property
    def last(self) -> int:
        """Number of the newest event."""
        return self._last

    def admitted(self, thread: str, direct: frozenset[str]) -> None:
        """The Tern has got its thread; text of the agents ``direct`` can only be the answer."""
        self.thread, self._direct = thread, direct
        self._wake()

    def take(self, event: RunEvent) -> None:
        """Keep an event of the run."""
        if isinstance(event, TernStarted | Ended):
            self.tern = event.tern
        if isinstance(event, Answered):
            self.status = event.status
        elif isinstance(event, Paused):
            self.tern, self.status = event.tern, TernStatus.PAUSED
        self._add(event.type, event, self._answer(event))

    def go_on_from(self, earlier: TernLog) -> None:
        """Put the events up to a pause before those that follow it; their numbers go on."""
        self._events = deque(earlier._events)
        self._characters = earlier._characters
        self._last = self.before = earlier.last

    def fail(self, error: AgbossError) -> None:
        """The run raised."""
        self.error = error
        if error.run is not None:
            self.tern, self.status = error.run.tern, str(error.run.status)
        self._add("failed", problem_of(error))

    def end(self) -> None:
        """Nothing more will come."""
        self.ended = True
        self._wake()

    def after(self, number: int) -> list[LoggedEvent]:
        """Events with a greater number. A ``gap`` stands for those that are not kept any more."""
        found = [event for event in self._events if event.number > number]
        first = self._events[0].number if self._events else 1
        if number + 1 < first:
            lost = to_json({"type": "gap", "from": number + 1, "to": first - 1}).decode()
            found.insert(0, LoggedEvent(number=first - 1, type="gap", data=lost))
        return found

    async def change(self) -> None:
        """Wait until something is new."""
        await self._changed.wait()

    def leave(self) -> None:
        """A listener is gone; the last one takes the Tern along unless it is detached."""
        self.listeners -= 1
        if self.listeners <= 0 and not self.detached:
            self.cancel()

    def cancel(self) -> bool:
        """Cancel the Tern; False when it has ended."""
        if self.ended or self.task is None:
            return False
        return self.task.cancel()

    def _answer(self, event: RunEvent) -> str:
        """The piece of the answer that nobody has got yet."""
        piece = ""
        if isinstance(event, TextDelta) and event.certain and event.node in self._direct:
            piece = event.text
        elif isinstance(event, Answered) and len(event.answer) > len(self._shown):
            piece = event.answer.removeprefix(self._shown)
        self._shown += piece
        return piece

    def _add(self, kind: str, value: RunEvent | Problem, text: str = "") -> None:
        self._last += 1
        told = camel(value) if isinstance(value, Problem) else camel_keys(value.model_dump(mode="json"))
        data = to_json(told, fallback=str, inf_nan_mode="null").decode()
        self._events.append(LoggedEvent(number=self._last, type=kind, data=data, text=text, source=value))
        self._characters += len(data)
        while len(self._events) > MOST_EVENTS or (self._characters > MOST_CHARACTERS and len(self._events) > 1):
            self._characters -= len(self._events.popleft().data)
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
