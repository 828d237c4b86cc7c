"""Third stage: what an agent is to see. The strategy selects, this stage renders."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

import agboss.agents as agents  # what reads stored results is loaded where a view holds a stub
from agboss.agents import AgentPlan, BoundTool
from agboss.components.agent import PromptContext
from agboss.errors import AgbossError, StrategyError
from agboss.tern.returned import checked_again, viewed
from agboss_memory.attachments import PartContentReader
from agboss_memory.contract import Budget, ConversationLog, MemoryContext, MemoryView, OlderMessages
from agboss_memory.fit import FitRequest, Fitted, fit, roomy, surely_fits
from agboss_memory.mapper import LastStep, MapRequest, Prepared, last_step, maps_text_alone
from agboss_memory.messages import AttachmentRecord, Message
from agboss_memory.records import Record, replace
from agboss_memory.render import user_message, user_text
from agboss_memory.stores.contract import Window
from agboss_memory.tool_results import FETCH_TOOL_RESULT, holds_stub
from agboss_memory.wording import told

NO_TOOLS: Mapping[str, BoundTool] = MappingProxyType({})


class ContextRequest(Record, kw_only=True):
    """What is known before one model call of an agent.

    Attributes:
        agent: The agent.
        thread: Id of the thread.
        owner: Its owner.
        tern: Number of the Tern.
        task: The task as text.
        now: Aware UTC.
        window: The newest part of the thread.
        results: Name and answer of nodes that ran before in this Tern.
        conversation: The newest ``reach.messages`` messages of the agent's own conversation.
        added: Messages that the agent's loop added in this Tern, after the task.
        call_index: 0 before the loop, then the number of the model call.
        previous: The view of the call before, None at the first.
        metadata: JSON text of the caller, or None.
        load_older: Reads older messages of the conversation.
        log: The agent's own conversation, for an agent with a memoryConfig.
        attachments: Files that came with the task.
        files: Reads their bytes when the agent has no reader of its own.
    """

    agent: AgentPlan
    thread: str
    owner: str | None
    tern: int
    task: str
    now: datetime
    window: Window
    results: tuple[tuple[str, str], ...] = ()
    conversation: tuple[Message, ...] = ()
    added: tuple[Message, ...] = ()
    call_index: int = 0
    previous: MemoryView | None = None
    metadata: str | None = None
    load_older: OlderMessages | None = None
    log: ConversationLog | None = None
    attachments: tuple[AttachmentRecord, ...] = ()
    files: PartContentReader | None = None


class BuiltContext(Record, kw_only=True):
    """What the model gets: the view as the strategy made it, system text, messages as they are sent, and tools for it."""

    view: MemoryView
    system: str
    messages: tuple[Message, ...]
    tools: Mapping[str, BoundTool] = NO_TOOLS


async def build_context(request: ContextRequest) -> BuiltContext:
    """Ask the strategy for its view, render it and map it.

    Raises:
        StrategyError: The strategy raised, or gave something that is no view; names the strategy. Or the mapper did.
    """
    agent = request.agent
    budget = agent.budget
    view = await _view(request, budget)
    system = _system(request)
    try:
        tools = _tools(request, view)
        exact = agent.config is not None
        whole = _whole(system, view)
        fixed = (system if exact else whole, *agent.schema_texts)
        if tools:
            fixed += tuple(tool.schema_text for tool in tools.values())
        plain = view.messages is None and not (exact or request.added or request.attachments)
        if plain and maps_text_alone(agent.mapper):
            text = user_text(view, request.task, request.results)
            if roomy(budget, fixed, text):  # the common case: nothing to leave out, to cut or to map
                shown = (Message(role="user", content=text),)
                return BuiltContext(view=view, system=whole, messages=shown, tools=tools)
        return await _fitted(request, view, budget, system, fixed, tools)
    except AgbossError:
        raise
    except Exception:
        checked_again(agent, view)
        raise


async def _fitted(
    request: ContextRequest,
    view: MemoryView,
    budget: Budget,
    system: str,
    fixed: tuple[str, ...],
    tools: Mapping[str, BoundTool],
) -> BuiltContext:
    """What is left of a view where something may have to go, and goes through the mapper."""
    agent = request.agent
    exact = agent.config is not None
    asked = FitRequest(
        agent=agent.name,
        view=view,
        task=request.task,
        results=request.results,
        added=request.added,
        fixed=fixed,
        budget=budget,
        tern=request.tern if exact else 0,
        complete=exact,
    )
    made = await _last_step(request, asked)
    # Where a kind counts exactly, summaries may have gone for the rest to fit.
    whole = _whole(system, made.view) if exact else fixed[0]
    return BuiltContext(view=made.view, system=whole, messages=made.messages, tools=tools)


def _system(request: ContextRequest) -> str:
    prompt = request.agent.prompt
    if prompt is not None:
        return prompt
    return request.agent.system_prompt(
        PromptContext(
            thread_id=request.thread,
            owner=request.owner,
            tern=request.tern,
            task=request.task,
            now=request.now,
            metadata=request.metadata,
        )
    )


def _whole(system: str, view: MemoryView) -> str:
    if not view.system_addendum:
        return system
    return f"{system}\n\n{view.system_addendum}" if system else view.system_addendum


def _tools(request: ContextRequest, view: MemoryView) -> Mapping[str, BoundTool]:
    """``fetch_tool_result`` when the view shows a stub, or the agent names it."""
    if request.log is None or not (request.agent.spec.fetches or holds_stub(view.messages or ())):
        return NO_TOOLS
    return {FETCH_TOOL_RESULT: agents.fetch_tool(request.log)}


async def _last_step(request: ContextRequest, asked: FitRequest) -> Prepared:
    """Fit, then map."""
    agent, budget = request.agent, asked.budget

    async def prepare(extra: int) -> Prepared:
        kept_free = replace(budget, reply_reserve=budget.reply_reserve + extra)
        wanted = replace(asked, budget=kept_free) if extra else asked
        # Counting long texts, and loading a vocabulary before, would hold up the event loop.
        fitted = fit(wanted) if surely_fits(wanted) else await asyncio.to_thread(fit, wanted)
        return Prepared(view=fitted.view, messages=_messages(fitted, request), task=fitted.task)

    def fixed(view: MemoryView) -> tuple[str, ...]:
        return (_whole(asked.fixed[0], view), *asked.fixed[1:]) if asked.tern else asked.fixed

    step = LastStep(
        mapper=agent.mapper,
        request=MapRequest(
            messages=(),
            thread_id=request.thread,
            owner=request.owner,
            agent=agent.name,
            model=agent.model.spec.model,
            tern=request.tern,
            accepts=agent.model.accepts if request.attachments else (),
            reader=agent.reader or request.files,
        ),
        prepare=prepare,
        fixed=fixed,
        budget=budget,
        exact=bool(asked.tern),
    )
    return await last_step(step)


async def _view(request: ContextRequest, budget: Budget) -> MemoryView:
    agent = request.agent
    strategy, reach, window = agent.strategy, agent.reach, request.window
    terns, summaries = reach.terns or 0, reach.summaries or 0
    context = MemoryContext(
        thread_id=request.thread,
        owner=request.owner,
        agent=agent.name,
        now=request.now,
        task="" if request.log is not None else request.task,
        history=window.terns[-terns:] if terns else (),
        summaries=window.summaries[-summaries:] if summaries else (),
        blocks=window.blocks,
        messages=request.conversation,
        budget=budget,
        call_index=request.call_index,
        previous=request.previous,
        load_older=request.load_older,
        log=request.log,
    )
    try:
        made = strategy.build_context(context)
        view: object = made if isinstance(made, MemoryView) or not inspect.isawaitable(made) else await made
    except AgbossError:
        raise
    except Exception as error:
        raise StrategyError(
            "memory.build-context",
            f"strategy {agent.strategy_name!r} of agent {agent.name!r} failed in build_context: {told(error)}",
            "mend the strategy; the Tern is stored as failed",
        ) from error
    return viewed(agent, view)


def _messages(fitted: Fitted, request: ContextRequest) -> tuple[Message, ...]:
    """The exact window of the view, or history and task as one user message; then what the loop added."""
    view = fitted.view
    if view.messages is None:
        return (_current(view, fitted, request), *fitted.added)
    if request.log is not None or any(message.tern == request.tern for message in view.messages):
        return view.messages
    return (*view.messages, _current(MemoryView(recalled=view.recalled), fitted, request), *fitted.added)


def _current(past: MemoryView, fitted: Fitted, request: ContextRequest) -> Message:
    """The user message of the running Tern, with the files that came with it."""
    message = user_message(past, fitted.task, request.results)
    if not request.attachments:
        return message
    return replace(message, attachments=request.attachments, tern=request.tern)
