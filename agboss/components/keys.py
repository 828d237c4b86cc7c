"""Keys of the container, and what a class or function asks it for."""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeAlias, TypeVar

from agboss.components.naming import describe
from agboss.errors import AgbossError
from agboss_memory.records import Record

T = TypeVar("T")
Scope: TypeAlias = Literal["app", "tern"]


class InjectionToken(Generic[T]):
    """A key for something that has no class of its own, or of which there are several.

    Args:
        name: Shown in errors. Two tokens of the same name are still two keys.
    """

    __slots__ = ("__orig_class__", "name")

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"InjectionToken({self.name!r})"


Key: TypeAlias = "InjectionToken[Any] | type[Any]"


def key_name(key: object) -> str:
    """How a key is called in messages."""
    return key.name if isinstance(key, InjectionToken) else describe(key)


class Dependency(Record, kw_only=True):
    """One constructor or function parameter that the container fills."""

    parameter: str
    key: Key
    optional: bool = False


class InjectableSpec(Record, kw_only=True):
    """How the container builds a class: its dependencies, how long an instance lives, and what prevents it."""

    dependencies: tuple[Dependency, ...]
    scope: Scope = "app"
    problem: AgbossError | None = None
