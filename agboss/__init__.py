"""Agent workflows whose memory can be trusted."""

# Nothing is loaded before a name is used: pytest loads this package for its plugin, in every project.

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agboss.public import *  # noqa: F403
    from agboss.public import __all__ as __all__
else:

    def __getattr__(name: str) -> Any:
        if name.startswith("_") and name != "__all__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            return getattr(import_module("agboss.public"), name)
        except AttributeError:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None

    def __dir__() -> list[str]:
        return import_module("agboss.public").__all__
