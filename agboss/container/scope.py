"""The Tern that runs in the current context: its own instances and what it may spend."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from agboss_memory.records import Struct


class TernScope(Struct, eq=False):
    """What lives as long as one Tern.

    Attributes:
        thread_id: The thread.
        meter: Bounds and books the Tern's calls.
        instances: Objects of Tern scope, by key.
        ended: Whether the Tern is over; work that it started may still see the scope.
    """

    thread_id: str
    meter: Any = None
    instances: dict[Any, Any] = {}
    ended: bool = False


CURRENT: ContextVar[TernScope | None] = ContextVar("agboss_tern", default=None)
