"""How a Tern ended: from an answer or an error to what is stored, and to what the caller gets."""

from __future__ import annotations

import asyncio
from typing import Any

from agboss.components.action import ActionSpec
from agboss.components.agent import AgentSpec
from agboss.components.boundary import StartSpec
from agboss.errors import AgbossError, TernCancelledError, TernFailedError, TernTimeoutError
from agboss.pauses import SAID, Ask, Pause, as_said, asked, pause_step
from agboss.plan import Plan, total
from agboss.run import LiveTern, RunResult, one_line
from agboss.tern import Finished, MemoryReport, RecordRequest
from agboss.windows import Windows
from agboss_memory.contract import utc_now
from agboss_memory.messages import Tern, TernStatus
from agboss_memory.records import Record, replace
from agboss_memory.stores.pauses import PAUSE
from agboss_memory.wording import told


class Outcome(Record, kw_only=True):
    """How a Tern ended, before it is stored.

    Attributes:
        status: Its status.
        answer: Its answer, or empty.
        finish: The finish that was reached, or empty.
        output: The typed output, or None.
        output_json: The same as JSON.
        error: What is raised after the Tern is stored, None when it was answered.
        cause: Why it failed, in one line that may be shown to a model; empty = the error's own message.
        asks: What it waits for, when it is paused.
        pauses: The same as it is told.
    """

    status: TernStatus
    answer: str = ""
    finish: str = ""
    output: Any = None
    output_json: str | None = None
    error: BaseException | None = None
    cause: str = ""
    asks: tuple[Ask, ...] = ()
    pauses: tuple[Pause, ...] = ()

    def to_record(self, live: LiveTern, windows: Windows) -> RecordRequest:
        """The request of the record stage."""
        error = self.error
        text = code = ""
        if isinstance(error, AgbossError):
            text, code = one_line(self.cause or error.message), error.code
        elif error is not None:
            text, code = "The turn was cancelled.", "run.cancelled"
        return RecordRequest(
            live=live,
            windows=windows,
            status=self.status,
            now=utc_now(),
            answer=self.answer,
            finish=self.finish,
            output=self.output_json,
            error=text,
            error_code=code,
        )


def answered(finished: Finished, live: LiveTern) -> Outcome:
    """The flow reached its finish."""
    return Outcome(
        status=TernStatus.ANSWERED,
        answer=finished.answer,
        finish=live.path[-1],
        output=finished.output,
        output_json=finished.output_json,
    )


def paused(live: LiveTern, asks: tuple[Ask, ...]) -> Outcome:
    """The flow cannot go on without a decision."""
    now = utc_now()
    told = [asked(ask, live.thread, live.number, now) for ask in asks]
    asks = tuple(replace(ask, earlier=stored) for ask, (_, stored) in zip(asks, told, strict=True))
    return Outcome(status=TernStatus.PAUSED, asks=asks, pauses=tuple(pause for pause, _ in told))


async def keep_questions(live: LiveTern, outcome: Outcome) -> None:
    """Put what a paused Tern waits for into its journal, and what was said before. What is there stays."""
    journal = live.journal
    for ask in outcome.asks:
        await journal.keep(pause_step(ask.stem, ask.call), PAUSE, ask.earlier)
    await journal.keep(f"{SAID}.{journal.decided}", SAID, as_said(live.messages))


