"""What is wrong with the providers of a workflow, found before anything is built."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agboss.components.injection import Provider, injectable_spec
from agboss.components.keys import Dependency, InjectionToken, Key, Scope, key_name
from agboss.errors import AgbossError, DeclarationError
from agboss_memory.contract import MemoryModel
from agboss_memory.nearest import close_names
from agboss_memory.records import Record

FRAMEWORK_KEYS: tuple[type[Any], ...] = (MemoryModel,)
"""Keys that the framework itself provides."""


class Root(Record, kw_only=True):
    """Something of the flow that the container builds or fills: a strategy, a tool, an action."""

    label: str
    dependencies: tuple[Dependency, ...]
    scope: Scope = "app"
    problem: AgbossError | None = None


def merge(base: Sequence[Provider], replacing: Sequence[Provider]) -> tuple[dict[Key, Provider], list[AgbossError]]:
    """Providers by key; ``replacing`` wins by key, a key twice in one list is a violation."""
    violations: list[AgbossError] = []
    merged: dict[Key, Provider] = {}
    for where, providers in (("the workflow", base), ("create_app", replacing)):
        seen: set[Key] = set()
        for provider in providers:
            if provider.key in seen:
                violations.append(
                    DeclarationError(
                        "di.duplicate-provider",
                        f"{where} provides {key_name(provider.key)} twice",
                        "keep one; create_app(providers=) replaces a workflow's provider by key",
                    )
                )
            seen.add(provider.key)
            merged[provider.key] = provider
    return merged, violations


def implicit(key: Key) -> Provider | None:
    """The provider that a concrete class is by itself, None for tokens and abstract classes."""
    if isinstance(key, InjectionToken) or inspect.isabstract(key) or getattr(key, "_is_protocol", False):
        return None
    try:
        spec = injectable_spec(key, {})
    except (DeclarationError, ValueError, TypeError):
        return None
    return Provider(key=key, kind="class", target=key, dependencies=spec.dependencies, scope=spec.scope)


class Checker:
    """Walks from the roots through all dependencies and collects violations."""

    def __init__(self, providers: Mapping[Key, Provider]) -> None:
        self.providers = dict(providers)
        self._declared = tuple(providers.values())
        self.violations: list[AgbossError] = []
        self._reported: set[tuple[str, str]] = set()

    def check(self, roots: Iterable[Root]) -> list[AgbossError]:
        """All violations: missing providers, cycles, App-wide objects that would capture a Tern's."""
        for root in roots:
            if root.problem is not None:
                self.violations.append(root.problem)
            self._walk((root.label,), root.dependencies, root.scope, ())
        for provider in self._declared:
            self._walk((key_name(provider.key),), provider.dependencies, provider.scope, (provider.key,))
        return self.violations

    def _walk(
        self, path: tuple[str, ...], dependencies: Sequence[Dependency], scope: Scope, keys: tuple[Key, ...]
    ) -> None:
        for dependency in dependencies:
            key = dependency.key
            if key in FRAMEWORK_KEYS:
                continue
            here = (*path, key_name(key))
            if key in keys:
                self._report("di.cycle", "dependencies go round: " + " -> ".join(here), "break the circle", here)
                continue
            provider = self.providers.get(key) or implicit(key)
            if provider is None:
                if not dependency.optional:
                    self._missing(here, key)
                continue
            self.providers.setdefault(key, provider)
            if scope == "app" and provider.scope == "tern":
                self._report(
                    "di.captive",
                    f"{path[-1]} lives as long as the App but takes {key_name(key)}, which lives for one Tern",
                    f"give {path[-1]} scope='tern', or {key_name(key)} scope='app'",
                    here,
                )
            self._walk(here, provider.dependencies, provider.scope, (*keys, key))

    def _missing(self, path: tuple[str, ...], key: Key) -> None:
        name = key_name(key)
        known = [key_name(other) for other in self.providers]
        near = close_names(name, known, most=3, likeness=0.5)
        tree = "\n".join("  " * depth + ("└ " if depth else "") + item for depth, item in enumerate(path))
        hint = f"add provide({name}, ...) to providers"
        if near:
            hint += "; provided under a similar name: " + ", ".join(near)
        self._report("di.missing-provider", f"nothing provides {name}, needed by {path[0]}:\n{tree}", hint, path)

    def _report(self, code: str, message: str, hint: str, path: tuple[str, ...]) -> None:
        if (code, message) not in self._reported:
            self._reported.add((code, message))
            self.violations.append(DeclarationError(code, message, hint, path=path))
