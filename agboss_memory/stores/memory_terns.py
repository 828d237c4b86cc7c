"""What a Tern of the in-memory store looks like at its beginning and at its end."""

from __future__ import annotations

from datetime import UTC

from agboss_memory.messages import Tern, TernStatus, as_utc
from agboss_memory.records import replace
from agboss_memory.stores.contract import Admission, Commit


def begun(number: int, request: Admission) -> Tern:
    """The Tern as it stands right after its admission."""
    return Tern(
        number=number,
        task=request.task,
        status=TernStatus.RUNNING,
        start=request.start,
        version=request.version,
        config_hash=request.config_hash,
        started_at=as_utc(request.now),
        metadata=request.metadata,
        attachments=request.attachments,
    )


def ended(request: Admission, commit: Commit) -> Tern:
    """The Tern to keep: what was admitted stays, the rest comes from the commit."""
    tern = commit.tern
    finished_at = tern.finished_at
    if not tern.status.finished:
        finished_at = None
    elif finished_at is None:
        finished_at = as_utc(commit.now)
    elif finished_at.tzinfo is not UTC:
        finished_at = as_utc(finished_at)
    admitted = (request.task, request.start, request.version, request.config_hash, request.now, request.attachments)
    given = (tern.task, tern.start, tern.version, tern.config_hash, tern.started_at, tern.attachments)
    metadata = request.metadata if tern.metadata is None else tern.metadata
    unchanged = finished_at is tern.finished_at and metadata is tern.metadata and not tern.usage
    if unchanged and admitted == given and tern.started_at.tzinfo is UTC:
        return tern
    return replace(
        tern,
        task=request.task,
        start=request.start,
        version=request.version,
        config_hash=request.config_hash,
        started_at=as_utc(request.now),
        finished_at=finished_at,
        metadata=metadata,
        attachments=request.attachments,
        usage=(),
    )


def admitted_as(tern: Tern, workflow: str, thread: str, owner: str | None) -> Admission:
    """The admission of a Tern that paused since."""
    return Admission(
        workflow=workflow,
        thread=thread,
        create=False,
        owner=owner,
        task=tern.task,
        start=tern.start,
        version=tern.version,
        config_hash=tern.config_hash,
        metadata=tern.metadata,
        attachments=tern.attachments,
        holder="",
        now=tern.started_at,
    )
