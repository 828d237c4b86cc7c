"""All Terns that the server runs, each in a task of its own; a request only listens."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from agboss.app import App, RunStream
from agboss.errors import AgbossError, TernCancelledError, TernFailedError
from agboss.events import Answered, Ended, Failed, Paused, TernStarted
from agboss.pauses import Decision, Pause
from agboss.server.log import TernLog
from agboss.server.metrics import Metrics
from agboss.server.problems import ServerError, unexpected
from agboss_memory.attachments import Attachment
from agboss_memory.messages import Tern, TernStatus
from agboss_memory.records import Record

MOST_ENDED = 200
"""Terns that have ended and whose events are still kept; the oldest goes first."""


class Order(Record, kw_only=True):
    """What to run.

    Attributes:
        opening: Opens the App for as long as the Tern needs it.
        workflow: The App's name.
        start: Name of the start, None = the only one.
        input: The task: text, or the fields of the start's model.
        thread: Id of the thread; None = a new one, or that of the stored result when the key was used before.
        create: Make the thread when it does not exist.
        owner: Who asks.
        idempotency_key: Makes the Tern exactly-once per owner.
        metadata: JSON-ready values kept with the Tern.
        timeout: Seconds, None = no bound.
        attachments: Files that come with the task.
        detached: Goes on when nobody listens any more.
        decision: Go on with a paused Tern as is decided, instead of a new one.
        pause_id: What is decided.
    """

    opening: Callable[[], AbstractAsyncContextManager[App]]
    workflow: str
    thread: str | None
    input: Any = None
    create: bool = False
    start: str | None = None
    owner: str | None = None
    idempotency_key: str | None = None
    metadata: Mapping[str, Any] | None = None
    timeout: float | None = None
    attachments: tuple[Attachment, ...] = ()
    detached: bool = False
    decision: Decision | None = None
    pause_id: str | None = None


class Runs:
    """Starts Terns and finds their events.

    Args:
        metrics: Counts them.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self.running: set[TernLog] = set()
        """Terns that have not ended."""

        self._ended: OrderedDict[tuple[str, str, int], TernLog] = OrderedDict()
        self.stopping = False

    async def start(self, order: Order) -> TernLog:
        """Run a Tern; comes back when it is admitted, with the caller as its first listener.

        Raises:
            AgbossError: What admission raises.
        """
        if self.stopping:
            raise ServerError("server.stopping", "the server is stopping", "try again later", status=503)
        log = TernLog(order.workflow, order.owner, detached=order.detached)
        log.listeners = 1
        self.running.add(log)
        self._metrics.running += 1
        log.task = asyncio.create_task(self._run(log, order))
        log.task.add_done_callback(lambda _: self._done(log))
        try:
            while not (log.thread or log.ended):
                await log.change()
        except asyncio.CancelledError:
            log.detached = False  # nobody has heard of it
            log.leave()
            raise
        if log.error is not None and not log.thread:
            raise log.error
        return log

    def find(self, workflow: str, thread: str, tern: int, owner: str | None) -> TernLog | None:
        """The events of a Tern that runs, or has just ended."""
        here = (log for log in self.running if (log.workflow, log.thread, log.tern) == (workflow, thread, tern))
        log = next(here, None) or self._ended.get((workflow, thread, tern))
        return log if log is not None and log.owner == owner else None

    def cancel(self, workflow: str, thread: str) -> bool:
        """Cancel the Tern that runs in a thread; False when the server runs none there."""
        return any(log.cancel() for log in self.running if (log.workflow, log.thread) == (workflow, thread))

    def forget(self, workflow: str, thread: str) -> None:
        """Drop the events of a thread that was deleted."""
        for key in [key for key in self._ended if key[:2] == (workflow, thread)]:
            del self._ended[key]

    async def finish(self, grace: float) -> None:
        """Let running Terns end within ``grace`` seconds, then cancel them; they are stored as cancelled."""
        self.stopping = True
        tasks = {log.task for log in self.running if log.task is not None}
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=grace)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)

    async def _run(self, log: TernLog, order: Order) -> None:
        try:
            async with order.opening() as app:
                await self._follow(log, order, app)
        except AgbossError as error:
            log.fail(error)
        except asyncio.CancelledError:
            if log.status == "":
                why = "the server is stopping" if self.stopping else "nobody listened any more"
                hint = "run it again when the server is back" if self.stopping else ""
                log.fail(TernCancelledError("run.cancelled", f"the turn was cancelled: {why}", hint))
        except Exception as error:
            log.fail(unexpected(error))

    async def _follow(self, log: TernLog, order: Order, app: App) -> None:
        async with _stream(order, app) as run:
            log.admitted(run.thread, run.direct)
            async for event in run:
                if isinstance(event, Failed):  # told from the error itself, which may hold too much
                    continue
                if isinstance(event, TernStarted):
                    before = self._ended.get((log.workflow, log.thread, event.tern))
                    if before is not None and before.status == TernStatus.PAUSED:
                        log.go_on_from(before)
                log.take(event)
            log.result = await run.result()

    def _done(self, log: TernLog) -> None:
        self._metrics.running -= 1
        self._metrics.tern(log.status or ("cancelled" if log.thread else "refused"))
        log.end()
        self.running.discard(log)
        key = (log.workflow, log.thread, log.tern)
        known = self._ended.get(key)
        repeated = known is not None and known.status == TernStatus.ANSWERED  # then the first one tells more
        if log.tern and not repeated:
            self._ended[key] = log
            if len(self._ended) > MOST_ENDED:
                self._ended.popitem(last=False)


def stored_log(workflow: str, thread: str, tern: Tern, pauses: Sequence[Pause]) -> TernLog:
    """The end of a Tern whose events are not kept any more: its answer, its error or its open pauses."""
    log = TernLog(workflow, None, detached=True)
    log.admitted(thread, frozenset())
    if tern.status in (TernStatus.FAILED, TernStatus.CANCELLED):
        log.tern = tern.number
        kind = TernFailedError if tern.status == TernStatus.FAILED else TernCancelledError
        log.fail(kind(tern.error_code or f"run.{tern.status}", tern.error or f"the turn is {tern.status}"))
    else:
        if tern.status == TernStatus.PAUSED:
            for pause in pauses:
                if pause.tern == tern.number:
                    log.take(Paused.of(pause))
        else:
            log.take(Answered(answer=tern.answer, status=tern.status))
        log.take(Ended(thread=thread, tern=tern.number, status=tern.status, answer=tern.answer))
    log.end()
    return log


def _stream(order: Order, app: App) -> RunStream:
    if order.decision is not None and order.thread is not None:
        return app.stream_resume(
            order.thread, order.decision, pause_id=order.pause_id, owner=order.owner, timeout=order.timeout
        )
    keywords: dict[str, Any] = {
        "thread": order.thread,
        "create_thread": order.create,
        "owner": order.owner,
        "idempotency_key": order.idempotency_key,
        "metadata": order.metadata,
        "timeout": order.timeout,
        "attachments": order.attachments,
    }
    if order.start is None:
        return app.stream(order.input, **keywords)
    return app.stream(app.start(order.start), order.input, **keywords)
