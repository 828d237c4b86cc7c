"""What a running Tern has finished, so that another process can go on without doing it again."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import msgspec

from agboss_memory.contract import utc_now
from agboss_memory.records import Struct
from agboss_memory.stores.admissions import Step, StepWrite
from agboss_memory.stores.contract import Store
from agboss_memory.stores.pauses import DECISION, PAUSE

if TYPE_CHECKING:
    from agboss.models.meter import Meter


class Journal:
    """The finished calls of one Tern. They go with its final transaction.

    Nothing is written before a tool runs: a Tern of one model call costs no step. What the store refused, and the last reply,
    stay here: while the App lives, a Tern that could not be stored goes on from them.

    Args:
        store: Where it is kept.
        key: The store's key of the thread.
        number: Number of the Tern.
        fence: Carried by every write.
        meter: Gives what was spent since it was last asked; it is booked with the next step.
        steps: What an earlier run of the Tern finished.
        refused: What it finished besides, and no store has.
    """

    __slots__ = ("_fence", "_key", "_meter", "_number", "_refused", "_steps", "_store", "last")

    def __init__(
        self,
        store: Store,
        key: int,
        number: int,
        fence: int,
        meter: Meter,
        steps: tuple[Step, ...] = (),
        refused: tuple[Step, ...] = (),
    ) -> None:
        self._store = store
        self._key = key
        self._number = number
        self._fence = fence
        self._meter = meter
        self._steps = {step.key: step for step in steps} if steps else {}
        self._refused = {step.key: step for step in refused if step.key not in self._steps} if refused else {}
        self.last: tuple[str, Struct] | None = None
        """The name of the last call of a model, which is not kept because nothing follows it, and its reply."""

    @property
    def begun(self) -> bool:
        """Whether something is kept, so that all that follows is worth keeping."""
        return bool(self._steps)

    @property
    def asked(self) -> bool:
        """Whether the Tern has ever waited for a decision."""
        return any(step.kind == PAUSE for step in self._steps.values())

    @property
    def decided(self) -> int:
        """How many decisions it has got."""
        return sum(step.kind == DECISION for step in self._steps.values())

    @property
    def steps(self) -> tuple[Step, ...]:
        """All that is kept, in the order in which it was written."""
        return tuple(self._steps.values())

    @property
    def refused(self) -> tuple[Step, ...]:
        """What is finished and in no store: what could not be written, then the last step."""
        found = tuple(self._refused.values())
        if self.last is None:
            return found
        name, reply = self.last
        return (*found, _step(name, "model", msgspec.to_builtins(reply), ""))

    async def write_refused(self) -> None:
        """Write what no store has yet. Raises as ``keep``."""
        for step in tuple(self._refused.values()):
            await self._write(step)

    def finished(self, name: str, given: str = "") -> Any:
        """What came of a step that is finished, as JSON values; None = it is not, or it had another input."""
        step = self._steps.get(name) or (self._refused.get(name) if self._refused else None)
        return None if step is None or step.input_hash != _hash(given) else json.loads(step.outcome)

    async def keep(self, name: str, kind: str, outcome: Any, given: str = "") -> None:
        """Keep a finished step. One that is kept already is left alone.

        Args:
            name: Unique within the Tern and the same in every run of it: ``{node}.{visit}.{kind}.{n}``.
            kind: ``model``, ``tool``, ``route``, ``action``, ``pause`` or ``said``.
            outcome: What came of it, as JSON values.
            given: Its input; a run with another input must not use the outcome.

        Raises:
            LeaseLostError: Another process has taken the Tern over.
            ThreadDeletedError: The thread is gone.
        """
        if name not in self._steps:
            step = self._refused[name] = _step(name, kind, outcome, given)
            await self._write(step)

    async def _write(self, step: Step) -> None:
        await self._store.write_step(
            StepWrite(
                key=self._key,
                fence=self._fence,
                number=self._number,
                step=step,
                now=utc_now(),
                usage=self._meter.take(),
            )
        )
        self._steps[step.key] = self._refused.pop(step.key)


def _step(name: str, kind: str, outcome: Any, given: str) -> Step:
    return Step(key=name, kind=kind, input_hash=_hash(given), outcome=json.dumps(outcome))


def _hash(given: str) -> str:
    return hashlib.sha256(given.encode("utf-8", "surrogatepass")).hexdigest()[:16] if given else ""
