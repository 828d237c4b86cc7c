"""Turning older Terns into summaries."""

from typing import TYPE_CHECKING

from agboss_memory.later import later

if TYPE_CHECKING:
    from agboss_memory.compaction.blocks import PER_TERN, TRIES, after_failure, plan_blocks
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
    from agboss_memory.compaction.writing import PROMPT_HASH, Ask, SummaryTask, prompt_of, summarise
else:
    __getattr__ = later(
        __name__,
        {
            "agboss_memory.compaction.blocks": (
                "PER_TERN",
                "TRIES",
                "after_failure",
                "plan_blocks",
            ),
            "agboss_memory.compaction.window": (
                "PER_TURN",
                "WINDOW_PROMPT_HASH",
                "Calls",
                "RangeTask",
                "can_gain",
                "chunks",
                "runs",
                "summarise_range",
                "transcript_room",
            ),
            "agboss_memory.compaction.writing": (
                "PROMPT_HASH",
                "Ask",
                "SummaryTask",
                "prompt_of",
                "summarise",
            ),
        },
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
