"""Turning older Terns into summaries."""

from agboss_memory.compaction.blocks import PER_TERN, TRIES, after_failure, plan_blocks
from agboss_memory.compaction.summarise import PROMPT_HASH, Ask, SummaryTask, prompt_of, summarise

__all__ = [
    "PER_TERN",
    "PROMPT_HASH",
    "TRIES",
    "Ask",
    "SummaryTask",
    "after_failure",
    "plan_blocks",
    "prompt_of",
    "summarise",
]
