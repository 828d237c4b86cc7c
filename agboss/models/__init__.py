"""Chat models: the seam, the offline model, the providers, and what a call costs. Light at import."""

from typing import TYPE_CHECKING

from agboss_memory.later import later

if TYPE_CHECKING:
    from agboss.models.chat import CallSettings, ChatModel, ModelReply, ModelRequest, ModelUsage, ToolSchema
    from agboss.models.embedded import EMBEDDED_WINDOW, EmbeddedModel
    from agboss.models.extractive import EXTRACTIVE_ID, ExtractiveModel
    from agboss.models.fetch import fetch_embedded, fetched_path, model_directory
    from agboss.models.keys import key_problem
    from agboss.models.prices import cost_of, has_price
    from agboss.models.provider import RetryPolicy
    from agboss.models.resolve import ModelCatalog
    from agboss.models.source import Caller, ModelHandle, ModelSource
else:
    __getattr__ = later(
        __name__,
        {
            "agboss.models.chat": (
                "CallSettings",
                "ChatModel",
                "ModelReply",
                "ModelRequest",
                "ModelUsage",
                "ToolSchema",
            ),
            "agboss.models.embedded": (
                "EMBEDDED_WINDOW",
                "EmbeddedModel",
            ),
            "agboss.models.extractive": (
                "EXTRACTIVE_ID",
                "ExtractiveModel",
            ),
            "agboss.models.fetch": (
                "fetch_embedded",
                "fetched_path",
                "model_directory",
            ),
            "agboss.models.keys": ("key_problem",),
            "agboss.models.prices": (
                "cost_of",
                "has_price",
            ),
            "agboss.models.provider": ("RetryPolicy",),
            "agboss.models.resolve": ("ModelCatalog",),
            "agboss.models.source": (
                "Caller",
                "ModelHandle",
                "ModelSource",
            ),
        },
    )

__all__ = [
    "EMBEDDED_WINDOW",
    "EXTRACTIVE_ID",
    "CallSettings",
    "Caller",
    "ChatModel",
    "EmbeddedModel",
    "ExtractiveModel",
    "ModelCatalog",
    "ModelHandle",
    "ModelReply",
    "ModelRequest",
    "ModelSource",
    "ModelUsage",
    "RetryPolicy",
    "ToolSchema",
    "cost_of",
    "fetch_embedded",
    "fetched_path",
    "has_price",
    "key_problem",
    "model_directory",
]
