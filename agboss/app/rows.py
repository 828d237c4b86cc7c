"""Rows of a view of Terns as the model reads them: after the mapper, each file that is sent on a row of its own."""

from __future__ import annotations

from collections.abc import Sequence

from agboss.tern import ContextRequest
from agboss_memory.contract import MemoryView
from agboss_memory.fit import media_tokens
from agboss_memory.mapper import DefaultLlmMessageMapper, MapRequest, mapped
from agboss_memory.messages import Message
from agboss_memory.notices import part_line
from agboss_memory.render import Row, joined, past_rows, view_rows


async def mapped_rows(request: ContextRequest, view: MemoryView) -> list[Row]:
    """The rows of a view, the task among them unless it is empty.

    Rows that the mapper did not touch stay as they are, what it put between them becomes rows of its own. When a row is
    not there as it was, the whole text is one row.
    """
    agent, exact = request.agent, view.messages or ()
    past = view if view.messages is None else MemoryView(recalled=view.recalled)
    rows = view_rows(past, request.task) if request.task else past_rows(past)
    files = request.attachments if request.task else ()
    if type(agent.mapper) is DefaultLlmMessageMapper and not files and not any(m.attachments for m in exact):
        return [*map(_row, exact), *rows]
    current = Message(role="user", content=joined(rows), agent=agent.name, tern=request.tern, attachments=files)
    given = (*exact, current) if rows else exact
    sent = await mapped(
        agent.mapper,
        MapRequest(
            messages=given,
            thread_id=request.thread,
            owner=request.owner,
            agent=agent.name,
            model=agent.model.spec.model,
            tern=request.tern,
            task=request.task,
            accepts=agent.model.accepts if files else (),
            reader=agent.reader or request.files,
        ),
    )
    found: list[Row] = []
    for place, message in enumerate(sent):
        last = rows and len(sent) == len(given) and place == len(sent) - 1
        found += aligned(rows, message.content) if last else [_row(message)]
        found += [
            Row(kind="file", text=part_line(part), tern=message.tern, tokens=media_tokens(part.kind, part.size))
            for part in message.media
        ]
    return found


def _row(message: Message) -> Row:
    return Row(kind="turn", text=message.content, tern=message.tern)


def aligned(rows: Sequence[Row], text: str) -> list[Row]:
    """The text as rows: the given ones where all of them stand in it, else one row."""
    found: list[Row] = []
    place = 0
    for row in rows:
        begin = text.find(row.text, place)
        if begin < 0:
            return [Row(kind="turn", text=text)]
        found += [Row(kind="heading", text=text[place:begin])] if begin > place else []
        found.append(row)
        place = begin + len(row.text)
    return [*found, Row(kind="heading", text=text[place:])] if place < len(text) else found
