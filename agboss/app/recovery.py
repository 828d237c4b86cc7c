"""Going on with Terns whose process is gone."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

from pydantic import ValidationError

from agboss.components.boundary import StartSpec
from agboss.errors import AgbossError, ThreadBusyError
from agboss.run import RunResult
from agboss.runner import run_tern
from agboss.runtime import RunRequest, Runtime
from agboss_memory.contract import utc_now
from agboss_memory.stores.admissions import Resumable

logger = logging.getLogger("agboss")

_PAGE = 100


async def left_behind(runtime: Runtime) -> bool:
    """Whether there is a resumable Tern."""
    return bool(await runtime.store.resumable(runtime.plan.name, utc_now(), 0, 1))


async def recover(runtime: Runtime) -> tuple[RunResult, ...]:
    """Run every resumable Tern of the workflow to its end, one after the other."""
    results: list[RunResult] = []
    async for found in _resumable(runtime):
        request = request_of(runtime, found)
        if request is None:
            logger.warning("turn %d of thread %s cannot go on: its start is gone", found.tern.number, found.thread)
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
