"""The suite that every store passes.

.. code-block:: python

    TestMyStore = store_conformance(lambda folder: MyStore(folder / "my.db"))
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from agboss_memory.stores.contract import Store
from agboss_memory.testing.store_admissions import Admissions
from agboss_memory.testing.store_attachments import Attachments
from agboss_memory.testing.store_commits import Commits
from agboss_memory.testing.store_conversations import Conversations
from agboss_memory.testing.store_copies import Copies
from agboss_memory.testing.store_holding import Holding
from agboss_memory.testing.store_memory_work import MemoryWork
from agboss_memory.testing.store_pauses import Pauses
from agboss_memory.testing.store_recovery import Recovery
from agboss_memory.testing.store_spending import Spending
from agboss_memory.testing.store_threads import Threads
from agboss_memory.testing.store_values import Values
from agboss_memory.testing.store_views import Views
from agboss_memory.testing.store_waiting import Waiting


class StoreConformance(
    Admissions,
    Attachments,
    Commits,
    Conversations,
    Copies,
    Holding,
    MemoryWork,
    Pauses,
    Recovery,
    Spending,
    Threads,
    Values,
    Waiting,
    Views,
):
    """What a store must do, test by test; ``store_conformance`` makes it run.

    Its tests are coroutines. A subclass of it, with a ``make_store`` of its own, needs a plugin that awaits them.
    """


def store_conformance(make_store: Callable[[Path], Store]) -> type[StoreConformance]:
    """The suite for a store: a class of plain tests. Give it a name that pytest collects.

    Args:
        make_store: Makes a new store that keeps its data in the folder, if anywhere. Not yet open.
    """

    def made(self: StoreConformance, folder: Path) -> Store:
        return make_store(folder)

    tests = {
        name: _plain(test)
        for name, test in inspect.getmembers(StoreConformance, inspect.iscoroutinefunction)
        if name.startswith("test_")
    }
    return type("StoreConformance", (StoreConformance,), {"make_store": made, **tests})


def _plain(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """The test for a pytest without a plugin for coroutines. Marks and arguments stay."""

    @functools.wraps(test)
    def run(*given: Any, **fixtures: Any) -> None:
        asyncio.run(test(*given, **fixtures))

    return run
