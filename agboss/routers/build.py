"""From a router's settings to the object that decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import agboss.routers as routers  # each kind is loaded when it is used
from agboss.components.settings import FunctionRouter, LlmRouter, RouterSettings, RulesRouter
from agboss.errors import RouterError
from agboss.routers.contract import Router
from agboss.routers.deciding import NameOf, component_name

if TYPE_CHECKING:
    from agboss.routers.llm import Ask


def build_router(
    settings: RouterSettings,
    *,
    ask: Ask | None = None,
    name: str = "",
    name_of: NameOf = component_name,
    finish: str | None = None,
) -> Router:
    """Build the router that settings describe. A ``jev`` router holds an HTTP client: call its ``aclose``.

    Args:
        settings: Which kind, and how.
        ask: One call of a chat model; needed by kind ``llm`` alone.
        name: Name of the router component, for errors.
        name_of: Gives the name of a component that a rule or a function names.
        finish: Name of the finish by which a rules router ends a loop after an answer.

    Raises:
        RouterError: ``router.no-model`` for kind ``llm`` without ``ask``.
        MissingExtraError: Kind ``jev`` without its extra.
    """
    if isinstance(settings, RulesRouter):
        return routers.RouteByRules(settings, name_of=name_of, finish=finish)
    if isinstance(settings, FunctionRouter):
        return routers.RouteByFunction(settings, name_of=name_of)
    if isinstance(settings, LlmRouter):
        if ask is None:
            raise RouterError(
                "router.no-model",
                f"router {name!r} asks a chat model, and none is configured",
                "set LlmRouter(model=...) or defaults.models.model",
                router=name,
            )
        return routers.RouteByModel(settings, ask=ask)
    return routers.RouteByDecision(settings)
