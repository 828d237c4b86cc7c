"""injector's part: it holds what is provided, makes each thing once per App or Tern, and is loaded when there is any."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from injector import CallableProvider, Injector, InstanceProvider, Provider, Scope, ScopeDecorator, singleton

from agboss.container.scope import CURRENT


class Bindings:
    """What is provided, by key."""

    def __init__(self) -> None:
        self._injector: Any = Injector(auto_bind=False)

    def get(self, key: Any) -> Any:
        """What is provided under ``key``."""
        return self._injector.get(key)

    def value(self, key: Any, made: Any) -> None:
        """Provide what is made already."""
        self._injector.binder.bind(key, to=InstanceProvider(made))

    def maker(self, key: Any, make: Callable[[], Any], *, per_tern: bool) -> None:
        """Provide what ``make`` gives, made when it is first asked for: once per Tern, else once per App."""
        scope = _per_tern if per_tern else singleton
        self._injector.binder.bind(key, to=CallableProvider(make), scope=scope)


class _TernScope(Scope):
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


_per_tern = ScopeDecorator(_TernScope)
