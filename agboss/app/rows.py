"""Rows of the next view as the model will read them: after the mapper."""

from __future__ import annotations

from collections.abc import Sequence

from agboss.agents import AgentPlan
from agboss_memory.mapper import DefaultLlmMessageMapper, MapRequest, mapped
from agboss_memory.messages import Message
from agboss_memory.render import Row, joined


async def mapped_rows(agent: AgentPlan, thread: str, owner: str | None, tern: int, rows: list[Row]) -> list[Row]:
    """The rows of one user message as the agent's mapper leaves them.

    Rows that it did not touch stay as they are, what it put between them becomes rows of its own. When a row is not
    there as it was, the whole text is one row.
    """
    if not rows or type(agent.mapper) is DefaultLlmMessageMapper:
        return rows
    sent = await mapped(
        agent.mapper,
        MapRequest(
            messages=(Message(role="user", content=joined(rows), agent=agent.name, tern=tern),),
            thread_id=thread,
            owner=owner,
            agent=agent.name,
            model=agent.model.spec.model,
            tern=tern,
        ),
    )
    return aligned(rows, [message.content for message in sent])


def aligned(rows: Sequence[Row], texts: Sequence[str]) -> list[Row]:
    """These texts as rows: the given ones where all of them stand in a text, else one row for each text."""
    if len(texts) != 1:
        return [Row(kind="turn", text=text) for text in texts]
    found: list[Row] = []
    (text,), place = texts, 0
    for row in rows:
        begin = text.find(row.text, place)
        if begin < 0:
            return [Row(kind="turn", text=text)]
        found += [Row(kind="heading", text=text[place:begin])] if begin > place else []
        found.append(row)
        place = begin + len(row.text)
    return [*found, Row(kind="heading", text=text[place:])] if place < len(text) else found
