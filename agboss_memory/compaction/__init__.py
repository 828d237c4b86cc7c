"""Turning older Terns into summaries."""

from agboss_memory.compaction.blocks import PER_TERN, TRIES, after_failure, plan_blocks
from agboss_memory.compaction.summarise import PROMPT_HASH, Ask, SummaryTask, prompt_of, summarise
from agboss_memory.compaction.window import (
    PER_TURN,
    WINDOW_PROMPT_HASH,
    Calls,
    RangeTask,
    can_gain,
    chunks,
    runs,
    summarise_range,
    transcript_room,
)

__all__ = [
    "PER_TERN",
    "PER_TURN",
    "PROMPT_HASH",
    "TRIES",
    "WINDOW_PROMPT_HASH",
    "Ask",
    "Calls",
    "RangeTask",
    "SummaryTask",
    "after_failure",
    "can_gain",
    "chunks",
    "plan_blocks",
    "prompt_of",
    "runs",
    "summarise",
    "summarise_range",
    "transcript_room",
]
