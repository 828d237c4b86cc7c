"""Opening and closing an App: one supervisor task enters everything and leaves it in reverse."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Coroutine, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from datetime import timedelta
from typing import Any
from weakref import WeakSet

from agboss.app.assembly import Assembly
from agboss.app.build import Builder, Built
from agboss.errors import AppStateError
from agboss.models import ChatModel, ModelCatalog, ModelSource
from agboss.runtime import Runtime, ThreadPolicy
from agboss.windows import Windows
from agboss_memory.contract import utc_now
from agboss_memory.records import Record
from agboss_memory.stores import Store, new_holder, release_holder
from agboss_memory.wording import told

logger = logging.getLogger("agboss")

LEASE_SECONDS = 10.0
"""How long a Tern keeps its thread without a sign of life."""

ANYIO = "anyio._backends._asyncio"
"""Loaded as soon as something uses anyio in an event loop of asyncio."""

RENEW_SECONDS = 3.0
"""How often a running Tern gives one."""

PATIENCE_SECONDS = 10.0
"""After so long, closing tells what it waits for."""

MOST_NAMED = 5
"""Threads that it names of each kind."""


class AppSettings(Record, kw_only=True):
    """What ``create_app`` was told.

    Attributes:
        store: Where the log is.
        models: Chat models by id, or a source that answers for components.
        background: Whether memory work goes on after a run has returned.
        policy: What a second Tern of a busy thread does.
        queue_timeout: Seconds that ``enqueue`` waits.
        memory_timeout: Seconds that one piece of memory work may take.
        record_views: Whether what model calls were shown is recorded.
    """

    store: Store
    models: Mapping[str, ChatModel] | ModelSource | None
    background: bool
    policy: ThreadPolicy
    queue_timeout: float
    memory_timeout: float
    record_views: bool = False


def _shielded() -> AbstractContextManager[object]:
    """Lets no cancel scope of anyio interrupt what is inside; where anyio does not run there is none to load it for."""
    return sys.modules["anyio"].CancelScope(shield=True) if ANYIO in sys.modules else nullcontext()


_in_use: WeakSet[Lifecycle] = WeakSet()


def _inherit() -> None:
    for lifecycle in _in_use:
        lifecycle.inherit()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_inherit)


class Lifecycle:
    """The open part of an App, in one event loop.

    Args:
        assembly: The checked workflow.
        settings: What ``create_app`` was told.
    """

    def __init__(self, assembly: Assembly, settings: AppSettings) -> None:
        self.assembly = assembly
        self.settings = settings
        self.closed = False
        self.inherited = False
        """Whether this process is a child of the one in which it was opened."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._runtime: Runtime | None = None
        self._built: Built | None = None
        self._models_open = False
        self._opened: asyncio.Future[Runtime] | None = None
        self._supervisor: asyncio.Task[None] | None = None
        self._stop: asyncio.Event | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._serving: Runtime | None = None
        self._patient = True

    def ready(self) -> Runtime | None:
        """The open App in its own event loop with all models found, else None."""
        if self.closed or not self._models_open or self._loop is not asyncio.get_running_loop():
            return None
        return self._runtime

    async def runtime(self, *, models: bool = False) -> Runtime:
        """What runs share; opens the App at first use.

        Args:
            models: Also find every model of the flow, so that a missing key shows before anything is stored.
        """
        self.check_process()
        runtime = self._runtime
        loop = asyncio.get_running_loop()
        if runtime is None or self.closed or self._loop is not loop:
            runtime = await self._join(loop)
        if models and not self._models_open and self._built is not None:
            self._built.open_models()
            await self._built.load_counters()
            self._models_open = True
        if models and self.closed:  # meanwhile
            raise self._is_closed()
        return runtime

    def use(self) -> None:
        """From now on it belongs to this process."""
        _in_use.add(self)

    def inherit(self) -> None:
        """This process was forked. The threads and event loops are its parent's: who waited for them would wait for ever."""
        self.inherited = True
        self._models_open = False  # all that a Tern looks at on its way in

    def check_process(self) -> None:
        """Raise AppStateError in a child that was forked since the App was first used."""
        if self.inherited:
            raise AppStateError(
                "app.other-process",
                f"the App of {self.assembly.spec.name!r} was opened in another process, of which this one is a fork",
                "create one in this process",
            )

    async def _join(self, loop: asyncio.AbstractEventLoop) -> Runtime:
        name = self.assembly.spec.name
        if self.closed:
            raise self._is_closed()
        if self._loop is not None and self._loop is not loop:
            if not self._loop.is_closed():
                raise self._elsewhere()
            self._opened = None
        self.use()
        self._loop = loop
        if self._opened is None:
            self._opened, self._stop = loop.create_future(), asyncio.Event()
            self._supervisor = loop.create_task(self._supervise(self._opened, self._stop), name=f"agboss:{name}")
        return await asyncio.shield(self._opened)

    async def _supervise(self, opened: asyncio.Future[Runtime], stop: asyncio.Event) -> None:
        failure: BaseException | None = None
        try:
            async with AsyncExitStack() as stack:
                try:
                    self._runtime = await self._open(stack)
                except BaseException as error:
                    failure = error
                    raise
                opened.set_result(self._runtime)
                await self._serve(self._runtime, stop)
        except BaseException as error:
            if failure is None:
                raise
            # Told only now: whoever hears of it finds everything released.
            self._opened = None
            opened.set_exception(failure)
            opened.exception()  # the caller may be gone; asyncio is not to complain
            if not isinstance(error, Exception):
                raise

    async def _serve(self, runtime: Runtime, stop: asyncio.Event) -> None:
        renewing = asyncio.create_task(self._renew(runtime))
        self._serving = runtime
        if not self._patient:  # the grace ended while it opened
            runtime.end()
        try:
            await stop.wait()
        finally:
            self._runtime = None
            waits = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._tell_what_is_waited_for, runtime)
            try:
                await runtime.queue.drained()
                await self._finish_tasks()
                if runtime.unbooked:
                    await runtime.unbooked.book(runtime.store)
                    runtime.unbooked.give_up()
            finally:
                self._serving = None
                waits.cancel()
                renewing.cancel()

    def _tell_what_is_waited_for(self, runtime: Runtime) -> None:
        logger.warning(
            "closing the App of %r waits for turns in %s and for memory work in %s; aclose(grace=) bounds the time",
            self.assembly.spec.name,
            sorted(runtime.running)[:MOST_NAMED] or "no thread",
            sorted(runtime.remembering)[:MOST_NAMED] or "no thread",
        )

    async def _open(self, stack: AsyncExitStack) -> Runtime:
        settings, offline = self.settings, self.assembly.offline
        holder = new_holder()
        stack.callback(release_holder, holder)
        await settings.store.open()
        stack.push_async_callback(settings.store.close)
        given = settings.models
        source = given if isinstance(given, ModelSource) and not offline else None
        catalog = ModelCatalog(given if isinstance(given, Mapping) else None, offline=offline)
        stack.push_async_callback(catalog.aclose)
        self._built = await Builder(self.assembly, catalog, source, stack).build()
        self._models_open = False
        return Runtime(
            plan=self._built.plan,
            store=settings.store,
            windows=Windows(self._built.plan.window),
            holder=holder,
            policy=settings.policy,
            queue_timeout=settings.queue_timeout,
            memory_timeout=settings.memory_timeout,
            background=settings.background,
            spawn=self.spawn,
            record_views=settings.record_views,
        )

    async def _renew(self, runtime: Runtime) -> None:
        """Keep the leases of Terns that run for long and the tickets of those that wait; end what cannot go on."""
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            if not len(runtime.queue):
                continue
            try:
                asked = await runtime.store.renew(runtime.holder, utc_now() + timedelta(seconds=LEASE_SECONDS))
                for one in asked:
                    for work in (*runtime.running.values(), *runtime.remembering.values()):
                        if (work.key, work.number) == (one.key, one.number):
                            work.cancel()
            except Exception as error:  # whatever it is, also of a store of one's own: the next try may succeed in time
                logger.warning("leases could not be renewed: %s", told(error))

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Start a task that the App finishes before it closes."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._reap)
        return task

    def _reap(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            logger.debug("a task of %r ended with %s", self.assembly.spec.name, told(error))

    async def _finish_tasks(self) -> None:
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def aclose(self, grace: float | None = None) -> None:
        """Let running Terns and background work end, then release everything. Closing twice is allowed.

        Args:
            grace: Seconds after which what still runs is stopped, None = it is waited for.

        Raises:
            AppStateError: The App is open in another event loop, or was opened in another process.
        """
        self.check_process()
        supervisor, stop = self._supervisor, self._stop
        ended = self._loop is None or self._loop.is_closed()
        if supervisor is None or stop is None or ended or supervisor.done():
            self.closed = True
            return
        if self._loop is not asyncio.get_running_loop():
            raise self._elsewhere()
        self.closed = True
        stop.set()
        if grace is not None:
            asyncio.get_running_loop().call_later(grace, self._lose_patience)
        with _shielded():
            await asyncio.wait((supervisor,))
        supervisor.result()

    def _is_closed(self) -> AppStateError:
        return AppStateError("app.closed", f"the App of {self.assembly.spec.name!r} is closed", "create a new one")

    def _lose_patience(self) -> None:
        self._patient = False
        if self._serving is not None:
            self._serving.end()

    def _elsewhere(self) -> AppStateError:
        name = self.assembly.spec.name
        return AppStateError(
            "app.other-loop", f"the App of {name!r} is open in another event loop", "create one App per loop"
        )
