"""``app.memory``: what an agent will see next, and what a person may do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agboss.agents import AgentPlan
from agboss.app.holding import carried, held
from agboss.app.past import past_conversation, past_tern, past_window
from agboss.app.progress import HearProgress, ProgressTeller
from agboss.app.request import check_count, check_flag, check_id
from agboss.app.working_memory import WorkingMemory, working_memory
from agboss.components.agent import PromptContext
from agboss.conversing import PreviewConversation, RunningConversation
from agboss.errors import InvalidInputError, ThreadBusyError
from agboss.queue import thread_line
from agboss.run import LiveTern
from agboss.runtime import Runtime
from agboss.tern import ContextRequest, build_context, compact_block, compressed
from agboss_memory.compaction import PER_TERN, plan_blocks
from agboss_memory.config import AnyMemoryConfig, parse_memory_config
from agboss_memory.contract import CompressReport, MemoryContext, utc_now
from agboss_memory.messages import Block, Message, Summary
from agboss_memory.records import replace
from agboss_memory.replay import WhatIf, what_if
from agboss_memory.stores.contract import MessagePage, ThreadRef, ThreadState
from agboss_memory.tokens import TiktokenCounter, count_async, load_counter
from agboss_memory.wording import quoted

if TYPE_CHECKING:
    from agboss.app.lifecycle import Lifecycle

LONGEST_NUMBER = 15
"""Digits of a message's number."""

MOST_BLOCKS = 10_000
"""Blocks that are counted before a Compact."""


