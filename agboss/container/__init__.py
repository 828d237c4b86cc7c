"""Dependency injection. The only place that knows the library behind it."""

from agboss.container.check import Checker, Root, merge
from agboss.container.container import Container
from agboss.container.scope import CURRENT, TernScope

__all__ = ["CURRENT", "Checker", "Container", "Root", "TernScope", "merge"]
