"""The App: a workflow with its store, its models and its container, ready to run."""

from __future__ import annotations

import atexit
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import agboss.app as parts  # what looks at memory, and streams, are loaded when they are used
from agboss.app.arguments import check_flags, check_models, check_seconds, check_store, mapper_provider
from agboss.app.assembly import Assembly
from agboss.app.declared import declared
from agboss.app.lifecycle import AppSettings, Lifecycle
from agboss.app.request import RunArguments, check_id, make_request, start_named
from agboss.app.threads import AppThreads
from agboss.components.boundary import StartSpec
from agboss.components.injection import ProviderLike
from agboss.components.workflow import as_providers
from agboss.container import CURRENT
from agboss.errors import AppStateError, InvalidInputError, NestedSyncError, UnknownThreadError
from agboss.models import ChatModel, ModelSource
from agboss.models.meter import MEMORY_SECONDS
from agboss.pauses import Decision
from agboss.run import RunResult
from agboss.runner import run_tern
from agboss.runtime import ThreadPolicy
from agboss_memory.attachments import Attachment
from agboss_memory.mapper import LlmMessageMapper
from agboss_memory.stores import Store, open_store
from agboss_memory.stores.contract import ThreadRef
from agboss_memory.wording import quoted

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal
    from pydantic import BaseModel

logger = logging.getLogger("agboss")

DEFAULT_STORE = "sqlite:///.agboss/agboss.db"
STORE_VARIABLE = "AGBOSS_STORE"
OFFLINE_VARIABLE = "AGBOSS_OFFLINE"

MemoryWork = Literal["inline", "background"]


def create_app(
    workflow: type[Any],
    *,
    store: str | Store | None = None,
    providers: Sequence[ProviderLike] = (),
    models: Mapping[str, ChatModel] | ModelSource | None = None,
    llm_message_mapper: LlmMessageMapper | type[LlmMessageMapper] | None = None,
    offline: bool = False,
    memory_work: MemoryWork = "inline",
    thread_policy: ThreadPolicy = "enqueue",
    queue_timeout: float = 60.0,
    memory_timeout: float = MEMORY_SECONDS,
    record_views: bool = False,
) -> App:
    """Check a workflow and make an App of it. Opens nothing and calls no model.

    Args:
        workflow: A class decorated with ``@workflow``, or with ``@agent`` (a workflow of one).
        store: ``sqlite:///path``, ``memory://``, or a store. Default: ``AGBOSS_STORE``, then
            ``sqlite:///.agboss/agboss.db``.
        providers: Replace the workflow's providers by key.
        models: Chat models by model id, or a source such as ``ScriptedModels()``.
        llm_message_mapper: The last step before every model, as an object or as a class that the container builds;
            None = one that ``providers`` binds to ``LlmMessageMapper``, else ``DefaultLlmMessageMapper``.
        offline: Replace every model and router by built-in ones; also ``AGBOSS_OFFLINE=1``.
        memory_work: ``inline`` returns after the memory work of a Tern, ``background`` at its commit.
        thread_policy: What a second Tern of a busy thread does: ``enqueue`` waits, ``reject`` raises ThreadBusyError,
            ``interrupt`` ends the one that runs, whose caller gets TernCancelledError.
        queue_timeout: Seconds that ``enqueue`` waits. Default 60.
        memory_timeout: Seconds that one ``update_memory``, or one model call of memory, may take; then it has failed and
            is tried again after a later Tern. Default 600, as long as providers' own clients wait.
        record_views: Record what every model call is shown (ids, states, tokens, no text); read with
            ``app.threads.calls``.

    Raises:
        AssemblyError: With every violation of the workflow.
        InvalidInputError: Another argument is not acceptable.
        StoreUrlError: The store URL names no store.
    """
    check_flags(offline=offline, record_views=record_views)
    off = offline or os.environ.get(OFFLINE_VARIABLE, "") not in ("", "0")
    replacing = (*as_providers("create_app", providers), *mapper_provider(llm_message_mapper))
    assembly = Assembly(declared(workflow), providers=replacing, offline=off)
    if memory_work not in ("inline", "background"):
        raise InvalidInputError("app.invalid", f"memory_work={quoted(memory_work)}", "use 'inline' or 'background'")
    if thread_policy not in get_args(ThreadPolicy):
        hint = "use 'enqueue', 'reject' or 'interrupt'"
        raise InvalidInputError("app.invalid", f"thread_policy={quoted(thread_policy)}", hint)
    check_seconds("queue_timeout", queue_timeout)
    check_seconds("memory_timeout", memory_timeout)
    check_models(models)
    check_store(store)
    url = store if store is not None else os.environ.get(STORE_VARIABLE)
    if url is None:
        url = DEFAULT_STORE
        logger.info("threads are kept in %s (set store= or %s)", url, STORE_VARIABLE)
    return App(
        assembly,
        AppSettings(
            store=open_store(url) if isinstance(url, str) else url,
            models=models,
            background=memory_work == "background",
            policy=thread_policy,
            queue_timeout=queue_timeout,
            memory_timeout=memory_timeout,
            record_views=record_views,
        ),
    )