class AppMemory:
    """Memory of the threads of one App."""

    def __init__(self, lifecycle: Lifecycle) -> None:
        self._lifecycle = lifecycle

    async def view(self, thread: str, agent: str | None = None, *, owner: str | None = None) -> WorkingMemory:
        """What ``agent`` will see next, the task left out; ``agent`` may be left out when there is one.

        Raises:
            UnknownThreadError: No such thread, or one of another owner.
            InvalidInputError: The agent is unknown, or there are several and none was named.
            StrategyError: The agent's strategy failed.
        """
        return await self.explain(thread, agent, owner=owner)

    async def explain(
        self, thread: str, agent: str | None = None, *, tern: int | None = None, call: int = 0, owner: str | None = None
    ) -> WorkingMemory:
        """What ``agent`` sees and why: each message, summary and stub with its reason, and what was left out.

        Args:
            thread: The thread.
            agent: Name of the agent; may be left out when there is one.
            tern: The Tern whose view is asked for, made anew from the log; None = the next one.
            call: Which call of the model within that Tern, from 0; for agents with a memoryConfig.
            owner: Who asks.

        Raises:
            InvalidInputError: The agent is unknown or not named, or the Tern or call never was.
            UnknownThreadError: No such thread, or one of another owner.
            StrategyError: The agent's strategy failed.
        """
        runtime = await self._lifecycle.runtime()
        plan = self._agent(runtime, agent)
        state = await self._state(runtime, thread, owner)
        check_count("call", call, least=0)
        past = None if tern is None else await past_tern(runtime.store, state, tern)
        window = state.window if past is None else await past_window(runtime.store, state, runtime.plan, past)
        log: PreviewConversation | None = None
        if plan.config is not None and past is not None:
            log = await past_conversation(runtime.store, state, plan, past, call)
        elif plan.config is not None:
            log = PreviewConversation(runtime.store, state.key, plan.name, task_to_come=True)
        task, attachments = ("", ()) if past is None else (past.task, past.attachments)
        request = ContextRequest(
            agent=plan,
            thread=thread,
            owner=state.info.owner,
            tern=state.info.terns + 1 if past is None else past.number,
            task=task,
            now=utc_now() if past is None else past.started_at,
            window=window,
            conversation=() if log is not None else await self._conversation(runtime, state, plan),
            call_index=1,  # so that no kind summarises while it is looked at
            attachments=attachments,
            files=runtime.store.files,
            log=log,
        )
        return await working_memory(plan, request, state, await build_context(request))

    async def what_if(
        self,
        thread: str,
        config: AnyMemoryConfig | Mapping[str, Any] | str,
        agent: str | None = None,
        *,
        last: int = 1000,
        owner: str | None = None,
    ) -> WhatIf:
        """What the calls of an agent's model would have read under another memoryConfig. No model is called.

        Args:
            thread: The thread.
            config: The memoryConfig as model, dict or JSON.
            agent: Name of the agent; may be left out when there is one.
            last: Newest messages of its conversation that are replayed, from a user message on; default 1000.
            owner: Who asks.

        Raises:
            UnknownThreadError: No such thread, or one of another owner.
            InvalidInputError: The configuration is none, or the agent is unknown.
            StrategyError: A request could not be made to fit the window.
        """
        check_count("last", last, least=1)
        config = parse_memory_config(config)
        runtime = await self._lifecycle.runtime()
        plan = self._agent(runtime, agent)
        state = await self._state(runtime, thread, owner)
        messages = await runtime.store.messages(state.key, MessagePage(agent=plan.name, limit=last))
        start = next((place for place, one in enumerate(messages) if one.role == "user"), len(messages))
        prompt = PromptContext(thread_id=thread, owner=state.info.owner, tern=state.info.terns + 1, now=utc_now())
        return await what_if(
            messages[start:],
            config,
            counter=plan.counter(),
            window=plan.model.window,
            system=plan.system_prompt(prompt),
            schemas=plan.schema_texts,
            reply_reserve=plan.model.reply_reserve,
            agent=plan.name,
        )

    async def compact(
        self,
        thread: str,
        agent: str | None = None,
        *,
        owner: str | None = None,
        progress: HearProgress | None = None,
    ) -> CompressReport:
        """Summarise now: what the agent's kind has to summarise; for turn memory every due and skipped block.

        Args:
            thread: The thread.
            agent: Name of the agent; may be left out when there is one, or when none has a memory_config.
            owner: Who asks.
            progress: Is called with a ``CompactProgress`` after each model call and summary.

        Raises:
            CompactionError: The summariser failed; what was written before stays.
            StrategyError: A strategy of your own raised, or gave no CompressReport.
            ThreadBusyError: A Tern is running in the thread.
            UnknownThreadError: No such thread, or one of another owner.
            InvalidInputError: The agent is unknown, there are several and none was named, or ``progress`` is no function.
        """
        if progress is not None and not callable(progress):
            what = f"progress={quoted(progress)} cannot be called"
            raise InvalidInputError("memory.bad-progress", what, "pass a function of a CompactProgress, or None")
        runtime = await self._lifecycle.runtime(models=True)
        reader = self._reader(runtime, agent)
        await self._lock(runtime, thread)
        try:
            found = await self._idle(runtime, thread, owner)
            teller = None if progress is None else ProgressTeller(progress)
            async with held(runtime, found.key) as state:
                if state is None:
                    raise _busy(thread)
                async with carried(runtime, state, "compact", teller) as live:
                    live.meter.memory_calls = None  # a person asked for it
                    return await self._compact(runtime, reader, state, live, teller)
        finally:
            runtime.queue.leave(thread_line(thread))

    async def _compact(
        self,
        runtime: Runtime,
        reader: AgentPlan | None,
        state: ThreadState,
        live: LiveTern,
        teller: ProgressTeller | None,
    ) -> CompressReport:
        if reader is not None and reader.config is not None:
            return await self._compress(live, reader)
        report = await self._catch_up(runtime, state, live, teller)
        for custom in _custom(runtime, reader):
            report = _together(report, await self._compress(live, custom))
        return report

    async def _compress(self, live: LiveTern, agent: AgentPlan) -> CompressReport:
        own = agent.config is not None
        return await compressed(
            agent,
            MemoryContext(
                thread_id=live.thread,
                owner=live.owner,
                agent=agent.name,
                now=live.started_at,
                history=live.window.terns[-agent.reach.terns :] if agent.reach.terns else (),
                summaries=live.window.summaries,
                budget=agent.budget,
                log=RunningConversation(live, agent, recorded=True) if own else None,
            ),
        )

    async def _catch_up(
        self, runtime: Runtime, state: ThreadState, live: LiveTern, teller: ProgressTeller | None
    ) -> CompressReport:
        plan = runtime.plan.compaction
        if plan is None:
            return CompressReport()
        if teller is not None:
            known = await runtime.store.blocks(state.key, ("due", "skipped"), MOST_BLOCKS)
            unplanned = state.info.terns // plan.every - -(-state.window.planned_to // plan.every)
            teller.begins(len(known) + max(0, unplanned))
        written: list[Summary] = []
        while blocks := await self._open_blocks(runtime, state, plan.every):
            made = [await compact_block(live, runtime.windows, plan, block) for block in blocks]
            written.extend(summary for summary, _ in made)
        turns = sum(summary.last - summary.first + 1 for summary in written)
        return CompressReport(compressed_messages=turns, summaries=await _counted(runtime, written))

    async def undo(
        self, thread: str, agent: str | None = None, *, summary: int | None = None, owner: str | None = None
    ) -> Summary | None:
        """Retire a summary: what it stood for is seen again, within the limits. None when there is none to retire.

        Args:
            thread: The thread.
            agent: Name of the agent; may be left out when there is one, or when none has a memory_config.
            summary: Id of the summary; None = the newest active one.
            owner: Who asks.

        Raises:
            ThreadBusyError: A Tern is running in the thread.
            UnknownThreadError: No such thread, or one of another owner.
            InvalidInputError: The agent is unknown or not named, or ``summary`` is no whole number.
        """
        if summary is not None:
            check_count("summary", summary, least=0)
        runtime = await self._lifecycle.runtime()
        reader = self._reader(runtime, agent)
        await self._lock(runtime, thread)
        try:
            state = await self._idle(runtime, thread, owner)
            active = await runtime.store.summaries(state.key, _whose(reader))
            wanted = [one for one in active if summary is None or one.id == summary]
            return await runtime.store.retire(state.key, wanted[-1].id, utc_now()) if wanted else None
        finally:
            runtime.windows.drop(thread)
            runtime.queue.leave(thread_line(thread))

    async def summaries(
        self,
        thread: str,
        agent: str | None = None,
        *,
        owner: str | None = None,
        all_states: bool = False,
        before: int | None = None,
        limit: int | None = None,
    ) -> tuple[Summary, ...]:
        """Summaries of the thread, or of an agent's own conversation, oldest range first.

        Args:
            thread: The thread.
            agent: Name of the agent; may be left out when there is one, or when none has a memory_config.
            owner: Who asks.
            all_states: Also retired and superseded ones.
            before: Only those that begin before this Tern or message; None = no bound.
            limit: At most so many, the newest; None = all.

        Raises:
            UnknownThreadError: No such thread, or one of another owner.
            InvalidInputError: The agent is unknown or not named, or another argument is not acceptable.
        """
        check_flag("all_states", all_states)
        for name, value in (("before", before), ("limit", limit)):
            if value is not None:
                check_count(name, value, least=0)
        runtime = await self._lifecycle.runtime()
        state = await self._state(runtime, thread, owner)
        whose = _whose(self._reader(runtime, agent))
        found = await runtime.store.summaries(state.key, whose, all_states, before=before, limit=limit)
        return await _counted(runtime, found)

    async def message(
        self, thread: str, number: int, agent: str | None = None, *, owner: str | None = None
    ) -> Message | None:
        """One message of an agent's conversation as it is stored, also one that the view leaves out.

        Args:
            thread: The thread.
            number: Its number, from 1.
            agent: Name of the agent; may be left out when there is one.
            owner: Who asks.

        Returns:
            None when no message has the number.

        Raises:
            UnknownThreadError: No such thread, or one of another owner.
            InvalidInputError: The agent is unknown, there are several and none was named, or ``number`` is no whole number.
        """
        check_count("number", number, least=0)
        runtime = await self._lifecycle.runtime()
        plan = self._agent(runtime, agent)
        state = await self._state(runtime, thread, owner)
        return await runtime.store.message(state.key, plan.name, number)

    async def tool_result(
        self, thread: str, message: str, agent: str | None = None, *, owner: str | None = None
    ) -> str:
        """The full stored text of a tool result, also of one that is shown shortened.

        Args:
            thread: The thread.
            message: The message id, such as ``m-7``.
            agent: Name of the agent; may be left out when there is one.
            owner: Who asks.

        Raises:
            InvalidInputError: ``memory.no-such-result``: no tool result of that id in the agent's conversation.
            UnknownThreadError: No such thread, or one of another owner.
        """
        number = message.removeprefix("m-") if isinstance(message, str) else ""  # pyright: ignore[reportUnnecessaryIsInstance]
        known = number.isascii() and number.isdigit() and len(number) <= LONGEST_NUMBER
        found = await self.message(thread, int(number) if known else 0, agent, owner=owner)
        if found is None or found.role != "tool":
            text = f"there is no tool result {quoted(message)} in thread {thread!r}"
            raise InvalidInputError("memory.no-such-result", text, "use the id from a shortened result, such as m-7")
        return found.content

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

    async def _open_blocks(self, runtime: Runtime, state: ThreadState, every: int) -> tuple[Block, ...]:
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

    def _reader(self, runtime: Runtime, agent: str | None) -> AgentPlan | None:
        """The agent that is meant; None = the thread, when no agent keeps a conversation of its own."""
        own = any(one.config is not None for one in runtime.plan.agents.values())
        return self._agent(runtime, agent) if agent is not None or own else None

    def _agent(self, runtime: Runtime, agent: str | None) -> AgentPlan:
        agents = runtime.plan.agents
        if agent is None and len(agents) == 1:
            return next(iter(agents.values()))
        if isinstance(agent, str) and agent in agents:
            return agents[agent]
        what = f"agent {quoted(agent)} is unknown" if agent is not None else f"there are {len(agents)} agents"
        raise InvalidInputError("memory.which-agent", what, "name one of: " + ", ".join(agents))


