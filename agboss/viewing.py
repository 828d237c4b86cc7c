"""Gives an agent its view for each of its model calls."""

from __future__ import annotations

from agboss.agents import AgentView, ViewBuilder
from agboss.conversing import RunningConversation
from agboss.recording import recorded
from agboss.run import LiveTern
from agboss.tern import ContextRequest, build_context
from agboss_memory.contract import MemoryView
from agboss_memory.messages import Message
from agboss_memory.stores.contract import MessagePage

NO_BOUND = 2**62
"""Greater than any message number."""


def view_builder(live: LiveTern, name: str) -> ViewBuilder:
    """Gives the agent's view for each of its model calls."""
    agent = live.plan.agents[name]
    results = tuple(live.answers)
    conversation: tuple[Message, ...] | None = None
    log = None if agent.config is None else RunningConversation(live, agent)
    previous: MemoryView | None = None
    calls = sum(one.agent == name for one in live.views or ())

    async def older(before: int, limit: int) -> tuple[Message, ...]:
        return await live.store.messages(live.key, MessagePage(agent=name, before=before, limit=limit))

    async def build(call_index: int, added: tuple[Message, ...]) -> AgentView:
        nonlocal conversation, previous, calls
        if conversation is None:
            limit = agent.reach.messages if log is None else 0
            conversation = await older(NO_BOUND, limit) if limit else ()
        built = await build_context(
            ContextRequest(
                agent=agent,
                thread=live.thread,
                owner=live.owner,
                tern=live.number,
                task=live.task,
                now=live.started_at,
                window=live.window,
                results=results,
                conversation=conversation,
                added=added,
                call_index=call_index,
                previous=previous,
                metadata=live.metadata,
                counter=agent.counter(),
                attachments=live.attachments,
                files=live.store.files,
                load_older=older,
                log=log,
            )
        )
        for line in built.view.warnings:
            live.warn(f"agent {name!r}: {line}")
        previous = built.view
        if live.views is not None:
            live.views.append(recorded(name, live.number, calls, built))
        calls += 1
        return AgentView(system=built.system, messages=built.messages, tools=built.tools)

    return build
