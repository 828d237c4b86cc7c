"""Routers: they choose one of the routes of a node. Light at import."""

from typing import TYPE_CHECKING

from agboss_memory.later import later

if TYPE_CHECKING:
    from agboss.routers.build import build_router
    from agboss.routers.contract import RouteOption, Router, RouteRequest, RouteResult
    from agboss.routers.deciding import NameOf, check_option, component_name, confidence_of, decide
    from agboss.routers.function import RouteByFunction
    from agboss.routers.jev import RouteByDecision
    from agboss.routers.jev_server import decision_key
    from agboss.routers.llm import Ask, RouteByModel
    from agboss.routers.offline import RouteOffline
    from agboss.routers.rules import RouteByRules
else:
    __getattr__ = later(
        __name__,
        {
            "agboss.routers.build": ("build_router",),
            "agboss.routers.contract": (
                "RouteOption",
                "Router",
                "RouteRequest",
                "RouteResult",
            ),
            "agboss.routers.deciding": (
                "NameOf",
                "check_option",
                "component_name",
                "confidence_of",
                "decide",
            ),
            "agboss.routers.function": ("RouteByFunction",),
            "agboss.routers.jev": ("RouteByDecision",),
            "agboss.routers.jev_server": ("decision_key",),
            "agboss.routers.llm": (
                "Ask",
                "RouteByModel",
            ),
            "agboss.routers.offline": ("RouteOffline",),
            "agboss.routers.rules": ("RouteByRules",),
        },
    )

__all__ = [
    "Ask",
    "NameOf",
    "RouteByDecision",
    "RouteByFunction",
    "RouteByModel",
    "RouteByRules",
    "RouteOffline",
    "RouteOption",
    "RouteRequest",
    "RouteResult",
    "Router",
    "build_router",
    "check_option",
    "component_name",
    "confidence_of",
    "decide",
    "decision_key",
]
