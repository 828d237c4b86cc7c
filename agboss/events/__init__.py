"""What a stream yields. Loaded when somebody listens."""

from typing import TYPE_CHECKING

from agboss_memory.later import later

if TYPE_CHECKING:
    from agboss.events.kinds import (
        Answered,
        Compacted,
        Ended,
        Failed,
        NodeFinished,
        NodeStarted,
        Paused,
        RouteChosen,
        RunEvent,
        TernStarted,
        TextDelta,
        ToolFinished,
        ToolStarted,
        Warned,
    )
else:
    __getattr__ = later(
        __name__,
        {
            "agboss.events.kinds": (
                "Answered",
                "Compacted",
                "Ended",
                "Failed",
                "NodeFinished",
                "NodeStarted",
                "Paused",
                "RouteChosen",
                "RunEvent",
                "TernStarted",
                "TextDelta",
                "ToolFinished",
                "ToolStarted",
                "Warned",
            ),
        },
    )

__all__ = [
    "Answered",
    "Compacted",
    "Ended",
    "Failed",
    "NodeFinished",
    "NodeStarted",
    "Paused",
    "RouteChosen",
    "RunEvent",
    "TernStarted",
    "TextDelta",
    "ToolFinished",
    "ToolStarted",
    "Warned",
]
