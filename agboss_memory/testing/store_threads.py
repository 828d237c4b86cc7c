# ruff: noqa: D102, S101
"""Random threads: what every store gives back."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings

from agboss_memory.stores.contract import MessagePage, WindowSpec
from agboss_memory.testing.promises import check_append_only, check_round_trip
from agboss_memory.testing.store_requests import admission, ending, ref
from agboss_memory.testing.store_suite import StoreSuite
from agboss_memory.testing.threads import Turn, threads


class Threads(StoreSuite):
    """Whole threads, of any content."""

    # A suite is inherited: one test of it runs in several classes.
    @settings(suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow], deadline=None)
    @given(talk=threads(turns=4))
    def test_promise_11_any_thread_comes_back(self, talk: tuple[Turn, ...]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(self._keep(Path(folder), talk))

    async def _keep(self, folder: Path, talk: tuple[Turn, ...]) -> None:
        async with self.opened(folder) as store:
            said = tuple(message for turn in talk for message in turn.messages)
            before = ()
            for turn in talk:
                admitted = await store.admit(admission(turn.task.content))
                await store.commit(ending(admitted, task=turn.task.content, messages=turn.messages))
                key = (await store.thread(ref(), WindowSpec())).key
                kept = await store.messages(key, MessagePage(agent="", limit=1000))
                check_append_only(before, kept)
                before = kept
            check_round_trip(said, before)
            assert [message.number for message in before] == list(range(1, len(said) + 1))
