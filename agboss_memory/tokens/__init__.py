"""Token counts: exact where a vocabulary is at hand, else a careful estimate. They never fail and never stall."""

from typing import TYPE_CHECKING

from agboss_memory.later import later

if TYPE_CHECKING:
    from agboss_memory.tokens.counting import OFFLOAD_CHARACTERS, TiktokenCounter, count_async, is_loaded, load_counter
    from agboss_memory.tokens.heuristic import HeuristicCounter, most_tokens
    from agboss_memory.tokens.models import counter_for, encoding_for
else:
    __getattr__ = later(
        __name__,
        {
            "agboss_memory.tokens.counting": (
                "OFFLOAD_CHARACTERS",
                "TiktokenCounter",
                "count_async",
                "is_loaded",
                "load_counter",
            ),
            "agboss_memory.tokens.heuristic": (
                "HeuristicCounter",
                "most_tokens",
            ),
            "agboss_memory.tokens.models": (
                "counter_for",
                "encoding_for",
            ),
        },
    )

__all__ = [
    "OFFLOAD_CHARACTERS",
    "HeuristicCounter",
    "TiktokenCounter",
    "count_async",
    "counter_for",
    "encoding_for",
    "is_loaded",
    "load_counter",
    "most_tokens",
]