def _busy(thread: str) -> ThreadBusyError:
    what = f"a Tern is running in thread {thread!r}, or its memory is at work"
    return ThreadBusyError("run.thread-busy", what, "wait for it, or cancel it")


def _custom(runtime: Runtime, reader: AgentPlan | None) -> list[AgentPlan]:
    """One agent of every strategy of the user's that is meant."""
    agents = runtime.plan.agents.values() if reader is None else (reader,)
    return list({id(agent.strategy): agent for agent in agents if agent.kind == "custom"}.values())


def _together(one: CompressReport, other: CompressReport) -> CompressReport:
    return replace(
        one,
        compressed_messages=one.compressed_messages + other.compressed_messages,
        summaries=(*one.summaries, *other.summaries),
        compressed_results=one.compressed_results + other.compressed_results,
        usage=(*one.usage, *other.usage),
    )


async def _counted(runtime: Runtime, summaries: Sequence[Summary]) -> tuple[Summary, ...]:
    """The summaries with their tokens: turn memory counts one when somebody first asks, see ``Summary.tokens``."""
    plan = runtime.plan.compaction
    texts = [one.text for one in summaries if one.tokens is None]
    if not texts:
        return tuple(summaries)
    counter = TiktokenCounter() if plan is None else plan.counter()
    await load_counter(counter)
    counts = iter(await count_async(counter, texts))
    return tuple(one if one.tokens is not None else replace(one, tokens=next(counts)) for one in summaries)


def _whose(agent: AgentPlan | None) -> str:
    """The conversation whose summaries an agent reads; empty = the thread's."""
    return "" if agent is None or agent.config is None else agent.name
