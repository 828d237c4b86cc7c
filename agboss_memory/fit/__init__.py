"""The last stage before a model call: whatever a strategy selected, the request fits the model's window."""

from agboss_memory.fit.estimate import (
    CUT_MARK,
    IMAGE_TOKENS,
    PER_MESSAGE,
    UNKNOWN_WINDOW,
    cut_to,
    document_tokens,
    effective_window,
    estimate,
    media_tokens,
    text_tokens,
)
from agboss_memory.fit.turns import FitRequest, Fitted, fit, roomy, surely_fits
from agboss_memory.fit.window import WindowFit, fit_window

__all__ = [
    "CUT_MARK",
    "IMAGE_TOKENS",
    "PER_MESSAGE",
    "UNKNOWN_WINDOW",
    "FitRequest",
    "Fitted",
    "WindowFit",
    "cut_to",
    "document_tokens",
    "effective_window",
    "estimate",
    "fit",
    "fit_window",
    "media_tokens",
    "roomy",
    "surely_fits",
    "text_tokens",
]
