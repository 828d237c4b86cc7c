# ruff: noqa: D102, S101
"""Recorded views: what every store does."""

from __future__ import annotations

from pathlib import Path

from agboss_memory.stores.views import ViewRecord
from agboss_memory.testing.store_requests import admission, ref
from agboss_memory.testing.store_suite import StoreSuite


class Views(StoreSuite):
    """Compositions are kept per call and go with their thread."""

    async def test_views_are_found_by_turn_and_replaced_by_call(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            key = (await store.admit(admission())).key
            first = ViewRecord(tern=1, agent="b\x00\ud800", call=0, composition='{"a": 1}')
            second = ViewRecord(tern=1, agent="a", call=1, composition="{}")
            await store.write_views(key, (first, second, ViewRecord(tern=2, agent="a", call=0, composition="[]")))
            await store.write_views(key, (ViewRecord(tern=1, agent="a", call=1, composition='"new"'),))
            found = await store.views(key, 1)
            assert [(one.agent, one.call, one.composition) for one in found] == [
                ("a", 1, '"new"'),
                ("b\x00\ud800", 0, '{"a": 1}'),
            ]
            assert await store.views(key, 3) == ()

    async def test_m161_a_deleted_thread_has_no_recorded_views(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            key = (await store.admit(admission())).key
            other = (await store.admit(admission(thread="other"))).key
            view = ViewRecord(tern=1, agent="a", call=0, composition="{}")
            await store.write_views(key, (view,))
            await store.write_views(other, (view,))
            await store.delete_thread(ref())
            assert await store.views(key, 1) == ()
            await store.write_views(key, (view,))
            assert await store.views(other, 1) == (view,)
