"""Compact in a task of its own: the page only watches, and a browser that leaves stops nothing."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import AsyncGenerator

import anyio
from starlette.responses import Response, StreamingResponse

from agboss.admin.sessions import Note
from agboss.app import CompactProgress, WorkingMemory
from agboss.errors import AgbossError, ThreadBusyError
from agboss.server.problems import problem_of, unexpected
from agboss.server.served import Place, Served
from agboss.server.sse import PING, STREAM
from agboss_memory.contract import CompressReport

MOST_ENDED = 200
"""Compactions that have ended and of which somebody is still to be told; the oldest is forgotten first."""

PATIENCE = 1.0
"""Seconds that the form waits for the end: who needs no more is told at once, also without the script."""

Key = tuple[str, str]
"""Workflow and thread: two Compacts of one thread would only wait for each other."""


class CompactJob:
    """One Compact.

    Args:
        agent: Whose memory; None = the only one.
        session: The browser that asked, which is told the end.
    """

    def __init__(self, agent: str | None, session: str) -> None:
        self.agent = agent
        self.session = session
        self.progress = CompactProgress()
        self.note: Note | None = None
        self.task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._version = 0

    @property
    def ended(self) -> bool:
        """Whether it is known how it ended."""
        return self.note is not None

    @property
    def text(self) -> str:
        """How far it is, in words."""
        now = self.progress
        done = f"{now.summaries} of {now.blocks} blocks done" if now.blocks else f"{now.summaries} summaries written"
        return f"Compacting: {done}, {now.calls} model calls so far."

    def hear(self, progress: CompactProgress) -> None:
        """A step was made."""
        self.progress = progress
        self._wake()

    def end(self, note: Note) -> None:
        """It is over."""
        self.note = note
        self._wake()

    async def told(self) -> AsyncGenerator[str]:
        """Server-sent events: the state now, then each change, to the end."""
        seen = -1
        while not (self.ended and seen == self._version):
            if seen != self._version:  # something may have changed while the last piece was sent
                seen = self._version
                state = {"text": self.text, "value": self.progress.summaries, "max": self.progress.blocks}
                yield f"event: {'done' if self.ended else 'progress'}\ndata: {json.dumps(state)}\n\n"
                continue
            with anyio.move_on_after(PING) as waiting:
                await self._changed.wait()
            if waiting.cancelled_caught:
                yield ": ping\n\n"

    def _wake(self) -> None:
        self._version += 1
        self._changed.set()
        self._changed = asyncio.Event()


class Compactions:
    """All that run, and how the latest ended.

    Args:
        served: Gives the App of a thread.
    """

    def __init__(self, served: Served) -> None:
        self._served = served
        self._jobs: OrderedDict[Key, CompactJob] = OrderedDict()

    def running(self, place: Place, thread: str) -> CompactJob | None:
        """The one that works on a thread."""
        job = self._jobs.get((place.workflow, thread))
        return None if job is None or job.ended else job

    def start(self, place: Place, thread: str, owner: str | None, session: str) -> CompactJob:
        """Begin, or join the one that works on the thread already."""
        known = self.running(place, thread)
        if known is not None:
            return known
        job = CompactJob(place.agent, session)
        self._jobs[place.workflow, thread] = job
        self._jobs.move_to_end((place.workflow, thread))
        job.task = asyncio.create_task(self._run(job, place, thread, owner))
        while len(self._jobs) > MOST_ENDED and next(iter(self._jobs.values())).ended:
            self._jobs.popitem(last=False)
        return job

    def take_note(self, place: Place, thread: str, session: str) -> Note | None:
        """How the last one ended, once, to the browser that asked for it."""
        key = (place.workflow, thread)
        job = self._jobs.get(key)
        if job is None or job.note is None or job.session != session:
            return None
        del self._jobs[key]
        return job.note

    async def finish(self, grace: float) -> None:
        """Let them end within ``grace`` seconds, then stop them: what was written stays."""
        tasks = {job.task for job in self._jobs.values() if job.task is not None and not job.task.done()}
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=grace)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)

    async def _run(self, job: CompactJob, place: Place, thread: str, owner: str | None) -> None:
        try:
            async with self._served.app(place.workflow) as app:
                before = await app.memory.view(thread, place.agent, owner=owner)
                report = await app.memory.compact(thread, place.agent, owner=owner, progress=job.hear)
                after = await app.memory.view(thread, place.agent, owner=owner)
        except AgbossError as error:
            job.end(_failure(error, job))
        except asyncio.CancelledError:
            job.end(Note(text="Compact was stopped with the server; what was written stays.", failed=True))
            raise
        except Exception as error:
            job.end(_failure(unexpected(error), job))
        else:
            job.end(Note(text=_success(report, before, after)))


def stream(job: CompactJob | None) -> Response:
    """The events of a Compact; without one, that there is nothing to wait for."""
    if job is None:
        return Response("event: done\ndata: {}\n\n", media_type=STREAM)
    return StreamingResponse(job.told(), media_type=STREAM, headers={"X-Accel-Buffering": "no"})


def _success(report: CompressReport, before: WorkingMemory, after: WorkingMemory) -> str:
    if not report.summaries and not report.compressed_results:
        return "There was nothing to compact."
    made = [_counted(len(report.summaries), "new summary stands", "new summaries stand") + " for "]
    made[0] += _counted(report.compressed_messages, *_WHAT["turns" if before.kind == "turns" else "messages"])
    if not report.summaries:
        made = []
    if report.compressed_results:
        made.append(_counted(report.compressed_results, "tool result is", "tool results are") + " shown as stubs")
    return f"Compacted: {', '.join(made)}. The view went from {before.total_tokens:,} to {after.total_tokens:,} tokens."


_WHAT = {"turns": ("Tern", "Terns"), "messages": ("message", "messages")}


def _counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _failure(error: AgbossError, job: CompactJob) -> Note:
    problem = problem_of(error)
    if isinstance(error, ThreadBusyError):
        text = "A Tern is running in this thread, so nothing was compacted."
        return Note(text=text, failed=True, code=problem.code, hint="Wait for its answer, or cancel it; then Compact.")
    kept = job.progress.summaries
    rest = (
        f"What was written before stays: {_counted(kept, 'summary', 'summaries')}." if kept else "Nothing was changed."
    )
    text = f"Compact failed: {problem.detail.rstrip('.')}. {rest}"
    return Note(text=text, failed=True, code=problem.code, hint=problem.hint)
