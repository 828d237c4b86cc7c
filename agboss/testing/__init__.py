"""Test kit: scripted models, strict fixtures. The pytest plugin is ``agboss.testing.plugin``."""

# Nothing is loaded before a name is used: the plugin lives in this package.

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agboss.testing.public import *  # noqa: F403
    from agboss.testing.public import __all__ as __all__
else:

    def __getattr__(name: str) -> Any:
        if name.startswith("_") and name != "__all__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            return getattr(import_module("agboss.testing.public"), name)
        except AttributeError:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None

    def __dir__() -> list[str]:
        return import_module("agboss.testing.public").__all__
