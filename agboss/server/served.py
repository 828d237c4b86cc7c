"""What a server serves: the agents of one App, or those of an AgentRuntime."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from agboss.app import AgentInfo, AgentRuntime, App
from agboss.errors import AgbossError, UnknownThreadError
from agboss.server.problems import ServerError
from agboss_memory.records import Record

logger = logging.getLogger("agboss.server")

MOST_THREADS = 10_000
"""Threads whose agent is remembered."""


class Place(Record, kw_only=True):
    """Where a thread lives.

    Attributes:
        workflow: Name of the App.
        agent: The agent that is meant; None = the only one.
    """

    workflow: str
    agent: str | None


class BrokenAgent(Record, kw_only=True):
    """A definition that cannot be used.

    Attributes:
        file: Its file within the folder.
        code: Stable code of what is wrong with it.
        message: The same in words.
    """

    file: str
    code: str
    message: str


class Served(ABC):
    """One App per agent, or one for all."""

    runtime: AgentRuntime | None = None
    """Where definitions can be read and edited; None = agents are declared in code."""

    @abstractmethod
    async def open(self) -> None:
        """Open what is served."""

    @abstractmethod
    async def close(self, grace: float) -> None:
        """Let running Terns and memory work end within ``grace`` seconds, then release everything."""

    @abstractmethod
    async def check(self) -> None:
        """Raises AgbossError when store or definitions cannot be reached."""

    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of the Apps."""

    @abstractmethod
    async def agents(self) -> tuple[AgentInfo, ...]:
        """All agents that work."""

    async def broken(self) -> tuple[BrokenAgent, ...]:
        """Definitions that cannot be used."""
        return ()

    @abstractmethod
    def app(self, workflow: str) -> AbstractAsyncContextManager[App]:
        """An App by its name, open within the block."""

    @abstractmethod
    async def new_place(self, agent: str | None) -> Place:
        """Where a new thread belongs. Raises ServerError when ``agent`` must be named."""

    @abstractmethod
    async def place(self, thread: str, agent: str | None, owner: str | None) -> Place:
        """Where a thread lives. Raises UnknownThreadError, also for one of another owner."""


class ServedApp(Served):
    """One workflow with its agents."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def open(self) -> None:
        """See ``Served.open``."""
        await self._app.__aenter__()

    async def close(self, grace: float) -> None:
        """See ``Served.close``."""
        await self._app.aclose(grace)

    async def check(self) -> None:
        """See ``Served.check``."""
        await self._app.threads.list(limit=1)

    def names(self) -> tuple[str, ...]:
        """See ``Served.names``."""
        return (self._app.name,)

    async def agents(self) -> tuple[AgentInfo, ...]:
        """See ``Served.agents``."""
        return await self._app.agents()

    @asynccontextmanager
    async def app(self, workflow: str) -> AsyncGenerator[App]:
        """See ``Served.app``."""
        yield self._app

    async def new_place(self, agent: str | None) -> Place:
        """See ``Served.new_place``."""
        return Place(workflow=self._app.name, agent=agent)

    async def place(self, thread: str, agent: str | None, owner: str | None) -> Place:
        """See ``Served.place``."""
        await self._app.threads.get(thread, 0, owner=owner)
        return Place(workflow=self._app.name, agent=agent)


class ServedRuntime(Served):
    """Agents from definitions; each is an App with threads of its own."""

    def __init__(self, runtime: AgentRuntime) -> None:
        self.runtime = runtime
        self._known: OrderedDict[str, str] = OrderedDict()
        self._runtime = runtime
        self._told: frozenset[BrokenAgent] = frozenset()

    async def open(self) -> None:
        """See ``Served.open``."""
        await self._runtime.__aenter__()
        await self.broken()

    async def close(self, grace: float) -> None:
        """See ``Served.close``."""
        await self._runtime.aclose(grace)

    async def check(self) -> None:
        """See ``Served.check``."""
        await self.broken()
        for agent in (await self.agents())[:1]:
            async with self._runtime.app(agent.name) as app:
                await app.threads.list(limit=1)

    def names(self) -> tuple[str, ...]:
        """See ``Served.names``."""
        return tuple(definition.name for definition in self._runtime.agents())

    async def agents(self) -> tuple[AgentInfo, ...]:
        """See ``Served.agents``."""
        found: list[AgentInfo] = []
        for definition in self._runtime.agents():
            try:
                async with self._runtime.app(definition.name) as app:
                    found.extend(await app.agents())
            except AgbossError:  # it names a tool that is not there; asked for by name, it says so
                continue
        return tuple(found)

    async def broken(self) -> tuple[BrokenAgent, ...]:
        """See ``Served.broken``. Each is told to the log once, when it is found."""
        found = [_broken(one.file, one.error) for one in self._runtime.problems()]
        for definition in self._runtime.agents():
            try:
                async with self._runtime.app(definition.name):
                    pass
            except AgbossError as error:
                found.append(_broken(f"{definition.name}.json", error))
        for one in found:
            if one not in self._told:
                logger.warning("definition %s cannot be used: %s: %s", one.file, one.code, one.message)
        self._told = frozenset(found)
        return tuple(found)

    def app(self, workflow: str) -> AbstractAsyncContextManager[App]:
        """See ``Served.app``."""
        return self._runtime.app(workflow)

    async def new_place(self, agent: str | None) -> Place:
        """See ``Served.new_place``."""
        names = self.names()
        if agent is None and len(names) != 1:
            text = f"there are {len(names)} agents"
            raise ServerError("server.which-agent", text, "name one of: " + ", ".join(names), status=400)
        name = names[0] if agent is None else agent
        self._runtime.agent(name)
        return Place(workflow=name, agent=name)

    async def place(self, thread: str, agent: str | None, owner: str | None) -> Place:
        """See ``Served.place``."""
        for name in [agent] if agent is not None else self._candidates(thread):
            if await self._holds(name, thread, owner, asked=agent is not None):
                self._known[thread] = name
                self._known.move_to_end(thread)
                if len(self._known) > MOST_THREADS:
                    self._known.popitem(last=False)
                return Place(workflow=name, agent=name)
        self._known.pop(thread, None)
        raise UnknownThreadError("run.unknown-thread", f"there is no thread {thread!r}")

    def _candidates(self, thread: str) -> list[str]:
        """Agents that may have the thread, the one that had it last time first."""
        return sorted(self.names(), key=lambda name: name != self._known.get(thread))

    async def _holds(self, name: str, thread: str, owner: str | None, *, asked: bool) -> bool:
        try:
            async with self._runtime.app(name) as app:
                await app.threads.get(thread, 0, owner=owner)
        except UnknownThreadError:
            return False
        except AgbossError:
            if asked:
                raise
            return False
        return True


def _broken(file: str, error: AgbossError) -> BrokenAgent:
    return BrokenAgent(file=file, code=error.code, message=error.message)
