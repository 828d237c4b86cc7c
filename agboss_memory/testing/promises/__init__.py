"""The thirteen promises, each as a check that a test can call. All raise ``BrokenPromise``."""

from agboss_memory.testing.promises.accounting import check_accounting
from agboss_memory.testing.promises.append_only import check_append_only
from agboss_memory.testing.promises.broken import BrokenPromise
from agboss_memory.testing.promises.cover import check_cover, check_turn_cover
from agboss_memory.testing.promises.fit import check_fit
from agboss_memory.testing.promises.isolation import check_isolation
from agboss_memory.testing.promises.once import check_once
from agboss_memory.testing.promises.pairs import check_pairs
from agboss_memory.testing.promises.pins import check_pins
from agboss_memory.testing.promises.prefix import check_stable_prefix
from agboss_memory.testing.promises.progress import check_calls, check_progress
from agboss_memory.testing.promises.start import check_refused
from agboss_memory.testing.promises.total import check_round_trip
from agboss_memory.testing.promises.trust import check_trust

__all__ = [
    "BrokenPromise",
    "check_accounting",
    "check_append_only",
    "check_calls",
    "check_cover",
    "check_fit",
    "check_isolation",
    "check_once",
    "check_pairs",
    "check_pins",
    "check_progress",
    "check_refused",
    "check_round_trip",
    "check_stable_prefix",
    "check_trust",
    "check_turn_cover",
]
