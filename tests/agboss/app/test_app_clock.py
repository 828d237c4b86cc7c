"""The wall clock jumps between any two looks at it: Terns keep their order, nobody waits for it, limits and memory go on."""

from __future__ import annotations

import itertools
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fault_desk import open_desk
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agboss import Attachment, TernStatus
from agboss_memory import MemoryStore, SqliteStore
from agboss_memory.contract import utc_now

JUMPS = st.lists(st.floats(-1e8, 1e8) | st.floats(-20, 20), min_size=1, max_size=6)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(jumps=JUMPS)
async def test_b106_any_jump_of_the_clock_leaves_a_thread_whole(
    kind: str, jumps: list[float], tmp_path_factory: pytest.TempPathFactory
) -> None:
    looks = itertools.cycle(jumps)
    begin = datetime(2026, 1, 31, tzinfo=UTC)

    def jumping() -> datetime:
        return begin + timedelta(seconds=next(looks))

    folder = tmp_path_factory.mktemp("clock")
    with pytest.MonkeyPatch.context() as patch:
        for module in tuple(sys.modules.values()):
            if getattr(module, "utc_now", None) is utc_now:
                patch.setattr(module, "utc_now", jumping)
        store = MemoryStore() if kind == "memory" else SqliteStore(Path(folder) / "x.db", synchronous="NORMAL")
        file = Attachment(name="a.txt", media_type="text/plain", data=b"attached")
        async with open_desk(store) as app:
            for number in range(1, 5):
                result = await app.execute(f"{number}", thread="t", create_thread=True, attachments=[file])
                assert (result.tern, result.status) == (number, TernStatus.ANSWERED)
            assert await app.recover() == ()
            copy = (await app.threads.export("t")).copy
            assert [item.tern.task for item in copy.terns] == ["1", "2", "3", "4"]
            assert copy.work == ()
            turns = [item.summary for item in copy.summaries if not item.summary.agent]
            assert [(one.first, one.last) for one in turns] == [(1, 2), (3, 4)]
            assert await app.threads.check() == ()
            assert len(await app.threads.list()) == 1
