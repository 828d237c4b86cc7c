"""What the model will see next, and what a person may do about it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from agboss.admin.compacting import PATIENCE, stream
from agboss.admin.marking import Mark, marks
from agboss.admin.page import Page, Visit, failed
from agboss.admin.sessions import Note
from agboss.admin.showing import pretty, url
from agboss.admin.window import parts
from agboss.app import App, MemoryRow, WorkingMemory
from agboss.errors import AgbossError, InvalidInputError
from agboss.server.endpoint import whole
from agboss.server.problems import ServerError, problem_of
from agboss_memory.config import parse_memory_config
from agboss_memory.records import Record
from agboss_memory.replay import WhatIf

SYSTEM = -1
"""Number of the system prompt."""

SUMMARIES = 20
"""Summaries of a page."""


class Piece(Record, kw_only=True):
    """One numbered piece of a conversation.

    Attributes:
        title: What it is.
        row: As the view shows it, None = it is in no row.
        stored: Its text as it is stored; None = the view's text is all there is.
        reason: Why the view leaves it out, or empty.
    """

    title: str
    row: MemoryRow | None = None
    stored: str | None = None
    reason: str = ""


async def memory_pane(
    visit: Visit, app: App, thread: str, agent: str | None, before: int | None = None
) -> dict[str, Any]:
    """What ``memory.html`` shows: the view of an agent; a view that fails is told and the page goes on."""
    names = [one.name for one in await app.agents()]
    chosen = agent if agent is not None else next(iter(names), None)
    pane: dict[str, Any] = {
        "agents": names,
        "agent": chosen,
        "memory": None,
        "problem": None,
        "summaries": (),
        "older_summaries": None,
    }
    if chosen is None:  # a workflow of actions alone
        return pane
    try:
        memory = await app.memory.view(thread, chosen, owner=visit.owner)
        summaries = await app.memory.summaries(
            thread, chosen, owner=visit.owner, all_states=True, before=before, limit=SUMMARIES + 1
        )
    except AgbossError as error:
        if isinstance(error, InvalidInputError):
            raise
        return pane | {"problem": problem_of(error)}
    return pane | {
        "memory": memory,
        "summaries": summaries[-SUMMARIES:],
        "older_summaries": summaries[-SUMMARIES].first if len(summaries) > SUMMARIES else None,
        "window": parts(memory),
        "config": pretty(dict(memory.config)) if has_config(memory) else '{\n  "kind": "summarizing_window"\n}',
    }


def has_config(memory: WorkingMemory) -> bool:
    """Whether the agent has a memoryConfig, and so a conversation of numbered messages of its own."""
    return memory.config.get("kind") == memory.kind


async def compact(visit: Visit) -> Response:
    """Summarise now, in a task of its own. A short one has ended when the next page is shown; that page watches others."""
    thread, agent = visit.call.path("thread"), visit.field("agent") or None
    back = url("threads", thread, agent=agent)
    try:
        place = await visit.served.place(thread, agent, visit.owner)
    except AgbossError as error:
        return visit.redirect(back, failed(error))
    job = visit.admin.compactions.start(place, thread, visit.owner, visit.session)
    if job.task is not None:
        await asyncio.wait({job.task}, timeout=PATIENCE)
    return visit.redirect(back)


async def compact_events(visit: Visit) -> Response:
    """``/admin/threads/{thread}/compact/events``: how far the Compact of a thread is."""
    thread = visit.call.path("thread")
    place = await visit.served.place(thread, visit.call.text("agent"), visit.owner)
    return stream(visit.admin.compactions.running(place, thread))


async def undo(visit: Visit) -> Response:
    """Retire a summary."""
    thread, agent = visit.call.path("thread"), visit.field("agent") or None
    back = url("threads", thread, agent=agent)
    try:
        number = whole("summary", visit.field("summary"), least=1)
        place = await visit.served.place(thread, agent, visit.owner)
        async with visit.served.app(place.workflow) as app:
            retired = await app.memory.undo(thread, place.agent, summary=number, owner=visit.owner)
    except AgbossError as error:
        return visit.redirect(back, failed(error))
    if retired is None:
        return visit.redirect(back, Note(text="That summary is not active any more.", failed=True))
    what = "turns" if retired.kind == "turns" else "messages"
    return visit.redirect(back, Note(text=f"Undone: {what} {retired.first} to {retired.last} are seen again."))


async def what_if(visit: Visit) -> Response:
    """The same conversation under another memoryConfig, beside what it is today."""
    thread, agent, text = visit.call.path("thread"), visit.field("agent") or None, visit.field("config")
    place = await visit.served.place(thread, agent, visit.owner)
    now: WhatIf | None = None
    other: WhatIf | None = None
    found: Sequence[Mark] = ()
    async with visit.served.app(place.workflow) as app:
        memory = await app.memory.view(thread, place.agent, owner=visit.owner)
        try:
            other = await app.memory.what_if(thread, parse_memory_config(text), place.agent, owner=visit.owner)
            if has_config(memory):
                now = await app.memory.what_if(thread, dict(memory.config), place.agent, owner=visit.owner)
        except AgbossError as error:
            found = marks(error, text)
    return visit.render(
        "what_if.html",
        200 if other is not None else 400,
        thread=thread,
        agent=memory.agent,
        memory=memory,
        config=text,
        now=now,
        other=other,
        marks=found,
    )


async def show(visit: Visit) -> Response:
    """``/admin/threads/{thread}/memory?number=``: one piece as a whole; a number that is not there is no error."""
    thread = visit.call.path("thread")
    asked = (visit.call.text("number") or str(SYSTEM)).strip()
    place = await visit.served.place(thread, visit.call.text("agent"), visit.owner)
    async with visit.served.app(place.workflow) as app:
        names = [one.name for one in await app.agents()]
        agent = place.agent if place.agent is not None else next(iter(names), None)
        memory = await app.memory.view(thread, agent, owner=visit.owner)
        number = _number(asked)
        piece = None if number is None else await _piece(visit, app, memory, number)
    if visit.call.text("download") is not None and piece is not None:
        return _download(piece, asked)
    return visit.render(
        "piece.html", thread=thread, agent=memory.agent, memory=memory, asked=asked, number=number, piece=piece
    )


def _number(text: str) -> int | None:
    try:
        return whole("number", text, least=-(10**9))
    except ServerError:
        return None


async def _piece(visit: Visit, app: App, memory: WorkingMemory, number: int) -> Piece | None:
    if number == SYSTEM:
        row = MemoryRow(
            type="CHAT",
            role="system",
            sequence_num=SYSTEM,
            tokens=memory.system_prompt_tokens,
            content=memory.system_prompt,
            reason="the agent's instructions",
        )
        return Piece(title="System prompt", row=row)
    row = next((one for one in memory.messages if one.sequence_num == number and number), None)
    if number < 0:
        return None if row is None else Piece(title="Summary", row=row)
    messages = has_config(memory)
    stored = await (_message if messages else _tern)(visit, app, memory, number)
    if row is None and stored is None:
        return None
    reason = "" if row is not None else await _absence(visit, app, memory, number)
    return Piece(title=f"{'Message' if messages else 'Turn'} {number}", row=row, stored=stored, reason=reason)


async def _absence(visit: Visit, app: App, memory: WorkingMemory, number: int) -> str:
    """Why no row of the view shows a number."""
    owner, after = visit.owner, number + 1
    for one in await app.memory.summaries(memory.thread, memory.agent, owner=owner, before=after, limit=1):
        if number <= one.last:
            return f"the summary of {one.first} to {one.last} stands for it"
    return next((one.reason for one in memory.left_out if one.first <= number <= one.last), "not in the view")


async def _message(visit: Visit, app: App, memory: WorkingMemory, number: int) -> str | None:
    found = await app.memory.message(memory.thread, number, memory.agent, owner=visit.owner)
    if found is None:
        return None
    calls = [f"→ {call.name}({call.arguments})" for call in found.tool_calls]
    return "\n".join([*([found.content] if found.content or not calls else []), *calls])


async def _tern(visit: Visit, app: App, memory: WorkingMemory, number: int) -> str | None:
    found = await app.threads.terns(memory.thread, before=number + 1, limit=1, owner=visit.owner) if number else ()
    if not found or found[0].number != number:
        return None
    return f"Q: {found[0].task}\nA: {found[0].answer}"


def _download(piece: Piece, number: str) -> Response:
    text = piece.stored if piece.stored is not None else "" if piece.row is None else piece.row.shown
    name = "".join(char for char in number if char in "-0123456789")
    return Response(
        text.encode("utf-8", "replace"),
        media_type="text/plain; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="message{name}.txt"'},
    )


PAGES = (
    Page(path="/threads/{thread}/memory", handler=show),
    Page(path="/threads/{thread}/compact", handler=compact, method="POST"),
    Page(path="/threads/{thread}/compact/events", handler=compact_events),
    Page(path="/threads/{thread}/undo", handler=undo, method="POST"),
    Page(path="/threads/{thread}/what-if", handler=what_if, method="POST"),
)
