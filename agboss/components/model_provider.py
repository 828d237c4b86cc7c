"""Model providers: where models with a prefix of one's own come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from agboss.components.metadata import ComponentSpec, attach_component, docstring
from agboss.components.model_spec import PROVIDERS
from agboss.components.naming import check_name, describe
from agboss.errors import DeclarationError

C = TypeVar("C", bound=type[Any])


class ModelProviderSpec(ComponentSpec, kw_only=True):
    """A provider: models ``name:anything`` come from the class's ``model(spec)``."""

    target: type[Any]


def model_provider(*, name: str, description: str | None = None) -> Callable[[C], C]:
    """Declare a class with ``def model(self, spec: ModelSpec) -> ChatModel``; put it in ``providers``.

    Args:
        name: The prefix: ``name:anything`` is asked from this class. A built-in prefix is refused.
        description: Default: the docstring.
    """

    def decorate(cls: C) -> C:
        prefix = check_name("model_provider", cls, name)
        if prefix in PROVIDERS:
            raise DeclarationError(
                "declaration.bad-name",
                f"@model_provider {describe(cls)}: {prefix!r} is a built-in provider",
                "choose another prefix, or give create_app(models={id: model})",
            )
        if not callable(getattr(cls, "model", None)):
            raise DeclarationError(
                "declaration.bad-model-provider",
                f"@model_provider {describe(cls)} has no model() method",
                "write 'def model(self, spec: ModelSpec) -> ChatModel'",
            )
        text = docstring(cls) if description is None else description
        attach_component(cls, ModelProviderSpec(kind="model_provider", name=prefix, description=text, target=cls))
        return cls

    return decorate
