"""The reads of the store that join aggregates. They run on the connection's thread."""

from __future__ import annotations

import sqlite3

from agboss_memory.contract import Conversation
from agboss_memory.messages import Tern
from agboss_memory.stores.contract import (
    BookedUsage,
    MessagePage,
    TernPage,
    ThreadRef,
    ThreadState,
    Window,
    WindowSpec,
)
from agboss_memory.stores.sqlite import blocks, conversations, messages, summaries, terns, threads, usage, work


def window(connection: sqlite3.Connection, key: int, before: int, spec: WindowSpec) -> Window:
    """The newest part of a thread, below a number."""
    newest = terns.newest_finished(connection, key, before, spec.terns) if spec.terns > 0 else ()
    due = blocks.due(connection, key)
    if newest:
        touching = blocks.touching(connection, key, newest[0].number, newest[-1].number)
        seen = {block.last for block in touching}
        missing = [block for block in due if block.last not in seen]
        due = tuple(sorted((*missing, *touching), key=lambda block: block.last)) if missing else touching
    return Window(
        terns=newest,
        summaries=summaries.latest_turns(connection, key, before, spec.summaries) if spec.summaries > 0 else (),
        blocks=due,
        planned_to=blocks.planned_to(connection, key),
    )


def conversation(connection: sqlite3.Connection, key: int, agent: str, limit: int) -> Conversation:
    """The newest part of one agent's conversation."""
    last, live_tokens, uncounted = conversations.sums(connection, key, agent)
    return Conversation(
        messages=messages.page(connection, key, MessagePage(agent=agent, limit=limit)),
        summaries=summaries.of_agent(connection, key, agent, all_states=False) if agent else (),
        last=last,
        live_tokens=live_tokens,
        uncounted=uncounted,
    )


def state(connection: sqlite3.Connection, ref: ThreadRef, spec: WindowSpec) -> ThreadState:
    """A thread as it stands."""
    return state_of(connection, threads.named(connection, ref), spec)


def state_of(connection: sqlite3.Connection, row: threads.ThreadRow, spec: WindowSpec) -> ThreadState:
    """The state of a thread that was read."""
    return ThreadState(
        info=row.info(),
        key=row.key,
        fence=row.fence,
        version=row.version,
        window=window(connection, row.key, row.last_seq + 1, spec),
        pending=work.pending(connection, row.key),
    )


def terns_with_usage(connection: sqlite3.Connection, key: int, asked: TernPage) -> tuple[Tern, ...]:
    """A page of Terns, each with what was booked for it."""
    return tuple(item for item, _ in terns_and_bookings(connection, key, asked))


def terns_and_bookings(
    connection: sqlite3.Connection, key: int, asked: TernPage
) -> list[tuple[Tern, list[BookedUsage]]]:
    """A page of Terns with their usage, and the same usage with its step keys."""
    rows = terns.page(connection, key, asked)
    if not rows:
        return []
    late = usage.of_terns(connection, key, rows[0][0], rows[-1][0])
    found: list[tuple[Tern, list[BookedUsage]]] = []
    for row in rows:
        number, stored = terns.number_and_booked(row)
        booked = [*usage.decode(stored), *late.get(number, ())]
        found.append((terns.typed(row, tuple(item.record for item in booked)), booked))
    return found
