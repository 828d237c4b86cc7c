"""Agents from definitions, each an App over one shared store; an edited definition counts from the next turn on."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self, cast

from agboss.app.app import DEFAULT_STORE, STORE_VARIABLE, App, create_app
from agboss.app.arguments import check_flags, check_models, check_store, mapper_provider
from agboss.app.memory import AppMemory
from agboss.app.streaming import RunStream
from agboss.app.threads import AppThreads
from agboss.components.boundary import AnswerFinish, TaskStart
from agboss.components.injection import ProviderLike
from agboss.components.metadata import listed
from agboss.components.workflow import as_providers, workflow
from agboss.definitions import (
    AgentDefinition,
    DefinitionFolder,
    DefinitionProblem,
    defined_agent,
    known_tools,
    parse_definition,
    unknown_agent,
)
from agboss.errors import AppStateError, InvalidInputError
from agboss.flow import chain
from agboss.models import ChatModel, ModelSource
from agboss.run import RunResult
from agboss_memory.attachments import Attachment
from agboss_memory.mapper import LlmMessageMapper
from agboss_memory.records import Record, Struct
from agboss_memory.stores import Store, open_store
from agboss_memory.wording import quoted

Definitions = DefinitionFolder | str | os.PathLike[str] | Sequence[AgentDefinition | Mapping[str, Any]]


class AgentSession(Record, kw_only=True):
    """A conversation with one agent.

    Attributes:
        agent: Name of the agent.
        thread: Id of the thread.
        user: Its owner, None when it has none.
    """

    agent: str
    thread: str
    user: str | None = None


class _Served(Struct, eq=False):
    """One definition at work."""

    definition: AgentDefinition
    app: App
    users: int = 0


class AgentRuntime:
    """Runs agents that are defined by JSON files. Use it as ``async with``.

    Args:
        definitions: A folder of ``<agent name>.json`` files, watched for changes, or a list of definitions.
        store: ``sqlite:///path``, ``memory://``, or a store; shared by all agents. Default: ``AGBOSS_STORE``, then
            ``sqlite:///.agboss/agboss.db``.
        tools: Tool classes, functions or ``ToolRef`` that definitions name.
        models: Chat models by model id, or a source such as ``ScriptedModels()``.
        providers: What the container provides to tools.
        llm_message_mapper: The last step before every model, as in ``create_app``.
        offline: Replace every model by a built-in one.

    Raises:
        InvalidInputError: A definition of the list is none, two have one name, or another argument is not acceptable.
        DeclarationError: ``tools`` or ``providers`` is no list, or holds what is no provider.
    """

    def __init__(
        self,
        definitions: Definitions,
        *,
        store: str | Store | None = None,
        tools: Sequence[Any] = (),
        models: Mapping[str, ChatModel] | ModelSource | None = None,
        providers: Sequence[ProviderLike] = (),
        llm_message_mapper: LlmMessageMapper | type[LlmMessageMapper] | None = None,
        offline: bool = False,
    ) -> None:
        check_flags(offline=offline)
        check_models(models)
        check_store(store)
        mapper_provider(llm_message_mapper)
        as_providers("AgentRuntime", providers)
        self._folder: DefinitionFolder | None = None
        self._listed: dict[str, AgentDefinition] = {}
        if isinstance(definitions, DefinitionFolder):
            self._folder = definitions
        elif isinstance(definitions, str | os.PathLike):
            self._folder = DefinitionFolder(definitions)
        else:
            self._listed = _listed(definitions)
        url = store if store is not None else os.environ.get(STORE_VARIABLE, DEFAULT_STORE)
        self._store = open_store(url) if isinstance(url, str) else url
        self._tools = listed("AgentRuntime", "tools", tools)
        self._models = models
        self._providers = tuple(providers)
        self._mapper = llm_message_mapper
        self._offline = offline
        self._served: dict[str, _Served] = {}
        self._retired: list[_Served] = []
        self._closing: dict[asyncio.Task[None], App] = {}
        self._open = False

    async def __aenter__(self) -> Self:
        await self._store.open()
        self._open = True
        try:
            self.agents()
            for name in self._listed:
                self._current(name)
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self, grace: float | None = None) -> None:
        """Let running Terns end, then release everything. Closing twice is allowed.

        Args:
            grace: Seconds after which what still runs is stopped, as ``App.aclose`` does; None = it is waited for.
        """
        if not self._open:
            return
        self._open = False
        apps = [one.app for one in (*self._retired, *self._served.values())]
        self._retired, self._served = [], {}
        try:
            ended = await asyncio.gather(
                *(app.aclose(grace) for app in (*apps, *self._closing.values())), return_exceptions=True
            )
        finally:
            await self._store.close()
        for error in ended:
            if error is not None:
                raise error

    def agents(self) -> tuple[AgentDefinition, ...]:
        """All valid definitions by name, as they are now."""
        if self._folder is not None:
            return self._folder.list()
        return tuple(self._listed[name] for name in sorted(self._listed))

    def agent(self, name: str) -> AgentDefinition:
        """One definition. Raises InvalidInputError (``definition.unknown``, ``definition.invalid``)."""
        if self._folder is not None:
            return self._folder.load(name)
        if name not in self._listed:
            raise unknown_agent(name, list(self._listed))
        return self._listed[name]

    def problems(self) -> tuple[DefinitionProblem, ...]:
        """Files of the folder that are no definition."""
        return () if self._folder is None else self._folder.problems()

    def tools(self) -> dict[str, str]:
        """What definitions may name: the description of each tool by its name."""
        return known_tools(self._tools)

    def save(self, definition: AgentDefinition, *, expected: str | None = None) -> None:
        """Write a definition into the folder; it counts from the next turn on.

        Args:
            definition: What is written.
            expected: ``AgentDefinition.version`` that the file must still have, empty = there must be no file; None =
                whatever is there is replaced.

        Raises:
            InvalidInputError: ``definition.unknown-tool``: it names a tool that the runtime was not given;
                ``definition.read-only``: the definitions came as a list; ``definition.changed``,
                ``definition.exists``: the file is not the expected one; nothing was written.
            AssemblyError: The agent cannot work as it is; nothing was written.
        """
        folder = self._writable(definition.name)
        self._make(definition)
        folder.save(definition, expected=expected)

    def delete(self, agent: str, *, expected: str | None = None) -> None:
        """Remove a definition from the folder. Its threads stay in the store; a running Tern ends as it would have.

        Args:
            agent: Its name.
            expected: ``AgentDefinition.version`` that the file must still have; None = any.

        Raises:
            InvalidInputError: As ``save``; ``definition.unknown``: there is no such agent.
        """
        self._writable(agent).delete(agent, expected=expected)

    def _writable(self, name: str) -> DefinitionFolder:
        if self._folder is None:
            text = f"agent {name!r} cannot be saved: the definitions came as a list"
            raise InvalidInputError("definition.read-only", text, "give AgentRuntime a folder")
        return self._folder

    def memory(self, agent: str) -> AppMemory:
        """The memory of an agent's threads. Ask again after the definition was edited."""
        return self._current(agent).app.memory

    def threads(self, agent: str) -> AppThreads:
        """An agent's threads. Ask again after the definition was edited."""
        return self._current(agent).app.threads

    async def open_session(self, agent: str, user: str | None = None) -> AgentSession:
        """Begin a conversation: a new thread, bound to ``user``."""
        async with self.app(agent) as app:
            return AgentSession(agent=agent, thread=await app.threads.create(owner=user), user=user)

    async def chat(
        self,
        session: AgentSession,
        text: str,
        *,
        attachments: Iterable[Attachment] = (),
        timeout: float | None = None,
    ) -> RunResult:
        """One turn. Arguments and errors are those of ``App.execute``."""
        thread, owner = session.thread, session.user
        async with self.app(session.agent) as app:
            return await app.execute(text, thread=thread, owner=owner, attachments=attachments, timeout=timeout)

    @asynccontextmanager
    async def stream(
        self,
        session: AgentSession,
        text: str,
        *,
        attachments: Iterable[Attachment] = (),
        timeout: float | None = None,
    ) -> AsyncGenerator[RunStream]:
        """One turn that can be watched: ``async with runtime.stream(session, text) as run``. See ``App.stream``."""
        thread, owner = session.thread, session.user
        async with self.app(session.agent) as app:
            run = app.stream(text, thread=thread, owner=owner, attachments=attachments, timeout=timeout)
            async with run:
                yield run

    @asynccontextmanager
    async def app(self, agent: str) -> AsyncGenerator[App]:
        """The App of an agent as it is defined now; it stays open within the block, also when the file is edited."""
        served = self._current(agent)
        served.users += 1
        try:
            yield served.app
        finally:
            served.users -= 1
            self._close_retired()

    def _current(self, name: str) -> _Served:
        if not self._open:
            raise AppStateError("app.closed", "the AgentRuntime is not open", "use 'async with AgentRuntime(...)'")
        definition = self.agent(name)
        known = self._served.get(name)
        if known is not None and known.definition == definition:
            return known
        fresh = _Served(definition, self._make(definition))
        if known is not None:
            self._retired.append(known)
        self._served[name] = fresh
        return fresh

    def _close_retired(self) -> None:
        """Close Apps of earlier definitions that nobody is about to use; they let their Terns end."""
        idle = [one for one in self._retired if not one.users]
        self._retired = [one for one in self._retired if one.users]
        for one in idle:
            task = asyncio.create_task(one.app.aclose())
            self._closing[task] = one.app
            task.add_done_callback(self._closing.pop)

    def _make(self, definition: AgentDefinition) -> App:
        component = defined_agent(definition, tools=self._tools)

        @workflow(
            name=definition.name,
            version=definition.version,
            description=definition.description,
            flow=chain(TaskStart, component, AnswerFinish),
            providers=self._providers,
        )
        class Defined: ...

        return create_app(
            Defined,
            store=cast("Store", _Shared(self._store)),
            models=self._models,
            llm_message_mapper=self._mapper,
            offline=self._offline,
        )


class _Shared:
    """A store that is opened and closed by the runtime, not by the Apps that use it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def open(self) -> None:
        """The runtime has opened it."""

    async def close(self) -> None:
        """The runtime closes it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def _listed(definitions: Sequence[AgentDefinition | Mapping[str, Any]]) -> dict[str, AgentDefinition]:
    if isinstance(definitions, Mapping | type) or not isinstance(definitions, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        text = f"definitions={quoted(cast('object', definitions))} is neither a folder nor a list"
        raise InvalidInputError("app.invalid", text, "pass a folder of JSON files, or a list of definitions")
    found: dict[str, AgentDefinition] = {}
    for definition in map(parse_definition, definitions):
        if definition.name in found:
            text = f"two definitions are called {definition.name!r}"
            raise InvalidInputError("definition.duplicate", text, "give one of them another name")
        found[definition.name] = definition
    return found
