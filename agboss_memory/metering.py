"""Model calls for memory outside a workflow: limited per turn, counted, booked at once."""

from __future__ import annotations

import contextvars
import uuid
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from agboss_memory.contract import MemoryModel, TokenCounter
from agboss_memory.errors import CompactionError
from agboss_memory.messages import UsagePurpose, UsageRecord
from agboss_memory.records import Struct, field
from agboss_memory.stores import BookedUsage, MemoryOutcome, Store


class Meter(Struct, kw_only=True):
    """The calls of one operation.

    Attributes:
        store: Where they are booked.
        key: The thread's key.
        left: Calls that are left; None = no limit.
        clock: Gives the moment, aware UTC.
        usage: What was booked.
    """

    store: Store
    key: int
    left: int | None
    clock: Callable[[], datetime]
    usage: list[UsageRecord] = field(default_factory=list[UsageRecord])

    def take(self) -> None:
        """Use one call. Raises CompactionError ``compaction.call-limit``."""
        if self.left is None:
            return
        if self.left <= 0:
            raise CompactionError(
                "compaction.call-limit",
                "no model call for memory is left in this turn; the rest follows later",
                "nothing to do; Compact has no such limit",
            )
        self.left -= 1

    async def book(self, record: UsageRecord) -> None:
        """Keep the cost, whatever becomes of the answer."""
        self.usage.append(record)
        booked = BookedUsage(step_key=f"memory.{uuid.uuid4().hex}", record=record)
        await self.store.settle(MemoryOutcome(key=self.key, tern=0, now=self.clock(), usage=(booked,)))


_METER: contextvars.ContextVar[Meter | None] = contextvars.ContextVar("agboss_memory_meter", default=None)


@contextmanager
def metered(meter: Meter) -> Generator[None]:
    """Calls inside are counted by ``meter``."""
    token = _METER.set(meter)
    try:
        yield
    finally:
        _METER.reset(token)


class MeteredModel(MemoryModel):
    """A model whose calls are metered. Tokens are counted here; the price is not known.

    Args:
        model: The model.
        counter: Counts what goes in and out.
        caller: The agent.
        name: Id of the model as configured; may be empty.
        purpose: Why it is called.
    """

    def __init__(
        self, model: MemoryModel, counter: TokenCounter, caller: str, name: str, purpose: UsagePurpose
    ) -> None:
        self._model = model
        self._counter = counter
        self._caller = caller
        self._name = name
        self._purpose: UsagePurpose = purpose

    async def generate(self, prompt: str, output: Any = None) -> Any:
        """See ``MemoryModel.generate``."""
        meter = _METER.get()
        if meter is None:
            return await self._model.generate(prompt, output)
        meter.take()
        answer: Any = ""
        try:
            answer = await self._model.generate(prompt, output)
        finally:
            sent, received = self._counter.count([prompt, answer if isinstance(answer, str) else ""])
            await meter.book(
                UsageRecord(
                    caller=self._caller,
                    model=self._name,
                    purpose=self._purpose,
                    input_tokens=sent,
                    output_tokens=received,
                )
            )
        return answer
