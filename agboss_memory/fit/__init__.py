"""The last stage before a model call: whatever a strategy selected, the request fits the model's window."""

from typing import TYPE_CHECKING

from agboss_memory.fit.estimate import (
    CUT_MARK,
    IMAGE_TOKENS,
    PER_MESSAGE,
    UNKNOWN_WINDOW,
    cut_to,
    document_tokens,
    effective_window,
    estimate,
    estimate_most,
    media_tokens,
    text_tokens,
)
from agboss_memory.fit.turns import FitRequest, Fitted, fit, roomy, surely_fits
from agboss_memory.later import later

if TYPE_CHECKING:
    from agboss_memory.fit.window import WindowFit, cut_messages, fit_window, no_room
else:
    __getattr__ = later(
        __name__,
        {"agboss_memory.fit.window": ("WindowFit", "cut_messages", "fit_window", "no_room")},
    )

__all__ = [
    "CUT_MARK",
    "IMAGE_TOKENS",
    "PER_MESSAGE",
    "UNKNOWN_WINDOW",
    "FitRequest",
    "Fitted",
    "WindowFit",
    "cut_messages",
    "cut_to",
    "document_tokens",
    "effective_window",
    "estimate",
    "estimate_most",
    "fit",
    "fit_window",
    "media_tokens",
    "no_room",
    "roomy",
    "surely_fits",
    "text_tokens",
]
