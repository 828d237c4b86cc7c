"""Routers: they choose one of the routes of a node. Light at import."""

from agboss.routers.build import build_router
from agboss.routers.contract import RouteOption, Router, RouteRequest, RouteResult
from agboss.routers.deciding import NameOf, check_option, component_name, confidence_of, decide
from agboss.routers.llm import Ask
from agboss.routers.offline import RouteOffline

__all__ = [
    "Ask",
    "NameOf",
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
]
