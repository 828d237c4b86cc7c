"""The Tern that runs in the current context: its own instances and what it may spend."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from injector import Injector, Provider, Scope, ScopeDecorator

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


class _InjectorTernScope(Scope):
    """injector's side of the Tern scope: instances live in the current ``TernScope``."""

    def __init__(self, injector: Injector) -> None:
        super().__init__(injector)

    def get(self, key: Any, provider: Provider[Any]) -> Provider[Any]:
        return _TernProvider(key, provider)


class _TernProvider(Provider[Any]):
    def __init__(self, key: Any, provider: Provider[Any]) -> None:
        self._key = key
        self._provider = provider

    def get(self, injector: Injector) -> Any:
        scope = CURRENT.get()
        if scope is None:
            raise LookupError(f"{self._key} lives in a Tern, and none is running here")
        if self._key not in scope.instances:
            scope.instances[self._key] = self._provider.get(injector)
        return scope.instances[self._key]


tern_scope = ScopeDecorator(_InjectorTernScope)
