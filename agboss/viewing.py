"""Gives an agent its view for each of its model calls."""

from __future__ import annotations

from agboss.conversing import RunningConversation
from agboss.recording import recorded
from agboss.run import LiveTern
from agboss.tern import BuiltContext, ContextRequest, build_context
from agboss_memory.contract import MemoryView
from agboss_memory.messages import Message
from agboss_memory.records import replace
from agboss_memory.stores.contract import MessagePage, Store

NO_BOUND = 2**62
"""Greater than any message number."""


class _Older:
    """Reads older messages of an agent's own conversation, as strategies ask for them. Holds nothing of the Tern."""

    __slots__ = ("_agent", "_key", "_store")

    def __init__(self, store: Store, key: int, agent: str) -> None:
        self._store = store
        self._key = key
        self._agent = agent

    async def __call__(self, before: int, limit: int) -> tuple[Message, ...]:
        """The newest ``limit`` messages before a number."""
        return await self._store.messages(self._key, MessagePage(agent=self._agent, before=before, limit=limit))


class Viewing:
    """The views of one visit of an agent; ``build`` is its ``ViewBuilder``.

    Args:
        live: The Tern.
        name: The agent.
    """

    __slots__ = ("_agent", "_calls", "_conversation", "_live", "_log", "_previous")

    def __init__(self, live: LiveTern, name: str) -> None:
        self._live = live
        self._agent = live.plan.agents[name]
        self._log = None if self._agent.config is None else RunningConversation(live, self._agent)
        self._calls = 0 if live.views is None else sum(one.agent == name for one in live.views)
        self._conversation: tuple[Message, ...] | None = None
        self._previous: MemoryView | None = None

    async def build(self, call_index: int, added: tuple[Message, ...]) -> BuiltContext:
        """The view for a call of the model, with what the agent's loop added so far."""
        live, agent, log = self._live, self._agent, self._log
        older = _Older(live.store, live.key, agent.name)
        if self._conversation is None:
            limit = agent.reach.messages if log is None else 0
            self._conversation = await older(NO_BOUND, limit) if limit else ()
        request = ContextRequest(
            agent=agent,
            thread=live.thread,
            owner=live.owner,
            tern=live.number,
            task=live.task,
            now=live.started_at,
            window=live.window,
            results=live.answers,
            conversation=self._conversation,
            metadata=live.metadata,
            attachments=live.attachments,
            files=live.store.files,
            load_older=older,
            log=log,
        )
        if call_index:
            request = replace(request, call_index=call_index, added=added, previous=self._previous)
        built = await build_context(request)
        self._previous = built.view
        for line in built.view.warnings:
            live.warn(f"agent {agent.name!r}: {line}")
        if live.views is not None:
            live.views.append(recorded(agent.name, live.number, self._calls, built))
        self._calls += 1
        return built
