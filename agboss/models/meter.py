"""What one Tern spends: every model call, tool and step is checked before and booked after."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING

from agboss.errors import CompactionError, LimitExceededError, ModelError
from agboss.models.chat import ChatModel, ModelReply, ModelRequest, ModelUsage
from agboss_memory.messages import MOST_COUNT, MOST_USD, UsageRecord
from agboss_memory.records import Struct, replace
from agboss_memory.stores.contract import BookedUsage, DaySpend
from agboss_memory.wording import quoted

if TYPE_CHECKING:
    from agboss.components.model_spec import ModelSpec
    from agboss.components.settings import Limits, RunLimits
    from agboss_memory.messages import UsageSource

logger = logging.getLogger(__name__)

DEFAULT_STEPS = 100
"""Nodes that one Tern may run when ``limits.per_run.steps`` is not set."""

MEMORY_CALLS = 4
"""Model calls that all memory work of one Tern may make together; what a person asks for has no bound."""

MEMORY_SECONDS = 600.0
"""``memory_timeout`` when it is not set: a thread waits for its memory, so that it must not wait for ever."""

CostOf = Callable[["ModelSpec", ModelUsage], "tuple[Decimal | None, UsageSource]"]
_MICRO = Decimal(1_000_000)
_FREE = Decimal(0)
_NO_SPEND = DaySpend()


class _Tally(Struct):
    steps: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    tokens: int = 0
    usd: Decimal = _FREE


class Meter:
    """Counts, bounds and books what one Tern spends.

    Args:
        limits: Bounds of the workflow.
        cost_of: Prices a call.
        warn: Receives one-line warnings.
        prefix: Begins every booking key; for work that is booked on a Tern by somebody else than its run.
        resumes: How often the Tern was taken over. The calls of memory are in no journal: what an earlier run of the Tern
            paid for is not paid again, so that the next one must not have its key.
        decided: How often it went on after a decision; the same holds.
        memory_timeout: Seconds that one model call of memory may take.
    """

    __slots__ = (
        "_again",
        "_before",
        "_cost_of",
        "_day",
        "_keys",
        "_later",
        "_limits",
        "_prefix",
        "_run",
        "_taken",
        "_tally",
        "_unknown",
        "booked",
        "memory_calls",
        "memory_timeout",
        "warn",
    )

    def __init__(
        self,
        limits: Limits | None,
        cost_of: CostOf,
        warn: Callable[[str], None] = logger.warning,
        prefix: str = "",
        resumes: int = 0,
        decided: int = 0,
        memory_timeout: float = MEMORY_SECONDS,
    ) -> None:
        self._limits = limits
        self._run = limits.per_run if limits is not None else None
        self._day: RunLimits | None = None
        self._before = _NO_SPEND
        self._cost_of = cost_of
        self.warn = warn
        self._prefix = prefix
        self._later = (f".decided{decided}" if decided else "") + (f".run{resumes + 1}" if resumes else "")
        self._keys: dict[str, int] = {}
        self._tally = _Tally()
        self._again = _Tally()  # what an earlier run of the Tern made, and has in the ledger
        self._unknown: tuple[str, ...] = ()
        self._taken = 0
        self.memory_calls: int | None = MEMORY_CALLS
        self.memory_timeout = memory_timeout
        self.booked: tuple[BookedUsage, ...] = ()

    @property
    def steps(self) -> int:
        """Nodes that ran."""
        return self._tally.steps

    @property
    def tool_calls(self) -> int:
        """Tools that ran."""
        return self._tally.tool_calls

    @property
    def usage(self) -> tuple[UsageRecord, ...]:
        """All records so far, in order."""
        return tuple([item.record for item in self.booked])

    @property
    def spend(self) -> Decimal | None:
        """US dollars so far, None when a price is unknown."""
        return None if self._unknown else self._tally.usd

    def bound_by(self, day: DaySpend) -> None:
        """Hold the Tern to the daily bounds; ``day`` is what the workflow spent today before it."""
        self._day = None if self._limits is None else self._limits.per_day
        self._before = day

    def take(self) -> tuple[BookedUsage, ...]:
        """What was booked since the last take, to be stored."""
        fresh = self.booked[self._taken :]
        self._taken = len(self.booked)
        return fresh

    @contextmanager
    def taken(self) -> Generator[tuple[BookedUsage, ...]]:
        """``take`` for a write that may fail: then everything is offered again, which the store books once."""
        try:
            yield self.take()
        except BaseException:
            self._taken = 0
            raise

    def take_memory_call(self, caller: str) -> None:
        """Use one of the calls that memory may make in this Tern. Raises CompactionError when none is left."""
        if self.memory_calls is None:
            return
        if self.memory_calls <= 0:
            raise CompactionError(
                "compaction.call-limit",
                f"memory made {MEMORY_CALLS} model calls in this turn; {caller!r} has to wait for the next one",
                "nothing to do for compaction; a strategy of your own should ask less often",
            )
        self.memory_calls -= 1

    async def generate(self, model: ChatModel, spec: ModelSpec, request: ModelRequest, node: str) -> ModelReply:
        """Make one model call. Raises LimitExceededError before it when a bound is reached."""
        key = self.begin_call(request, node)
        journaled = request.purpose in ("answer", "route")
        reply = await (model.generate(request) if journaled else self._within_bound(model, request))
        self.end_call(key, spec, request, reply)
        return reply

    async def _within_bound(self, model: ChatModel, request: ModelRequest) -> ModelReply:
        """A call of memory. Raises ModelError when it takes too long."""
        bound = asyncio.timeout(self.memory_timeout)
        try:
            async with bound:
                return await model.generate(request)
        except TimeoutError as error:
            if not bound.expired():
                raise
            raise ModelError(
                "model.timeout",
                f"model {request.model!r} gave {request.caller!r} no answer within {self.memory_timeout:g} s",
                "it is asked again at a later turn; name a faster model for memory, or raise memory_timeout",
            ) from error

    def begin_call(self, request: ModelRequest, node: str, *, again: bool = False) -> str:
        """Count a model call that is made now; gives its booking key. Raises LimitExceededError when a bound is reached.

        With ``again`` an earlier run of the Tern made it: it is counted, and never refused.
        """
        if not again:
            self.check_model(request.caller)
        self._tally.model_calls += 1
        self._again.model_calls += again
        journaled = request.purpose in ("answer", "route")
        return self._key(f"{node}.model" if journaled else f"{node}.model{self._later}")

    def end_call(
        self, key: str, spec: ModelSpec, request: ModelRequest, reply: ModelReply, *, again: bool = False
    ) -> None:
        """Book what a call has cost. Raises ModelError when the model gave something else than a reply."""
        if not isinstance(reply, ModelReply):
            raise ModelError(
                "model.bad-reply",
                f"model {request.model!r} of {request.caller!r} gave {type(reply).__name__}, not a ModelReply",
                "return ModelReply(text=...) from generate()",
            )
        usage = reply.usage
        record = record_of(spec, request, usage, self._cost_of) if countable(usage) else None
        if record is None or not countable(record):
            raise ModelError(
                "model.bad-reply",
                f"model {request.model!r} of {request.caller!r} reported {quoted(usage, 120)}",
                f"report whole numbers of tokens from 0 to {MOST_COUNT}, and a cost from 0 to {MOST_USD} dollars by its price too",
            )
        self._book(key, record, again=again)
        if not isinstance(reply.text, str):  # paid for all the same
            raise ModelError(
                "model.bad-reply",
                f"model {request.model!r} of {request.caller!r} gave a text that is a {type(reply.text).__name__}",
                "return ModelReply(text='...'); an answer without text has text=''",
            )

    def book_route(self, node: str, records: tuple[UsageRecord, ...]) -> None:
        """Book the calls of a router."""
        for record in records:
            self._tally.model_calls += 1
            self._book(self._key(f"{node}.route"), record)

    def book_update(self, strategy: str, records: tuple[UsageRecord, ...]) -> None:
        """Book what a strategy reports of its own."""
        for record in records:
            self._book(self._key(f"{strategy}.memory{self._later}"), record)

    def book_tool(self, tool: str, usd: Decimal, what: str, step: str) -> str:
        """Book money that a tool or an action reports from the call ``step``; gives the booking key.

        Calls run side by side, and not all of them again in a later run: the key must not depend on their order. What a call
        reports counts once, however often its process dies in it.
        """
        key = self._key(f"{step}.cost")
        self._book(key, _tool_record(tool, usd, what))
        return key

    def book_tool_again(self, tool: str, usd: Decimal, what: str, key: str) -> None:
        """Count money that an earlier run of the Tern has booked under ``key``."""
        self._book(key, _tool_record(tool, usd, what), again=True)

    def step(self, node: str) -> None:
        """Count one node. Raises LimitExceededError."""
        bound = self._run.steps if self._run is not None and self._run.steps is not None else DEFAULT_STEPS
        if self._tally.steps >= bound:
            raise _exceeded("run", "steps", bound, node)
        daily = self._day.steps if self._day is not None else None
        if daily is not None and self._before.steps + self._tally.steps >= daily:
            raise _exceeded("day", "steps", daily, node)
        self._tally.steps += 1

    def check_tool(self, tool: str) -> None:
        """Count one tool run. Raises LimitExceededError before it."""
        for scope, bounds, before in self._bounds():
            if bounds.tool_calls is not None and before.tool_calls + self._tally.tool_calls >= bounds.tool_calls:
                raise _exceeded(scope, "tool_calls", bounds.tool_calls, tool)
        self._tally.tool_calls += 1

    def check_model(self, caller: str) -> None:
        """Raises LimitExceededError when one more model call is not allowed."""
        if self._run is None and self._day is None:
            return
        tally = self._tally
        for scope, bounds, before in self._bounds():
            if bounds.model_calls is not None and before.model_calls + tally.model_calls >= bounds.model_calls:
                raise _exceeded(scope, "model_calls", bounds.model_calls, caller)
            if bounds.tokens is not None and before.tokens + tally.tokens >= bounds.tokens:
                raise _exceeded(scope, "tokens", bounds.tokens, caller)
            if bounds.usd is not None and self._unknown:
                raise LimitExceededError(
                    "limit.unknown-price",
                    f"a limit in USD cannot hold: the price of {', '.join(sorted(self._unknown))} is unknown; "
                    f"{caller!r} was not called",
                    "set ModelSpec(price=...)",
                    caller=caller,
                )
            if bounds.usd is not None and Decimal(before.micro_usd) / _MICRO + tally.usd >= bounds.usd:
                raise _exceeded(scope, "usd", bounds.usd, caller)

    def _bounds(self) -> list[tuple[str, RunLimits, DaySpend]]:
        found: list[tuple[str, RunLimits, DaySpend]] = []
        if self._run is not None:
            found.append(("run", self._run, _NO_SPEND))
        if self._day is not None:
            found.append(("day", self._day, self._before_it()))
        return found

    def _before_it(self) -> DaySpend:
        """What was spent before the Tern; what it had booked itself is counted with it."""
        again, before = self._again, self._before
        if not again.model_calls and not again.usd:
            return before
        return replace(
            before,
            model_calls=before.model_calls - again.model_calls,
            tokens=before.tokens - again.tokens,
            micro_usd=before.micro_usd - int(again.usd * _MICRO),
        )

    def _book(self, key: str, record: UsageRecord, *, again: bool = False) -> None:
        self.booked += (BookedUsage(step_key=key, record=record),)
        self._count(self._tally, record)
        if again:
            self._count(self._again, record)
        if record.usd is None and record.model not in self._unknown:
            self._unknown += (record.model,)
            self.warn(f"the price of model {record.model!r} is unknown; spend is not known (set ModelSpec(price=))")

    @staticmethod
    def _count(tally: _Tally, record: UsageRecord) -> None:
        tally.tokens += record.input_tokens + record.output_tokens
        if record.usd is not None:
            tally.usd += record.usd

    def _key(self, stem: str) -> str:
        count = self._keys.get(stem, 0) + 1
        self._keys[stem] = count
        return f"{self._prefix}{stem}.{count}"


def _tool_record(tool: str, usd: Decimal, what: str) -> UsageRecord:
    return UsageRecord(caller=tool, model=what or tool, purpose="tool", usd=usd, source="tool")


def countable(usage: ModelUsage | UsageRecord) -> bool:
    """Whether a store takes what a call reports: whole tokens in bounds, and a finite cost."""
    counts = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
    usd = usage.usd
    if set(map(type, counts)) != {int} or min(counts) < 0 or max(counts) > MOST_COUNT:
        return False
    return usd is None or (isinstance(usd, Decimal) and usd.is_finite() and 0 <= usd <= MOST_USD)


def record_of(spec: ModelSpec, request: ModelRequest, usage: ModelUsage, cost_of: CostOf) -> UsageRecord:
    """The usage record of one call, priced."""
    usd, source = (_FREE, "free") if usage.free and spec.price is None else cost_of(spec, usage)
    return UsageRecord(
        caller=request.caller,
        model=request.model,
        purpose=request.purpose,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        usd=usd,
        source=source,
    )


def _exceeded(scope: str, what: str, bound: object, caller: str) -> LimitExceededError:
    return LimitExceededError(
        f"limit.{scope}-{what.replace('_', '-')}",
        f"limit per {scope} reached: {what}={bound}; {caller!r} was not called",
        f"raise limits.per_{scope}.{what}" + (" or wait for the next UTC day" if scope == "day" else ""),
        bound=bound,
        caller=caller,
    )
