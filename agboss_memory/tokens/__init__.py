"""Token counts: exact where a vocabulary is at hand, else a careful estimate. They never fail and never stall."""

from agboss_memory.tokens.counting import OFFLOAD_CHARACTERS, TiktokenCounter, count_async, load_counter
from agboss_memory.tokens.heuristic import HeuristicCounter
from agboss_memory.tokens.models import counter_for, encoding_for

__all__ = [
    "OFFLOAD_CHARACTERS",
    "HeuristicCounter",
    "TiktokenCounter",
    "count_async",
    "counter_for",
    "encoding_for",
    "load_counter",
]
