"""Routers: they choose one of the routes of a node. Light at import."""

from agboss.routers.build import build_router
from agboss.routers.contract import RouteOption, Router, RouteRequest, RouteResult
from agboss.routers.deciding import NameOf, check_option, component_name, confidence_of, decide
from agboss.routers.jev import RouteByDecision
from agboss.routers.jev_server import decision_key
from agboss.routers.llm import Ask
from agboss.routers.offline import RouteOffline

__all__ = [
    "Ask",
    "NameOf",
    "RouteByDecision",
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
