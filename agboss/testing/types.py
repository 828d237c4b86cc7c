"""Types of the fixtures, for annotations in tests."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

from agboss.app import App
from agboss.models import ModelRequest
from agboss.testing.requests import RoutedRequest
from agboss.testing.scripted import CompactionScript, Script

MockCompaction: TypeAlias = CompactionScript
"""Type of ``mock_compaction``."""


class MakeApp(Protocol):
    """Type of ``agboss_app``."""

    def __call__(self, workflow: type[Any], **arguments: Any) -> App:
        """Make an App; the arguments are those of ``create_app``."""
        ...


class MockLlm(Protocol):
    """Type of ``mock_llm``."""

    def __call__(self, component: Any, /) -> Script[ModelRequest]:
        """The script of a component's model."""
        ...


class MockRouter(Protocol):
    """Type of ``mock_router``."""

    def __call__(self, component: Any, /) -> Script[RoutedRequest]:
        """The script of a router."""
        ...
