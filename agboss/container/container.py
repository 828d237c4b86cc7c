"""The container: injector with everything it leaves out (async resources, checks, a Tern scope)."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from agboss.components.injection import Provider
from agboss.components.keys import Dependency, InjectableSpec, Key, key_name
from agboss.container.check import FRAMEWORK_KEYS
from agboss.container.scope import TernScope
from agboss_memory.contract import MemoryModel

if TYPE_CHECKING:
    from agboss.container.bindings import Bindings

MemoryModelFor = Callable[[str, Any], MemoryModel]


class Container:
    """Builds strategies, tools and actions from checked providers.

    Args:
        providers: All providers by key, as ``Checker`` left them.
        memory_model: Makes the ``MemoryModel`` of a component, by its name and its class or function.
    """

    def __init__(self, providers: Mapping[Key, Provider], memory_model: MemoryModelFor) -> None:
        self._providers = dict(providers)
        self._memory_model = memory_model
        self._tern_factories = [
            provider for provider in self._providers.values() if provider.scope == "tern" and provider.kind == "factory"
        ]
        for provider in self._providers.values():
            if provider.kind == "class" or (provider.kind == "factory" and provider.scope == "tern"):
                self._held.maker(provider.key, self._maker(provider), per_tern=provider.scope == "tern")
            elif provider.kind == "value":
                self._held.value(provider.key, provider.target)

    @cached_property
    def _held(self) -> Bindings:
        from agboss.container.bindings import Bindings  # a workflow that provides nothing does without injector

        return Bindings()

    async def open(self, stack: AsyncExitStack) -> None:
        """Make what App-wide factories provide, dependencies first; ``stack`` leaves their resources in reverse."""
        opened: set[Key] = set()
        for provider in self._providers.values():
            await self._open(provider, stack, opened)

    async def _open(self, provider: Provider, stack: AsyncExitStack, opened: set[Key]) -> None:
        if provider.key in opened or provider.scope != "app":
            return
        opened.add(provider.key)
        for dependency in provider.dependencies:
            if dependency.key in self._providers:
                await self._open(self._providers[dependency.key], stack, opened)
        if provider.kind == "factory":
            self._held.value(provider.key, await self._enter(provider, stack))
        elif provider.kind == "class":
            self.get(provider.key)

    async def _enter(self, provider: Provider, stack: AsyncExitStack) -> Any:
        made = provider.target(**self.arguments(provider.dependencies, key_name(provider.key), provider.target))
        if inspect.isawaitable(made):
            made = await made
        if hasattr(made, "__aenter__") and hasattr(made, "__aexit__"):
            return await stack.enter_async_context(made)
        return made

    @property
    def opens_in_terns(self) -> bool:
        """Whether anything is opened for a Tern; else ``tern`` need not be entered."""
        return bool(self._tern_factories)

    @asynccontextmanager
    async def tern(self, scope: TernScope) -> AsyncGenerator[None]:
        """What factories of Tern scope provide, for as long as the block lasts."""
        async with AsyncExitStack() as stack:
            for provider in self._tern_factories:
                await self._open_tern(provider, scope, stack)
            yield

    async def _open_tern(self, provider: Provider, scope: TernScope, stack: AsyncExitStack) -> None:
        """Dependencies first, also those of classes in between."""
        if provider.scope != "tern" or provider.key in scope.instances:
            return
        for dependency in provider.dependencies:
            if dependency.key in self._providers:
                await self._open_tern(self._providers[dependency.key], scope, stack)
        if provider.kind == "factory":
            scope.instances[provider.key] = await self._enter(provider, stack)

    def get(self, key: Key) -> Any:
        """What is provided under ``key``."""
        return self._held.get(key)

    def build(self, cls: type[Any], spec: InjectableSpec, label: str) -> Any:
        """A new instance of ``cls``."""
        return cls(**self.arguments(spec.dependencies, label, cls))

    def arguments(self, dependencies: Iterable[Dependency], label: str, target: Any) -> dict[str, Any]:
        """Values for parameters of ``target``. ``label`` names it to its ``MemoryModel``."""
        found: dict[str, Any] = {}
        for dependency in dependencies:
            if dependency.key in FRAMEWORK_KEYS:
                found[dependency.parameter] = self._memory_model(label, target)
                continue
            if dependency.key in self._providers or not dependency.optional:
                found[dependency.parameter] = self.get(dependency.key)
        return found

    def _maker(self, provider: Provider) -> Callable[[], Any]:
        label = key_name(provider.key)
        return lambda: provider.target(**self.arguments(provider.dependencies, label, provider.target))
