"""Going on with Terns whose process is gone, and with memory work that it left."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

from pydantic import ValidationError

from agboss.app.holding import carried, held
from agboss.components.boundary import StartSpec
from agboss.errors import AgbossError, ThreadBusyError, ThreadDeletedError
from agboss.queue import thread_line
from agboss.run import RunResult
from agboss.runner import run_tern
from agboss.runtime import RunRequest, Runtime
from agboss.tern import UPDATE_TRIES, MemoryRequest, update_memory
from agboss_memory.compaction import TRIES
from agboss_memory.contract import utc_now
from agboss_memory.stores.admissions import Owing, Resumable
from agboss_memory.stores.contract import ThreadState
from agboss_memory.wording import quoted

logger = logging.getLogger("agboss")

MOST_THREADS = 100
"""Threads whose memory work one call catches up with; what is left waits for the next call, or the thread's next Tern."""

_PAGE = 100


async def left_behind(runtime: Runtime) -> bool:
    """Whether there is a resumable Tern, or memory work that nobody does."""
    name, now = runtime.plan.name, utc_now()
    return bool(await runtime.store.resumable(name, now, 0, 1) or await runtime.store.owing(name, now, 0, 1))


async def recover(runtime: Runtime) -> tuple[RunResult, ...]:
    """Run every resumable Tern of the workflow to its end, one after the other."""
    results: list[RunResult] = []
    async for found in _resumable(runtime):
        request = request_of(runtime, found)
        if request is None:
            logger.warning("turn %d of thread %s cannot go on: its start is gone", found.tern.number, found.thread)
            continue
        if lost := await _lost_files(runtime, found):
            names = ", ".join(map(quoted, lost))
            logger.warning(
                "turn %d of thread %s cannot go on: the bytes of %s are not there; a repeat of its key brings them, "
                "another turn closes it",
                found.tern.number,
                found.thread,
                names,
            )
            continue
        try:
            results.append(await run_tern(runtime, request))
        except ThreadBusyError:  # another process was faster
            continue
        except AgbossError as error:
            if not isinstance(error.run, RunResult):
                raise
            results.append(error.run)
    return tuple(results)


async def _lost_files(runtime: Runtime, found: Resumable) -> list[str]:
    """Names of the Tern's attachments whose bytes were not written before its process died, or are damaged."""
    names = {item.id: item.name for item in found.tern.attachments}
    return [names[lost] for lost in await asyncio.to_thread(runtime.store.files.lost, names)] if names else []


async def catch_up(runtime: Runtime) -> None:
    """Do the memory work that is left in idle threads, in each as much as one Tern does.

    A failed try counts as one; the last one is left to the thread's next Tern, so that nothing is given up here.
    """
    after = worked = 0
    while page := await runtime.store.owing(runtime.plan.name, utc_now(), after, _PAGE):
        for found in page:
            worked += await _catch_up(runtime, found)
            if worked == MOST_THREADS:
                return
        after = page[-1].key


async def _catch_up(runtime: Runtime, found: Owing) -> bool:
    """Says whether there was something to do in this thread."""
    line = thread_line(found.thread)
    if not runtime.queue.take(line):  # a Tern of this App has it, and does its work
        return False
    try:
        async with held(runtime, found.key) as state:
            return state is not None and await _remember(runtime, state)
    except ThreadDeletedError:
        return False
    finally:
        runtime.queue.leave(line)


async def _remember(runtime: Runtime, state: ThreadState) -> bool:
    work = tuple(item for item in state.pending if item.attempts < UPDATE_TRIES - 1)
    due = tuple(block for block in state.window.blocks if block.state == "due" and block.attempts < TRIES - 1)
    if runtime.plan.compaction is None:
        due = ()
    if not (work or due):
        return False
    async with carried(runtime, state, "recover") as live:
        await update_memory(MemoryRequest(live=live, windows=runtime.windows, work=work, due=due))
    return True


async def _resumable(runtime: Runtime) -> AsyncIterator[Resumable]:
    after = 0
    while page := await runtime.store.resumable(runtime.plan.name, utc_now(), after, _PAGE):
        for found in page:
            yield found
        after = page[-1].key


def request_of(runtime: Runtime, found: Resumable) -> RunRequest | None:
    """The run as it was asked for, None when its start is no longer there or takes another input."""
    tern = found.tern
    start = runtime.plan.starts.get(tern.start)
    if start is None:
        return None
    try:
        value = _value(start, tern.task)
    except ValidationError:
        return None
    return RunRequest(
        thread=found.thread,
        create=False,
        first_contact=False,
        owner=found.owner,
        idempotency_key=found.idempotency_key,
        start=tern.start,
        value=value,
        task=tern.task,
        metadata=tern.metadata,
        resume=found,
    )


def _value(start: StartSpec, task: str) -> object:
    return task if start.input is None else start.input.model_validate_json(task)
