"""Routers: nodes that choose the next node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

import agboss.components as parts  # settings are loaded where somebody sets them
from agboss.components.metadata import ComponentSpec, attach_component, docstring, is_count, settings_error
from agboss.components.naming import component_name, describe
from agboss.errors import DeclarationError
from agboss_memory.wording import quoted

if TYPE_CHECKING:
    from agboss.components.settings import FunctionRouter, JevRouter, LlmRouter, RulesRouter

C = TypeVar("C", bound=type[Any])
AnyRouter: TypeAlias = "RulesRouter | FunctionRouter | LlmRouter | JevRouter"
RouterLike: TypeAlias = "AnyRouter | Mapping[str, Any]"


class RouterSpec(ComponentSpec, kw_only=True):
    """A router as declared; ``settings`` None = the workflow's ``defaults.router``."""

    settings: AnyRouter | None = None
    max_visits: int = 10


@overload
def router(target: C, /) -> C: ...
@overload
def router(
    *,
    name: str | None = None,
    description: str | None = None,
    router: RouterLike | None = None,
    max_visits: int = 10,
) -> Callable[[C], C]: ...
def router(
    target: Any = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    router: RouterLike | None = None,
    max_visits: int = 10,
) -> Any:
    """Declare a router.

    Args:
        target: The class, when used without parentheses.
        name: Default: the class name in kebab case.
        description: Default: the docstring.
        router: Its settings, or a dict with ``kind``. Default: ``defaults.router``.
        max_visits: How often it may be asked in one Tern. Default 10, so that a loop ends.
    """

    def decorate(cls: C) -> C:
        label = f"@router {describe(cls)}"
        if not is_count(max_visits, least=1):
            text = f"{label}: max_visits={quoted(max_visits)}"
            raise DeclarationError("declaration.invalid", text, "use a whole number, 1 or more")
        attach_component(
            cls,
            RouterSpec(
                kind="router",
                name=component_name("router", cls, name),
                description=docstring(cls) if description is None else description,
                settings=None if router is None else _settings(label, router),
                max_visits=max_visits,
            ),
        )
        return cls

    return decorate if target is None else decorate(target)


def _settings(label: str, given: RouterLike) -> AnyRouter:
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter[AnyRouter](parts.RouterSettings).validate_python(given)
    except ValidationError as error:
        raise settings_error(label, error) from error
