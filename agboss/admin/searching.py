"""Find threads: by id, by owner, and by what was said lately. Each has a bound on what it reads."""

from __future__ import annotations

from agboss.admin.page import Visit
from agboss.admin.showing import around
from agboss.app import App
from agboss.errors import InvalidInputError, UnknownThreadError
from agboss_memory.messages import Tern, TernStatus
from agboss_memory.records import Record
from agboss_memory.stores.contract import ThreadInfo

THREADS = 25
"""Threads of a page."""

GLANCE = 20
"""Newest Terns of a thread in which a text is looked for."""

LOOKED_THROUGH = 100
"""Newest threads in which a text is looked for."""

CHARACTERS = 100_000
"""Characters of a task or an answer in which a text is looked for."""


class Glance(Record, kw_only=True):
    """A thread in the list.

    Attributes:
        info: The thread.
        newest: The newest Tern, None = there is none.
        said: What was found, with what stands around it, or empty.
        tern: The Tern in which it was said, 0 = none.
        waits: Whether a Tern waits for a decision; it need not be the newest.
    """

    info: ThreadInfo
    newest: Tern | None
    said: str = ""
    tern: int = 0
    waits: bool = False

    @property
    def status(self) -> str:
        """That a Tern runs, or that one waits for a decision, else how the newest one ended."""
        if self.info.running:
            return "running"
        if self.waits:
            return "paused"
        return str(self.newest.status) if self.newest else "empty"


class Found(Record, kw_only=True):
    """One page of threads.

    Attributes:
        rows: The threads.
        how: What was found: ``all``, ``id``, ``owner``, ``text`` or ``nothing``.
        following: The last thread of this page when there are more, else None.
    """

    rows: tuple[Glance, ...]
    how: str
    following: str | None = None


async def found(visit: Visit, app: App, asked: str, after: str | None, *, in_texts: bool) -> Found:
    """The thread of an id, else the threads of an owner, else those in which something was said."""
    try:
        if not asked:
            return await _listed(app, visit.owner, after, "all")
        if not in_texts:
            known = await _by_id(visit, app, asked) if after is None else None
            if known is not None:
                return Found(rows=(known,), how="id")
            if visit.owner in (None, asked):
                owned = await _listed(app, asked, after, "owner")
                if owned.rows:
                    return owned
    except (InvalidInputError, UnknownThreadError):  # no thread or owner can be called so, or it is gone
        if not asked:
            return Found(rows=(), how="all")
    rows = await _by_text(visit, app, asked)
    return Found(rows=rows, how="text" if rows else "nothing")


async def _listed(app: App, owner: str | None, after: str | None, how: str) -> Found:
    if after is not None:
        await app.threads.get(after, 0, owner=owner)  # one of another owner would tell that it exists
    infos = await app.threads.list(owner=owner, after=after, limit=THREADS + 1)
    rows = [await _glance(app, info) for info in infos[:THREADS]]
    return Found(rows=tuple(rows), how=how, following=infos[THREADS - 1].id if len(infos) > THREADS else None)


async def _by_id(visit: Visit, app: App, asked: str) -> Glance | None:
    try:
        thread = await app.threads.get(asked, GLANCE, owner=visit.owner)
    except (InvalidInputError, UnknownThreadError):
        return None
    newest = thread.terns[-1] if thread.terns else None
    info = ThreadInfo(
        id=thread.id,
        workflow=thread.workflow,
        owner=thread.owner,
        created_at=thread.created_at,
        updated_at=thread.created_at if newest is None else newest.finished_at or newest.started_at,
        terns=0 if newest is None else newest.number,
        running=any(tern.status is TernStatus.RUNNING for tern in thread.terns),
        spend=thread.spend,
    )
    return Glance(info=info, newest=newest, waits=await _waits(app, info))


async def _by_text(visit: Visit, app: App, asked: str) -> tuple[Glance, ...]:
    rows: list[Glance] = []
    for info in await app.threads.list(owner=visit.owner, limit=LOOKED_THROUGH):
        newest = await _newest(app, info, GLANCE)
        for tern in reversed(newest):
            said = around(tern.task[:CHARACTERS], asked) or around(tern.answer[:CHARACTERS], asked)
            if said:
                waits = await _waits(app, info)
                rows.append(Glance(info=info, newest=newest[-1], said=said, tern=tern.number, waits=waits))
                break
        if len(rows) == THREADS:
            break
    return tuple(rows)


async def _glance(app: App, info: ThreadInfo) -> Glance:
    return Glance(info=info, newest=next(iter(await _newest(app, info, 1)), None), waits=await _waits(app, info))


async def _waits(app: App, info: ThreadInfo) -> bool:
    try:
        return bool(info.terns and await app.threads.pauses(info.id))
    except UnknownThreadError:  # deleted meanwhile
        return False


async def _newest(app: App, info: ThreadInfo, limit: int) -> tuple[Tern, ...]:
    if not info.terns:
        return ()
    try:
        return await app.threads.terns(info.id, limit=limit)
    except UnknownThreadError:  # deleted meanwhile
        return ()
