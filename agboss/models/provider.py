"""Models of providers."""

from __future__ import annotations

from agboss.components.settings import ModelSpec
from agboss.errors import ModelError
from agboss.models.chat import ModelReply, ModelRequest


class ProviderModel:
    """A provider's model behind ``ChatModel``."""

    async def generate(self, request: ModelRequest) -> ModelReply:
        """Answer one request."""
        raise ModelError("model.unavailable", f"model {request.model!r} cannot be reached yet")


def open_provider_model(spec: ModelSpec) -> ProviderModel:
    """Open a model."""
    raise ModelError("model.unavailable", f"model {spec.model!r} cannot be reached yet")
