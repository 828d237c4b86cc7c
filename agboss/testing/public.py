"""Every public name of ``agboss.testing``, in one list."""

from agboss.testing.requests import RoutedRequest
from agboss.testing.scripted import Script, ScriptedModels, ScriptError
from agboss.testing.steps import Call, Reply, Route, call_tool, reply, route_to
from agboss.testing.types import MakeApp, MockCompaction, MockLlm, MockRouter

__all__ = [
    "Call",
    "MakeApp",
    "MockCompaction",
    "MockLlm",
    "MockRouter",
    "Reply",
    "Route",
    "RoutedRequest",
    "Script",
    "ScriptError",
    "ScriptedModels",
    "call_tool",
    "reply",
    "route_to",
]
