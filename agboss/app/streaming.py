"""A run that can be watched while it happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias

import anyio

from agboss.errors import AgbossError, AppStateError
from agboss.events import Answered, Ended, Failed, Paused, RunEvent, TernStarted, TextDelta
from agboss.flow import Graph
from agboss.run import RunResult
from agboss.runner import run_tern
from agboss.runtime import RunRequest, Runtime
from agboss_memory.records import replace

if TYPE_CHECKING:
    from agboss.app.lifecycle import Lifecycle


MakeRequest: TypeAlias = Callable[[Runtime], Awaitable[RunRequest]]
"""Makes the request when the stream is entered, for one that needs the store."""


class RunStream:
    """Made by ``app.stream(...)``; use it as ``async with``.

    Iterate it for events, or ``text()`` for the answer's text alone; both raise the run's error at its end.
    """

    def __init__(self, lifecycle: Lifecycle, request: RunRequest | MakeRequest, direct: frozenset[str]) -> None:
        self._lifecycle = lifecycle
        self._request = request
        self._direct = direct
        self._events: asyncio.Queue[RunEvent | None] = asyncio.Queue()
        self._task: asyncio.Task[RunResult] | None = None
        self._runtime: Runtime | None = None
        self._started = asyncio.Event()
        self._stored = asyncio.Event()
        self._detached = False
        self._thread = ""
        self._drained = False

    @property
    def direct(self) -> frozenset[str]:
        """Agents whose certain text can only be the Tern's answer."""
        return self._direct

    @property
    def thread(self) -> str:
        """Id of the thread; known as soon as the block is entered."""
        return self._thread

    async def __aenter__(self) -> Self:
        if self._task is not None:
            raise AppStateError("stream.entered", "the stream was entered before", "call app.stream(...) again")
        self._runtime = await self._lifecycle.runtime(models=True)
        asked = self._request
        request = replace(asked if isinstance(asked, RunRequest) else await asked(self._runtime), emit=self._emit)
        self._task = self._lifecycle.spawn(run_tern(self._runtime, request))
        self._task.add_done_callback(self._done)
        try:
            await _first(self._started, self._task)
        except BaseException:
            self._task.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait((self._task,))
            raise
        if not self._thread:
            self._thread = (await self._task).thread  # a repeat gives its stored result, a refusal its error
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is None or self._runtime is None or self._detached:
            return
        interrupt = self._runtime.running.get(self._thread)
        if self._task.done() or interrupt is None:
            return  # a Tern that is stored already is left to its memory work
        interrupt.cancel()
        with anyio.CancelScope(shield=True):
            await _first(self._stored, self._task)

    def __aiter__(self) -> AsyncIterator[RunEvent]:
        return self._iterate()

    async def _iterate(self) -> AsyncIterator[RunEvent]:
        if self._task is None:
            raise _not_entered()
        while not self._drained:
            event = await self._events.get()
            if event is None:
                self._drained = True
                self._events.put_nowait(None)  # for another one that waits
                break
            yield event
        await self.result()

    async def text(self) -> AsyncIterator[str]:
        """The answer's text, piece by piece where a piece can only be part of the answer, else at once."""
        shown = ""
        async for event in self:
            if isinstance(event, TextDelta) and event.certain and event.node in self._direct:
                shown += event.text
                yield event.text
            elif isinstance(event, Answered) and len(event.answer) > len(shown):
                yield event.answer.removeprefix(shown)

    async def result(self) -> RunResult:
        """The result; raises the run's error."""
        if self._task is None:
            raise _not_entered()
        return await asyncio.shield(self._task)

    def detach(self) -> None:
        """Let the Tern finish after the block is left."""
        self._detached = True

    def _emit(self, event: RunEvent) -> None:
        if isinstance(event, TernStarted):
            self._thread = event.thread
            self._started.set()
        elif isinstance(event, Answered | Paused):
            self._stored.set()
        self._events.put_nowait(event)

    def _done(self, task: asyncio.Task[RunResult]) -> None:
        if task.cancelled():
            self._events.put_nowait(Failed(code="run.cancelled", message="the run was cancelled"))
        elif (error := task.exception()) is not None:
            code = error.code if isinstance(error, AgbossError) else "run.failed"
            message = error.message if isinstance(error, AgbossError) else type(error).__name__
            self._events.put_nowait(Failed(code=code, message=message))
        else:
            result = task.result()
            if not self._thread:
                for pause in result.pauses:
                    self._events.put_nowait(Paused.of(pause))
            if not self._thread and not result.pauses:
                self._events.put_nowait(Answered(answer=result.answer, status=result.status))
            self._events.put_nowait(
                Ended(
                    thread=result.thread,
                    tern=result.tern,
                    status=result.status,
                    answer=result.answer,
                    memory=result.memory,
                )
            )
        self._events.put_nowait(None)


def _not_entered() -> AppStateError:
    return AppStateError(
        "stream.not-entered", "the stream was not entered", "use 'async with app.stream(...) as run', then iterate run"
    )


async def _first(event: asyncio.Event, task: asyncio.Task[RunResult]) -> None:
    """Wait for the event or the end of the task; cancels neither."""
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait((waiting, task), return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()


def direct_agents(graph: Graph) -> frozenset[str]:
    """Agents whose answer can only be the Tern's answer: a finish follows them by a plain edge."""
    nodes = graph.nodes
    return frozenset(
        name
        for name, node in nodes.items()
        if node.spec.kind == "agent" and node.next is not None and nodes[node.next].spec.kind == "finish"
    )
