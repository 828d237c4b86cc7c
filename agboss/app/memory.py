"""``app.memory``: what an agent will see next, and what a person may do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from agboss.agents import AgentPlan
from agboss.app.request import check_id
from agboss.app.rows import mapped_rows
from agboss.container import CURRENT, TernScope
from agboss.errors import InvalidInputError, ThreadBusyError
from agboss.models.meter import Meter
from agboss.queue import thread_line
from agboss.run import LiveTern
from agboss.runtime import Runtime, spent_today
from agboss.tern import ContextRequest, build_context, compact_block
from agboss.units import new_id
from agboss_memory.compaction import PER_TERN, plan_blocks
from agboss_memory.contract import CompressReport, LeftOut, MemoryView, utc_now
from agboss_memory.messages import Block, Summary
from agboss_memory.records import Record, field, replace
from agboss_memory.render import Row, past_rows
from agboss_memory.stores.contract import MessagePage, ThreadRef, ThreadState
from agboss_memory.tokens import count_async, load_counter

if TYPE_CHECKING:
    from agboss.app.lifecycle import Lifecycle


class MemoryRow(Record):
    """One row of the next view.

    Attributes:
        type: ``CHAT``, ``TOOL_CALL``, ``TOOL_RESULT`` or ``SUMMARY``.
        role: system, user or assistant.
        number: Number of the Tern, or of the last Tern that a summary covers; -1 for the system prompt, 0 for headings.
        tokens: Tokens of the text.
        content: The text as the model reads it.
        state: ``live`` or ``summary``.
    """

    type: Literal["CHAT", "TOOL_CALL", "TOOL_RESULT", "SUMMARY"]
    role: str
    number: int
    tokens: int
    content: str
    state: Literal["live", "summary"] = "live"


class WorkingMemory(Record):
    """What an agent will see at the thread's next Tern, the task left out.

    Attributes:
        thread: Id of the thread.
        agent: Name of the agent.
        kind: ``turns`` for turn memory, else the class name of the strategy.
        config: The numbers that shape it.
        system_prompt: The system text.
        system_prompt_tokens: Tokens of it.
        rows: The view, in the order in which the model reads it.
        left_out: Ranges of turns that it shows neither raw nor in a summary, with the reason.
        total_tokens: Tokens of system text and rows.
        token_counter: Name of the counter.
        context_window: The model's window in tokens, None when unknown.
    """

    thread: str
    agent: str
    kind: str
    config: dict[str, Any] = field(default_factory=dict[str, Any])
    system_prompt: str = ""
    system_prompt_tokens: int = 0
    rows: tuple[MemoryRow, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    total_tokens: int = 0
    token_counter: str = ""
    context_window: int | None = None


class AppMemory:
    """Memory of the threads of one App."""

    def __init__(self, lifecycle: Lifecycle) -> None:
        self._lifecycle = lifecycle

    async def view(self, thread: str, agent: str | None = None, *, owner: str | None = None) -> WorkingMemory:
        """What ``agent`` will see next; ``agent`` may be left out when there is one.

        Raises:
            UnknownThreadError: No such thread, or one of another owner.
            InvalidInputError: The agent is unknown, or there are several and none was named.
            StrategyError: The agent's strategy failed.
        """
        runtime = await self._lifecycle.runtime()
        plan = self._agent(runtime, agent)
        state = await self._state(runtime, thread, owner)
        built = await build_context(
            ContextRequest(
                agent=plan,
                thread=thread,
                owner=state.info.owner,
                tern=state.info.terns + 1,
                task="",
                now=utc_now(),
                window=state.window,
                conversation=await self._conversation(runtime, state, plan),
                counter=plan.counter(),
            )
        )
        counter = plan.counter()
        rows = await mapped_rows(plan, thread, state.info.owner, state.info.terns + 1, _rows(built.view))
        await load_counter(counter)
        counts = await count_async(counter, [built.system, *(row.text for row in rows)])
        return WorkingMemory(
            thread=thread,
            agent=plan.name,
            kind=plan.strategy_name,
            config={"turns": plan.reach.terns, "summaries": plan.reach.summaries, "messages": plan.reach.messages},
            system_prompt=built.system,
            system_prompt_tokens=counts[0],
            rows=tuple(_memory_row(row, tokens) for row, tokens in zip(rows, counts[1:], strict=True)),
            left_out=left_out(built.view, state.info.terns),
            total_tokens=sum(counts),
            token_counter=counter.name,
            context_window=plan.model.window,
        )

    async def compact(self, thread: str, *, owner: str | None = None) -> CompressReport:
        """Catch up: summarise every block that is due or was skipped, oldest first.

        Raises:
            CompactionError: A block failed; what was written before stays.
            ThreadBusyError: A Tern is running in the thread.
            UnknownThreadError: No such thread, or one of another owner.
        """
        runtime = await self._lifecycle.runtime(models=True)
        plan = runtime.plan.compaction
        await self._lock(runtime, thread)
        try:
            state = await self._idle(runtime, thread, owner)
            if plan is None:
                return CompressReport()
            live = await self._carrier(runtime, state)
            written: list[Summary] = []
            token = CURRENT.set(TernScope(thread_id=thread, meter=live.meter))
            try:
                while blocks := await self._catch_up(runtime, state, plan.every):
                    made = [await compact_block(live, runtime.windows, plan, block) for block in blocks]
                    written.extend(summary for summary, _ in made)
            finally:
                CURRENT.reset(token)
                runtime.windows.drop(thread)
        finally:
            runtime.queue.leave(thread_line(thread))
        turns = sum(summary.last - summary.first + 1 for summary in written)
        return CompressReport(compressed_messages=turns, summaries=tuple(written))

    async def undo(self, thread: str, *, owner: str | None = None) -> Summary | None:
        """Retire the newest active summary; its turns show raw again within the limits. None when there is none.

        Raises:
            ThreadBusyError: A Tern is running in the thread.
            UnknownThreadError: No such thread, or one of another owner.
        """
        runtime = await self._lifecycle.runtime()
        await self._lock(runtime, thread)
        try:
            state = await self._idle(runtime, thread, owner)
            active = await runtime.store.summaries(state.key)
            if not active:
                return None
            return await runtime.store.retire(state.key, active[-1].id, utc_now())
        finally:
            runtime.windows.drop(thread)
            runtime.queue.leave(thread_line(thread))

    async def summaries(
        self, thread: str, *, owner: str | None = None, all_states: bool = False
    ) -> tuple[Summary, ...]:
        """The thread's summaries, oldest range first; ``all_states`` = also retired and superseded ones."""
        runtime = await self._lifecycle.runtime()
        state = await self._state(runtime, thread, owner)
        return await runtime.store.summaries(state.key, all_states=all_states)

    async def _idle(self, runtime: Runtime, thread: str, owner: str | None) -> ThreadState:
        """The thread, in which no process runs a Tern. Raises ThreadBusyError."""
        state = await self._state(runtime, thread, owner)
        if state.info.running:
            raise _busy(thread)
        return state

    async def _lock(self, runtime: Runtime, thread: str) -> None:
        check_id("thread", thread)
        if thread in runtime.running:
            raise _busy(thread)
        await runtime.queue.enter(thread_line(thread), runtime.queue_timeout)

    async def _catch_up(self, runtime: Runtime, state: ThreadState, every: int) -> tuple[Block, ...]:
        """Blocks to summarise now: due and skipped ones, then those that were never planned."""
        known = await runtime.store.blocks(state.key, ("due", "skipped"), PER_TERN)
        if known:
            return known
        fresh = await self._state(runtime, state.info.id, state.info.owner)
        planned = plan_blocks(fresh.window.planned_to, fresh.info.terns, every)
        return planned if not fresh.info.running else ()

    async def _state(self, runtime: Runtime, thread: str, owner: str | None) -> ThreadState:
        check_id("thread", thread)
        check_id("owner", owner)
        ref = ThreadRef(workflow=runtime.plan.name, thread=thread, owner=owner, any_owner=owner is None)
        return await runtime.store.thread(ref, runtime.plan.window)

    async def _conversation(self, runtime: Runtime, state: ThreadState, plan: AgentPlan) -> Any:
        if not plan.reach.messages:
            return ()
        return await runtime.store.messages(state.key, MessagePage(agent=plan.name, limit=plan.reach.messages))

    async def _carrier(self, runtime: Runtime, state: ThreadState) -> LiveTern:
        """The newest Tern as the one that carries the work's cost."""
        prefix = f"compact-{new_id()}."  # the Tern's own run has booked under the plain keys
        live = LiveTern(
            plan=runtime.plan,
            store=runtime.store,
            thread=state.info.id,
            key=state.key,
            number=state.info.terns,
            fence=state.fence,
            owner=state.info.owner,
            task="",
            start="",
            value="",
            metadata=None,
            started_at=utc_now(),
            window=state.window,
            meter=Meter(runtime.plan.limits, runtime.plan.cost_of, prefix=prefix),
        )
        live.meter.warn = live.warn
        day = await spent_today(runtime, live.started_at.date().isoformat())
        if day is not None:
            live.meter.bound_by(day)
        return live

    def _agent(self, runtime: Runtime, agent: str | None) -> AgentPlan:
        agents = runtime.plan.agents
        if agent is None and len(agents) == 1:
            return next(iter(agents.values()))
        if agent is not None and agent in agents:
            return agents[agent]
        what = f"agent {agent!r} is unknown" if agent is not None else f"there are {len(agents)} agents"
        raise InvalidInputError("memory.which-agent", what, "name one of: " + ", ".join(agents))


