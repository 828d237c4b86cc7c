"""Tickets of the in-memory store: Terns that wait for their thread, first come first served."""

from __future__ import annotations

from datetime import datetime, timedelta

from agboss_memory.messages import as_utc
from agboss_memory.records import Struct
from agboss_memory.stores.contract import Enqueue
from agboss_memory.stores.lease import lease_holds


class _Ticket(Struct):
    line: tuple[str, str]
    holder: str
    until: datetime


class Tickets:
    """All tickets of one store."""

    def __init__(self) -> None:
        self._next = 1
        self._tickets: dict[int, _Ticket] = {}  # ids rise: the order is that of arrival

    def take(self, request: Enqueue) -> int:
        """A ticket at the end of the line."""
        ticket = self._next
        self._next += 1
        until = as_utc(request.now) + timedelta(seconds=request.lease_seconds)
        self._tickets[ticket] = _Ticket((request.workflow, request.thread), request.holder, until)
        return ticket

    def ahead(self, workflow: str, thread: str, now: datetime, holder: str) -> bool:
        """Whether another App has waited longer than ``holder``; within one App its own line decides.

        Tickets before that of the first one who still waits are removed.
        """
        for ticket, item in tuple(self._tickets.items()):
            if item.line == (workflow, thread):
                if lease_holds(item.holder, item.until, now, ""):
                    return item.holder != holder
                del self._tickets[ticket]
        return False

    def stands(self, workflow: str, thread: str, ticket: int) -> bool:
        """Whether a ticket is still in the line."""
        item = self._tickets.get(ticket)
        return item is not None and item.line == (workflow, thread)

    def give_back(self, ticket: int) -> tuple[str, str] | None:
        """Remove a ticket; whose line it stood in."""
        item = self._tickets.pop(ticket, None)
        return None if item is None else item.line

    def renew(self, holder: str, until: datetime) -> None:
        """Extend the tickets of a holder."""
        for item in self._tickets.values():
            if item.holder == holder:
                item.until = until