def failed(live: LiveTern, error: BaseException, *, stopped: str, timeout: float | None) -> Outcome:
    """The flow was stopped by an error, a cancellation, or its time-out.

    A cancelled Tern keeps what was streamed of its answer.

    Args:
        live: The Tern.
        error: What the flow raised.
        stopped: Why the App itself cancelled it: ``asked``, ``expired``, or empty.
        timeout: The time-out in seconds.
    """
    partial = "".join(live.heard or ())
    place = f"turn {live.number} of thread {live.thread!r}"
    if stopped and isinstance(error, asyncio.CancelledError):
        if stopped == "asked":
            stop: AgbossError = TernCancelledError("run.cancelled", f"{place} was cancelled", "")
            cause = "The turn was cancelled."
        else:
            cause = f"No answer within {timeout:g} s."
            stop = TernTimeoutError(
                "run.timeout", f"{place} gave no answer within {timeout:g} s", "raise timeout=, or ask for less"
            )
        return Outcome(status=TernStatus.CANCELLED, answer=partial, error=stop, cause=cause)
    if isinstance(error, AgbossError):
        return Outcome(status=TernStatus.FAILED, error=error)
    if isinstance(error, Exception):
        node = live.path[-1] if live.path else live.start
        wrapped = TernFailedError(
            "run.failed",
            f"{place} failed in {node!r}: {one_line(told(error))}",
            f"mend what {node!r} calls; in Python the exception itself is error.__cause__",
            node=node,
        )
        wrapped.__cause__ = error
        return Outcome(status=TernStatus.FAILED, error=wrapped, cause=f"{node} failed ({type(error).__name__}).")
    return Outcome(status=TernStatus.CANCELLED, answer=partial, error=error)


def conclude(live: LiveTern, outcome: Outcome, report: MemoryReport) -> RunResult:
    """The result of a stored Tern. Raises its error, or that of a strict compaction, with the result as ``.run``."""
    result = result_of(live, outcome, report)
    error = outcome.error or report.error
    if error is None:
        return result
    if isinstance(error, AgbossError):
        error.run = result
    raise error


def result_of(live: LiveTern, outcome: Outcome, report: MemoryReport) -> RunResult:
    """What a Tern gave, stored or not."""
    return RunResult(
        thread=live.thread,
        tern=live.number,
        status=outcome.status,
        answer=outcome.answer,
        output=outcome.output,
        finish=outcome.finish,
        path=tuple(live.path),
        usage=live.meter.usage,
        spend=live.meter.spend,
        memory=None if report.compaction is None else str(report.compaction),
        compaction=report.compaction,
        pause=outcome.pauses[0] if outcome.pauses else None,
        pauses=outcome.pauses,
        warnings=live.warnings.lines,
    )


def stored_result(plan: Plan, thread: str, tern: Tern, pauses: tuple[Pause, ...] = ()) -> RunResult:
    """The result of a Tern whose key came again; ``pauses`` is what it waits for. Raises as the first run did."""
    finish = plan.finishes.get(tern.finish)
    output: Any = None
    if tern.output is not None and finish is not None:
        model = finish.output or _output_model(plan, tern)
        if model is not None:
            from pydantic import ValidationError

            try:
                output = model.model_validate_json(tern.output)
            except ValidationError:  # the model has changed since; the text is still there
                output = None
    result = RunResult(
        thread=thread,
        tern=tern.number,
        status=tern.status,
        answer=tern.answer,
        output=output,
        finish=tern.finish,
        path=tern.path,
        usage=tern.usage,
        spend=total(tuple(record.usd for record in tern.usage)),
        pause=pauses[0] if pauses else None,
        pauses=pauses,
    )
    if tern.status in (TernStatus.FAILED, TernStatus.CANCELLED):
        kind = _KINDS.get(tern.error_code, TernFailedError)
        error = kind(
            tern.error_code or "run.failed",
            tern.error or f"turn {tern.number} of thread {thread!r} ended as {tern.status}",
            "the idempotency key belongs to this Tern; use a new key to try again",
        )
        error.run = result
        raise error
    return result


_KINDS: dict[str, type[AgbossError]] = {"run.cancelled": TernCancelledError, "run.timeout": TernTimeoutError}


def _output_model(plan: Plan, tern: Tern) -> Any:
    """What the node before the finish gave: an agent's or action's output, or the start's input."""
    node = plan.graph.nodes.get(tern.path[-2]) if len(tern.path) > 1 else None
    spec = None if node is None else node.spec
    if isinstance(spec, StartSpec):
        return spec.input
    return spec.output if isinstance(spec, AgentSpec | ActionSpec) else None