def _busy(thread: str) -> ThreadBusyError:
    return ThreadBusyError("run.thread-busy", f"a Tern is running in thread {thread!r}", "wait for it, or cancel it")


def left_out(view: MemoryView, terns: int) -> tuple[LeftOut, ...]:
    """Ranges of turns 1..``terns`` that the view shows neither raw nor in a summary, oldest first.

    What the view names itself keeps its reason; the rest is beyond the reach of the strategy.
    """
    shown = {tern.number for tern in view.history}
    for summary in view.summaries:
        shown.update(range(summary.first, summary.last + 1))
    reasons = {
        number: named.reason
        for named in view.left_out
        if named.unit == "turns"
        for number in range(max(named.first, 1), min(named.last, terns) + 1)
    }
    gaps: list[LeftOut] = []
    for number in range(1, terns + 1):
        if number in shown:
            continue
        reason = reasons.get(number, "beyond_reach")
        if gaps and gaps[-1].last == number - 1 and gaps[-1].reason == reason:
            gaps[-1] = replace(gaps[-1], last=number)
        else:
            gaps.append(LeftOut(first=number, last=number, reason=reason))
    return tuple(gaps)


def _rows(view: MemoryView) -> list[Row]:
    if view.messages is None:
        return past_rows(view)
    messages = [Row(kind="turn", text=message.content, tern=message.tern) for message in view.messages]
    return [*messages, *past_rows(MemoryView(recalled=view.recalled))]


def _memory_row(row: Row, tokens: int) -> MemoryRow:
    summary = row.kind == "summary"
    return MemoryRow(
        type="SUMMARY" if summary else "CHAT",
        role="user",
        number=row.tern,
        tokens=tokens,
        content=row.text,
        state="summary" if summary else "live",
    )
