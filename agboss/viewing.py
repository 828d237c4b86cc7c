"""Gives an agent its view for each of its model calls."""

from __future__ import annotations

from agboss.agents import AgentView, ViewBuilder
from agboss.conversing import RunningConversation
from agboss.recording import recorded
from agboss.run import LiveTern
from agboss.tern import ContextRequest, build_context
from agboss_memory.contract import MemoryView
from agboss_memory.messages import Message
from agboss_memory.records import replace
from agboss_memory.stores.contract import MessagePage

NO_BOUND = 2**62
"""Greater than any message number."""


def view_builder(live: LiveTern, name: str) -> ViewBuilder:
    """Gives the agent's view for each of its model calls."""
    agent = live.plan.agents[name]
    results = tuple(live.answers)
    log = None if agent.config is None else RunningConversation(live, agent)
    request: ContextRequest | None = None
    previous: MemoryView | None = None
    calls = 0 if live.views is None else sum(one.agent == name for one in live.views)

    async def older(before: int, limit: int) -> tuple[Message, ...]:
        return await live.store.messages(live.key, MessagePage(agent=name, before=before, limit=limit))

    async def first() -> ContextRequest:
        limit = agent.reach.messages if log is None else 0
        return ContextRequest(
            agent=agent,
            thread=live.thread,
            owner=live.owner,
            tern=live.number,
            task=live.task,
            now=live.started_at,
            window=live.window,
            results=results,
            conversation=await older(NO_BOUND, limit) if limit else (),
            metadata=live.metadata,
            attachments=live.attachments,
            files=live.store.files,
            load_older=older,
            log=log,
        )

    async def build(call_index: int, added: tuple[Message, ...]) -> AgentView:
        nonlocal request, previous, calls
        if request is None:
            request = await first()
        asked = request
        if call_index:
            asked = replace(request, call_index=call_index, added=added, previous=previous, window=live.window)
        built = await build_context(asked)
        previous = built.view
        for line in built.view.warnings:
            live.warn(f"agent {name!r}: {line}")
        if live.views is not None:
            live.views.append(recorded(name, live.number, calls, built))
        calls += 1
        return AgentView(system=built.system, messages=built.messages, tools=built.tools)

    return build
