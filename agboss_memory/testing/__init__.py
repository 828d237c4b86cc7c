"""What authors of strategies and stores test with: two suites, random threads, and the promises one by one.

It needs pytest and hypothesis (``pip install 'agboss[testing]'``), and no plugin.
"""

from agboss_memory.errors import MissingExtraError

try:
    from agboss_memory.testing.counter import QuarterCounter
    from agboss_memory.testing.promises import (
        BrokenPromise,
        check_accounting,
        check_append_only,
        check_calls,
        check_cover,
        check_fit,
        check_isolation,
        check_once,
        check_pairs,
        check_pins,
        check_progress,
        check_refused,
        check_round_trip,
        check_stable_prefix,
        check_trust,
        check_turn_cover,
    )
    from agboss_memory.testing.shown import Shown, shown
    from agboss_memory.testing.stores import StoreConformance, store_conformance
    from agboss_memory.testing.strategies import strategy_conformance, windows
    from agboss_memory.testing.summariser import MoodySummariser, moods
    from agboss_memory.testing.threads import Turn, call_ids, texts, threads
except ModuleNotFoundError as error:
    raise MissingExtraError(
        "extra.missing",
        f"the test kit needs the extra 'testing', which is not installed ({error.name or error})",
        "pip install 'agboss[testing]'",
        extra="testing",
    ) from error

__all__ = [
    "BrokenPromise",
    "MoodySummariser",
    "QuarterCounter",
    "Shown",
    "StoreConformance",
    "Turn",
    "call_ids",
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
    "moods",
    "shown",
    "store_conformance",
    "strategy_conformance",
    "texts",
    "threads",
    "windows",
]
