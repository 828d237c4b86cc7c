"""The first stage for one request: from what was asked for to a live Tern, or to a result that is stored already."""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from datetime import datetime
from typing import Any

import agboss.events as events
from agboss.errors import AgbossError
from agboss.journal import Journal
from agboss.models.meter import Meter
from agboss.outcome import stored_result
from agboss.pauses import Pause, open_pauses
from agboss.run import LiveTern, RunResult, Warnings
from agboss.runtime import RunRequest, Runtime
from agboss.tern import AdmitRequest, admit
from agboss_memory.attachments import Attachment
from agboss_memory.contract import utc_now
from agboss_memory.messages import TernStatus
from agboss_memory.records import replace
from agboss_memory.stores.admissions import Claim, Resumable
from agboss_memory.stores.contract import Admission, Store
from agboss_memory.stores.files import FileWrite
from agboss_memory.stores.pauses import DECISION, Resumption

logger = logging.getLogger("agboss")


def admit_tern(runtime: Runtime, request: RunRequest, ticket: int) -> Coroutine[Any, Any, LiveTern | RunResult]:
    """The admitted Tern, or the stored result when its key was used before."""
    if runtime.unbooked or request.attachments:
        return _prepared(runtime, request, ticket)
    return _admitted(runtime, request, ticket)


async def _prepared(runtime: Runtime, request: RunRequest, ticket: int) -> LiveTern | RunResult:
    if runtime.unbooked:
        await runtime.unbooked.book(runtime.store)
    return await (_with_files if request.attachments else _admitted)(runtime, request, ticket)


async def _with_files(runtime: Runtime, request: RunRequest, ticket: int) -> LiveTern | RunResult:
    """The bytes of attachments are there before anybody can see that the Tern runs, wherever its process dies.

    Where they cannot be written, nothing is stored, so that the log names no bytes that are not there.
    """
    live: LiveTern | RunResult | None = None
    try:
        await write_files(runtime.store, request.attachments)
        live = await _admitted(runtime, request, ticket)
        return live
    finally:
        if not isinstance(live, LiveTern):  # a refusal or a repeat leaves nothing behind
            runtime.spawn(_drop_files(runtime.store, request.attachments))


async def write_files(store: Store, attachments: tuple[Attachment, ...]) -> None:
    """Keep the bytes of attachments; those that are there are left alone. Raises StoreError."""
    for item in attachments:
        await store.files.write(FileWrite(data=item.data))


async def _drop_files(store: Store, attachments: tuple[Attachment, ...]) -> None:
    try:
        await store.drop_files(tuple(item.id for item in attachments))
    except AgbossError as error:
        logger.warning("attachments of a turn that was not admitted are left: %s", error.message)


async def _admitted(runtime: Runtime, request: RunRequest, ticket: int) -> LiveTern | RunResult:
    plan, held, resume = runtime.plan, runtime.windows.held(request.thread), request.resume
    now = utc_now()
    wait = 0 if runtime.policy == "reject" else runtime.queue_timeout
    claim, resumption = (None, None) if resume is None else _going_on(runtime, request, resume, now, ticket, wait)
    admission = Admission(
        workflow=plan.name,
        thread=request.thread,
        create=request.create,
        owner=request.owner,
        idempotency_key=request.idempotency_key,
        task=request.task,
        start=request.start,
        version=plan.version,
        config_hash=plan.config_hash,
        metadata=request.metadata,
        holder=runtime.holder,
        now=now,
        window=plan.window,
        known=None if held is None else held.version,
        queue=wait > 0,
    )
    if ticket or request.first_contact or request.attachments:
        attachments = tuple(item.record() for item in request.attachments)
        admission = replace(admission, ticket=ticket, first_contact=request.first_contact, attachments=attachments)
    result = await admit(
        AdmitRequest(
            admission=admission,
            store=runtime.store,
            windows=runtime.windows,
            held=held,
            queue=runtime.queue,
            wait=wait,
            repeat_wait=runtime.queue_timeout,
            claim=claim,
            resumption=resumption,
        )
    )
    admitted = result.admitted
    if admitted.tern is not None:
        pauses: tuple[Pause, ...] = ()
        if admitted.tern.status is TernStatus.PAUSED:
            kept = await runtime.store.steps(admitted.key, admitted.number)
            pauses = open_pauses(kept, admitted.thread, admitted.number)
        return stored_result(plan, admitted.thread, admitted.tern, pauses)
    steps, refused, decided = (), (), 0
    if admitted.resumed:
        refused = runtime.unbooked.take_refused(admitted)
        steps = await runtime.store.steps(admitted.key, admitted.number)
        decided = sum(step.kind == DECISION for step in steps)
    warnings = Warnings(admitted.thread, admitted.number, request.emit)
    meter = Meter(
        plan.limits,
        plan.cost_of,
        warnings,
        resumes=admitted.resumes,
        decided=decided,
        memory_timeout=runtime.memory_timeout,
    )
    live = LiveTern(
        plan=plan,
        store=runtime.store,
        thread=admitted.thread,
        key=admitted.key,
        number=admitted.number,
        fence=admitted.fence,
        owner=request.owner,
        task=request.task,
        start=request.start,
        value=request.value,
        started_at=now if resume is None else resume.tern.started_at,
        window=result.window,
        meter=meter,
        journal=Journal(runtime.store, admitted.key, admitted.number, admitted.fence, meter, steps, refused),
        warnings=warnings,
    )
    live.metadata = request.metadata
    live.emit = request.emit
    live.attachments = admission.attachments if resume is None else resume.tern.attachments
    live.pending = admitted.pending
    live.resumes, live.stalled, live.stop = admitted.resumes, admitted.stalled, admitted.stop
    live.views = [] if runtime.record_views else None
    _note(live)
    return live


def _going_on(
    runtime: Runtime, request: RunRequest, resume: Resumable, now: datetime, ticket: int, wait: float
) -> tuple[Claim | None, Resumption | None]:
    """What is asked of the store instead of a new Tern: one that nobody runs, or one that paused and has its answers."""
    plan, number = runtime.plan, resume.tern.number
    if request.answers is None:
        return Claim(key=resume.key, number=number, holder=runtime.holder, now=now, window=plan.window), None
    return None, Resumption(
        key=resume.key,
        number=number,
        holder=runtime.holder,
        now=now,
        thread=request.thread,
        workflow=plan.name,
        steps=request.answers,
        window=plan.window,
        queue=wait > 0,
        ticket=ticket,
    )


def _note(live: LiveTern) -> None:
    """The first event, and warnings that hold before anything has run."""
    if live.emit is not None:
        live.emit(events.TernStarted(node=live.start, thread=live.thread, tern=live.number))
    if live.resumes and not live.stop:
        live.warn(f"the turn goes on after its process stopped (for the {live.resumes}. time)")
    for line in live.plan.offline:
        live.warn(line)
    before = live.window.terns[-1] if live.window.terns else None
    if before is not None and before.version == live.plan.version and before.config_hash != live.plan.config_hash:
        live.warn(f"workflow {live.plan.name!r} changed but still calls itself version {live.plan.version!r}")
