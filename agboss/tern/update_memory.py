"""Seventh stage: strategies learn from the Tern, and due blocks become summaries. After the commit, never before."""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter

import agboss.events as events
import agboss_memory.compaction as compaction
from agboss.conversing import RunningConversation, outermost
from agboss.errors import AgbossError, CompactionError, LeaseLostError
from agboss.models.chat import LENGTH, ModelRequest
from agboss.plan import CompactionPlan, StrategyPlan, total
from agboss.run import CompactionReport, LiveTern, one_line
from agboss.tern.returned import updated
from agboss.units import cancelled_from_outside
from agboss.windows import Windows
from agboss_memory.contract import Budget, MemoryTurn, utc_now
from agboss_memory.messages import Block, Message, Summary, Tern, UsageRecord
from agboss_memory.records import Record, replace
from agboss_memory.render import span
from agboss_memory.stores.contract import (
    MemoryOutcome,
    MessagePage,
    PendingWork,
    SummaryWrite,
    TernPage,
)
from agboss_memory.wording import told

logger = logging.getLogger("agboss")

UPDATE_TRIES = 4
"""The first call of ``update_memory``, then one at each of the thread's next three Terns."""

CANCELLED = "it was cancelled"
"""The cause of a try that somebody broke off."""

_NUMBER = attrgetter("number")


class MemoryRequest(Record, kw_only=True):
    """What is to be done.

    Attributes:
        live: The Tern that carries the work and its cost.
        windows: Windows of threads in use.
        work: Updates that are due, oldest first.
        due: Blocks that are due, oldest first.
        tern: The Tern just recorded, None when only older work is repaired.
        messages: What the agents said in it, as it was recorded.
    """

    live: LiveTern
    windows: Windows
    work: tuple[PendingWork, ...] = ()
    due: tuple[Block, ...] = ()
    tern: Tern | None = None
    messages: tuple[Message, ...] = ()


class MemoryReport(Record, kw_only=True):
    """What was done: the compaction, and the error of a strict one."""

    compaction: CompactionReport | None = None
    error: CompactionError | None = None


async def update_memory(request: MemoryRequest) -> MemoryReport:
    """Do the work. Raises nothing but cancellation and store errors; failures become warnings.

    A try that a cancellation breaks off counts as one: work that hangs must not keep a thread whose callers give up first.
    """
    live = request.live
    plan = live.plan.compaction
    written: list[tuple[Summary, int]] = []
    error: CompactionError | None = None
    try:
        for work in request.work:
            await _update(request, work)
        for block in request.due[: compaction.PER_TERN] if request.due else ():
            if plan is None or live.meter.memory_calls == 0:
                break  # what is left over is due at the next Tern
            try:
                written.append(await compact_block(live, request.windows, plan, block))
            except CompactionError as failure:
                error = error or failure
    except LeaseLostError as lost:  # this process stood still for so long that another one went on
        request.windows.drop(live.thread)
        live.warn(f"memory work ends here: {one_line(lost.message)}")
        await book_rest(live)  # a store of one's own may have refused the cost as well
    own = outermost(live.compacted)
    report = None
    if written or own:
        report = CompactionReport(
            summaries=tuple(summary for summary, _ in written),
            active=tuple(count for _, count in written),
            keep=0 if plan is None else plan.keep,
            conversations=own,
        )
    return MemoryReport(compaction=report, error=error if plan is not None and plan.strict else None)


async def _update(request: MemoryRequest, work: PendingWork) -> None:
    live = request.live
    plan = live.plan.strategies.get(work.strategy)
    if plan is None or not plan.updates:
        await _settle_work(live, work, done=True)
        return
    turn = await _turn(request, work, plan)
    try:
        async with asyncio.timeout(live.meter.memory_timeout):
            update = await updated(work.strategy, plan.strategy.update_memory(turn))
        reported: tuple[UsageRecord, ...] = update.usage
    except (Exception, asyncio.CancelledError) as error:
        # A strategy's fault never fails the Tern, also where something that it waited for was cancelled: told, tried again.
        await _not_learnt(live, work, error)
        return
    if update.report is not None and update.report.error_code:
        live.warn(f"{work.strategy} failed (tried again after the next turn): {one_line(update.report.error)}")
    live.meter.book_update(work.strategy, reported)
    await _settle_work(live, work, done=True)


async def _not_learnt(live: LiveTern, work: PendingWork, error: BaseException) -> None:
    """Count a failed try. Raises what cancelled the Tern's task, if that ended it."""
    attempts = work.attempts + 1
    last = attempts >= UPDATE_TRIES
    fate = "given up" if last else "tried again at the next turn"
    stopped = _stopped(error)
    live.warn(
        f"strategy {work.strategy!r} failed in update_memory for turn {work.tern} (attempt {attempts} of {UPDATE_TRIES}, "
        f"{fate}): {CANCELLED if stopped else one_line(told(error))}"
    )
    try:
        await _settle_work(live, work, done=last)
    finally:
        if stopped:  # also when the store failed: then the try does not count
            raise error


async def book_rest(live: LiveTern) -> None:
    """Book what the work has spent and no write has taken. Booking is idempotent, so all of it is offered again."""
    usage = live.meter.booked
    if usage:
        await live.store.settle(MemoryOutcome(key=live.key, tern=live.number, now=utc_now(), usage=usage))


async def _settle_work(live: LiveTern, work: PendingWork, *, done: bool) -> None:
    with live.meter.taken() as usage:
        await live.store.settle(
            MemoryOutcome(
                key=live.key, tern=live.number, now=utc_now(), work=work, done=done, usage=usage, fence=live.fence
            )
        )


