"""Chat models: the seam, the offline model, the providers, and what a call costs. Light at import."""

from agboss.models.chat import CallSettings, ChatModel, ModelReply, ModelRequest, ModelUsage, ToolSchema
from agboss.models.extractive import EXTRACTIVE_ID, ExtractiveModel
from agboss.models.keys import key_problem
from agboss.models.prices import cost_of, has_price
from agboss.models.provider import RetryPolicy
from agboss.models.resolve import BLOCK_VARIABLE, ModelCatalog
from agboss.models.source import Caller, ModelHandle, ModelSource

__all__ = [
    "BLOCK_VARIABLE",
    "EXTRACTIVE_ID",
    "CallSettings",
    "Caller",
    "ChatModel",
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
    "has_price",
    "key_problem",
]