class App:
    """Made by ``create_app``. Use it as ``async with``, as plain ``with`` in scripts, or call ``execute`` right away.

    Opened at first use when it was not entered; closed by leaving the block or by ``aclose``.
    """

    def __init__(self, assembly: Assembly, settings: AppSettings) -> None:
        self._lifecycle = Lifecycle(assembly, settings)
        self._script: parts.ScriptLoop | None = None
        self._portal_lock = Lock()
        self.threads = AppThreads(self._lifecycle)

    @cached_property
    def memory(self) -> parts.AppMemory:
        """What agents see of threads, and what a person may do about it."""
        return parts.AppMemory(self._lifecycle)

    @property
    def name(self) -> str:
        """The workflow's name."""
        return self._lifecycle.assembly.spec.name

    @property
    def store_url(self) -> str:
        """Where threads are kept."""
        return self._lifecycle.settings.store.url

    def start(self, name: str) -> type[Any]:
        """A start's class by its name, as ``execute`` takes it. Raises InvalidInputError."""
        return start_named(self._lifecycle.assembly.graph, name)

    @property
    def starts(self) -> dict[str, type[BaseModel] | None]:
        """What the flow begins with: the model of each start's input by its name, None = it takes text."""
        nodes = self._lifecycle.assembly.graph.of_kind("start")
        return {node.spec.name: node.spec.input for node in nodes if isinstance(node.spec, StartSpec)}

    async def agents(self) -> tuple[parts.AgentInfo, ...]:
        """The agents of the flow, in its order, with everything inherited filled in."""
        return parts.agent_infos((await self._lifecycle.runtime()).plan)

    def describe(self) -> str:
        """The flow as a Mermaid flowchart."""
        return self._lifecycle.assembly.graph.mermaid()

    async def __aenter__(self) -> Self:
        await self._lifecycle.runtime()
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._lifecycle.inherited:  # a fork leaves the block; what is open is its parent's
            await self.aclose()

    async def aclose(self, grace: float | None = None) -> None:
        """Let running Terns and their memory work end, then release everything. Closing twice is allowed.

        Args:
            grace: Seconds after which nothing is waited for any more: Terns that run are stored as cancelled, those that
                wait for their thread are refused (``app.closed``), and memory work is left to the thread's next Tern.
                What must still be stored may wait for a lock of the store, and code that ignores its cancellation is
                waited for.
                None = it ends when everything has ended; ``async with`` closes like this.

        Raises:
            InvalidInputError: ``grace`` is no number of seconds.
            AppStateError: The App is open in another event loop, or was opened in another process.
        """
        if grace is not None:
            check_seconds("grace", grace)
        await self._lifecycle.aclose(grace)

    async def execute(
        self,
        start: Any = None,
        input: Any = None,
        *,
        thread: str | None = None,
        create_thread: bool = False,
        owner: str | None = None,
        idempotency_key: str | None = None,
        attachments: Iterable[Attachment] = (),
        metadata: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> RunResult:
        """Run one Tern.

        Args:
            start: The start's class; may be left out when the workflow has one (then the first argument is the input).
            input: The task: text, or an instance of the start's model (or a dict of its fields).
            thread: Continue this thread; None = first contact, a new id comes back.
            create_thread: Make ``thread`` when it does not exist.
            owner: Binds the thread to a user.
            idempotency_key: Makes the Tern exactly-once per owner: a repeat returns the stored result.
            attachments: Files that come with the task; every agent that reads it gets those that its model takes.
            metadata: JSON-ready values kept with the Tern.
            timeout: Seconds from admission to answer; None = no bound.

        Raises:
            InvalidInputError: The start, the input or an id is not acceptable; nothing was stored.
            UnknownThreadError: No such thread, or (ThreadOwnerError) one of another owner.
            TernConflictError: The idempotency key was used for something else.
            ThreadBusyError: The thread stayed busy.
            AgbossError: The Tern failed; ``.run`` is the stored result.
        """
        arguments = RunArguments(
            thread=thread,
            create_thread=create_thread,
            owner=owner,
            idempotency_key=idempotency_key,
            attachments=attachments,
            metadata=metadata,
            timeout=timeout,
        )
        request = make_request(self.name, self._lifecycle.assembly.graph, start, input, arguments)
        runtime = self._lifecycle.ready() or await self._lifecycle.runtime(models=True)
        return await run_tern(runtime, request)

    def stream(
        self,
        start: Any = None,
        input: Any = None,
        *,
        thread: str | None = None,
        create_thread: bool = False,
        owner: str | None = None,
        idempotency_key: str | None = None,
        attachments: Iterable[Attachment] = (),
        metadata: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> parts.RunStream:
        """Run one Tern and hear what happens: ``async with app.stream(...) as run: async for event in run: ...``.

        Takes the same arguments as ``execute``. Entering raises admission errors; leaving cancels a Tern that still
        runs unless ``run.detach()`` was called.
        """
        arguments = RunArguments(
            thread=thread,
            create_thread=create_thread,
            owner=owner,
            idempotency_key=idempotency_key,
            attachments=attachments,
            metadata=metadata,
            timeout=timeout,
        )
        request = make_request(self.name, self._lifecycle.assembly.graph, start, input, arguments)
        return parts.RunStream(self._lifecycle, request, parts.direct_agents(self._lifecycle.assembly.graph))

    async def resume(
        self,
        thread: str,
        decision: Decision | bool,
        *,
        pause_id: str | None = None,
        owner: str | None = None,
        timeout: float | None = None,
    ) -> RunResult:
        """Decide about a call that a paused Tern waits for, and go on with it. No finished call is made again.

        The decision is stored before anything runs. The same one again is no fault: it goes on where a process died, or
        gives the stored result.

        Args:
            thread: The thread.
            decision: True, False, or a ``Decision`` with a reason or other arguments.
            pause_id: ``result.pause.id``; may be left out while the thread waits for one decision. Name it where a
                request may come twice.
            owner: The thread's owner, as in ``execute``.
            timeout: Seconds from here to the answer; None = no bound.

        Raises:
            PauseError: Nothing waits for it (``pause.none``, ``pause.unknown``, ``pause.closed``), it was decided
                otherwise (``pause.decided``), or what it needs is gone (``pause.no-tool``, ``pause.start-gone``).
            InvalidInputError: The decision is none, the tool does not take the arguments, or several calls wait
                (``pause.which``). Nothing changed.
            UnknownThreadError: No such thread, or (ThreadOwnerError) one of another owner.
            AgbossError: The Tern failed; ``.run`` is the stored result.
        """
        given = parts.ResumeArguments(thread=thread, decision=decision, pause_id=pause_id, owner=owner, timeout=timeout)
        runtime = await self._lifecycle.runtime(models=True)
        return await run_tern(runtime, await parts.resume_request(runtime, given))

    def stream_resume(
        self,
        thread: str,
        decision: Decision | bool,
        *,
        pause_id: str | None = None,
        owner: str | None = None,
        timeout: float | None = None,
    ) -> parts.RunStream:
        """``resume``, heard while it happens as with ``stream``. Entering raises what ``resume`` refuses."""
        given = parts.ResumeArguments(thread=thread, decision=decision, pause_id=pause_id, owner=owner, timeout=timeout)
        direct = parts.direct_agents(self._lifecycle.assembly.graph)
        return parts.RunStream(self._lifecycle, partial(parts.resume_request, given=given), direct)

    def execute_sync(self, start: Any = None, input: Any = None, **arguments: Any) -> RunResult:
        """``execute`` from a script, through one portal thread. Also works while an event loop runs in this thread.

        Raises:
            NestedSyncError: Called from inside a running Tern.
        """
        return self._sync("execute_sync", partial(self.execute, start, input, **arguments))

    def resume_sync(self, thread: str, decision: Decision | bool, **arguments: Any) -> RunResult:
        """``resume`` from a script. Raises NestedSyncError from inside a running Tern."""
        return self._sync("resume_sync", partial(self.resume, thread, decision, **arguments))

    def _sync(self, name: str, call: Callable[[], Awaitable[RunResult]]) -> RunResult:
        if CURRENT.get() is not None:
            raise NestedSyncError(
                "app.nested-sync",
                f"{name} was called from inside a running Tern, which would wait for itself",
                "make the tool or strategy async and await app.execute(...) on another thread id",
            )
        return self._enter_portal().call(call)

    def _enter_portal(self) -> BlockingPortal:
        self._lifecycle.check_process()
        with self._portal_lock:
            if self._script is None:
                if self._lifecycle.closed:
                    raise AppStateError("app.closed", f"the App of {self.name!r} is closed", "create a new one")
                self._script = parts.ScriptLoop()  # scripts alone pay for it
                self._lifecycle.use()
                atexit.register(self._leave_script)  # a script that forgets to close would never end
            return self._script.portal

    def __enter__(self) -> Self:
        portal = self._enter_portal()
        try:
            portal.call(self._lifecycle.runtime)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._leave_script()

    def _leave_script(self) -> None:
        if not self._lifecycle.inherited:  # a fork ends; the portal's thread is its parent's
            self.close()

    def close(self, grace: float | None = None) -> None:
        """``aclose`` from a script."""
        if grace is not None:
            check_seconds("grace", grace)
        self._lifecycle.check_process()
        with self._portal_lock:
            script, self._script = self._script, None
        atexit.unregister(self._leave_script)
        if script is not None:
            try:
                script.portal.call(self.aclose, grace)
            finally:
                script.stop()

    async def cancel(self, thread: str) -> bool:
        """Cancel the Tern that runs in ``thread``, in whatever process; when none runs, those that are paused.

        The caller of one that runs gets TernCancelledError: at once in this App, at the next sign of life of its lease
        elsewhere. One whose process is gone is stored as cancelled by whoever takes it over. A paused one is stored as
        cancelled. Where this App is at memory work after a Tern, that is broken off: the Tern keeps its answer, and the
        work counts as tried once. False when there is nothing to cancel.
        """
        check_id("thread", thread)
        runtime = await self._lifecycle.runtime()
        if runtime.stop(thread) is not None:
            return True
        try:
            asked = await runtime.store.interrupt(ThreadRef(workflow=self.name, thread=thread, any_owner=True))
            return asked is not None or await parts.cancel_paused(runtime, thread)
        except UnknownThreadError:
            return False

    async def spend(self, days: int = 30, *, owner: str | None = None) -> parts.Spend:
        """What was spent in the last days, by day and model, out of the ledger: it costs the same however much ran.

        Args:
            days: UTC days, today among them; 1 to 3660. Default 30.
            owner: Only what this owner's threads spent; None = all.

        Raises:
            InvalidInputError: ``days`` or ``owner`` is not acceptable.
        """
        return await parts.spend_of(await self._lifecycle.runtime(), days, owner)

    async def recover(self) -> tuple[RunResult, ...]:
        """Go on with every Tern that a vanished process left, then with memory work that was left in idle threads.

        A Tern runs again from its start; what stands in its journal is taken from there, so that no finished call is
        repeated. Terns that another process takes first, those whose start is no longer part of the workflow, and those
        whose attachments are not there, are left alone. Memory work is that of at most 100 threads per call, in each as much as one Tern does.

        Returns:
            The result of each, in the order of their threads; of those that failed too.
        """
        if not await parts.left_behind(await self._lifecycle.runtime()):
            return ()  # nothing to do needs no key of a model
        runtime = await self._lifecycle.runtime(models=True)
        results = await parts.recover(runtime)
        await parts.catch_up(runtime)
        return results