async def _turn(request: MemoryRequest, work: PendingWork, plan: StrategyPlan) -> MemoryTurn:
    live = request.live
    if request.tern is not None and request.tern.number == work.tern:
        tern, said = replace(request.tern, usage=live.meter.usage), request.messages
    else:
        page = TernPage(after=work.tern - 1, before=work.tern + 1, limit=1)
        tern = (await live.store.terns(live.key, page))[0]
        said = await live.store.messages(live.key, MessagePage(agent=None, tern=work.tern, limit=10_000))
    own = None if plan.own is None else live.plan.agents[plan.own]
    return MemoryTurn(
        thread_id=live.thread,
        owner=live.owner,
        agent=tern.agent,
        tern=tern,
        messages=tuple(message for message in said if message.agent in plan.agents),
        idempotency_key=f"{live.plan.name}/{live.key}/{live.thread}/{work.tern}/{work.strategy}",
        log=None if own is None else RunningConversation(live, own, recorded=True),
        budget=Budget() if own is None else own.budget,
    )


async def compact_block(live: LiveTern, windows: Windows, plan: CompactionPlan, block: Block) -> tuple[Summary, int]:
    """Summarise one block and store it; gives the summary and how many are active, capped at ``keep``.

    Raises:
        CompactionError: The model failed or gave nothing usable; the failed try is recorded.
    """
    begun = len(live.meter.booked)
    try:
        text, tokens = await _summarise(live, plan, block)
    except (Exception, asyncio.CancelledError) as error:
        raise await _failed(live, windows, block, error) from error
    made = live.meter.booked[begun:]
    summary = Summary(
        first=block.first,
        last=block.last,
        text=text,
        tokens=tokens,
        model=plan.model.spec.model,
        usd=total(tuple(item.record.usd for item in made)),
        prompt_hash=compaction.PROMPT_HASH,
        created_at=utc_now(),
    )
    with live.meter.taken() as usage:
        summary = await live.store.write_summary(
            SummaryWrite(key=live.key, tern=live.number, summary=summary, now=utc_now(), usage=usage, fence=live.fence)
        )
    done = replace(block, state="done", attempts=block.attempts + 1, error="")
    live.window = windows.after_summary(live.thread, live.window, summary, done)
    active = min(len(live.window.summaries), plan.keep)
    if live.emit is not None:
        live.emit(
            events.Compacted(
                node="compaction",
                memory=str(CompactionReport(summaries=(summary,), active=(active,), keep=plan.keep)),
                input_tokens=sum(item.record.input_tokens for item in made),
                output_tokens=sum(item.record.output_tokens for item in made),
            )
        )
    return summary, active


async def _summarise(live: LiveTern, plan: CompactionPlan, block: Block) -> tuple[str, int | None]:
    before = next((item.first for item in live.window.blocks if item.last == block.first - 1), block.first - plan.every)
    after = max(0, before - 1)
    page = TernPage(after=after, before=block.last + 1, limit=block.last - after)
    terns = await live.store.terns(live.key, page)
    begin = bisect_left(terns, block.first, key=_NUMBER)
    task = compaction.SummaryTask(
        terns=[tern for tern in terns[begin:] if tern.status.finished],
        before=[tern for tern in terns[:begin] if tern.status.finished],
        max_tokens=plan.max_tokens,
        window=plan.model.window,
    )

    async def ask(system: str, dialogue: Sequence[tuple[str, str]]) -> tuple[str, bool]:
        request = ModelRequest(
            caller="compaction",
            model=plan.model.spec.model,
            system=system,
            messages=tuple(
                Message(role="assistant" if role == "assistant" else "user", content=text) for role, text in dialogue
            ),
            settings=plan.settings,
            purpose="compaction",
        )
        live.meter.take_memory_call("compaction")
        reply = await live.meter.generate(plan.model, plan.model.spec, request, "compaction")
        if reply.tool_calls:
            raise CompactionError("compaction.not-text", "the summariser answered with tool calls", "use another model")
        return reply.text, reply.finish_reason != LENGTH

    return await compaction.summarise(task, ask, plan.counter())


async def _failed(live: LiveTern, windows: Windows, block: Block, error: BaseException) -> CompactionError:
    """Record the failed try; gives the error to raise. Raises what cancelled the work from outside, if that ended it."""
    stopped = _stopped(error)
    if stopped and live.meter.memory_calls is None:  # a person asked for it, and stopped it
        raise error
    cause = CANCELLED if stopped else one_line(error.message if isinstance(error, AgbossError) else told(error))
    after = compaction.after_failure(block, cause)
    fate = "skipped" if after.state == "skipped" else "tried again after the next turn"
    live.warn(f"compaction of turns {span(block.first, block.last)} failed (attempt {after.attempts}, {fate}): {cause}")
    try:
        with live.meter.taken() as usage:
            outcome = MemoryOutcome(
                key=live.key, tern=live.number, now=utc_now(), block=after, usage=usage, fence=live.fence
            )
            await live.store.settle(outcome)
    finally:
        if stopped:
            raise error
    live.window = windows.after_block(live.thread, live.window, after)
    code, hint = "compaction.failed", "see __cause__; the turns stay raw, 'memory compact' tries again"
    if isinstance(error, CompactionError):
        code, hint = error.code, error.hint or hint
    return CompactionError(
        code, f"turns {span(block.first, block.last)} could not be summarised: {cause}", hint, block=after
    )


def _stopped(error: BaseException) -> bool:
    """Whether somebody cancelled the task that does the work."""
    return isinstance(error, asyncio.CancelledError) and cancelled_from_outside()
