"""The lease of a Tern that runs for long is renewed; a store that cannot be reached for a moment does not end it."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from agboss import ModelReply, ModelRequest, TernCancelledError, agent, create_app
from agboss.app import lifecycle
from agboss.errors import StoreLockedError
from agboss_memory import SqliteStore
from agboss_memory.stores.contract import Interruption

LOCKED = StoreLockedError("store.locked", "another process writes", "try again")


@agent(model="ollama:slow", prompt="Answer.")
class Slow: ...


class Gate:
    """A model that answers when it is told to."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.open = asyncio.Event()

    async def generate(self, request: ModelRequest) -> ModelReply:
        self.asked.set()
        await self.open.wait()
        return ModelReply(text="done")


class Renewals(SqliteStore):
    """A store that tells of each renewal; some of them fail."""

    def __init__(self, path: Path, *, failing: int, error: Exception = LOCKED) -> None:
        super().__init__(path, synchronous="NORMAL")
        self.failing = failing
        self.error = error
        self.until: list[datetime] = []
        self.tries = 0
        self.renewed = asyncio.Event()

    async def renew(self, holder: str, until: datetime) -> tuple[Interruption, ...]:
        self.tries += 1
        if self.tries <= self.failing:
            raise self.error
        asked = await super().renew(holder, until)
        self.until.append(until)
        self.renewed.set()
        return asked


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "RENEW_SECONDS", 0.001)


def lease(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        (until,) = connection.execute("SELECT lease_until FROM threads").fetchone()
    return until


@pytest.mark.parametrize("error", [LOCKED, RuntimeError("a store of one's own")], ids=["locked", "foreign"])
async def test_a_lease_is_renewed_while_the_tern_runs_also_after_failures(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, error: Exception
):
    gate, store = Gate(), Renewals(tmp_path / "log.db", failing=3, error=error)
    async with create_app(Slow, store=store, models={"ollama:slow": gate}) as app:
        tern = asyncio.create_task(app.execute("Go.", thread="t", create_thread=True))
        await gate.asked.wait()
        before = lease(tmp_path / "log.db")
        store.renewed.clear()  # one may have come before it was read
        with caplog.at_level(logging.WARNING, "agboss"):
            await store.renewed.wait()
        assert lease(tmp_path / "log.db") > before
        gate.open.set()
        assert (await tern).answer == "done"
    told = [record.message for record in caplog.records if "leases could not be renewed" in record.message]
    assert len(told) == 3


async def test_another_app_that_asks_for_an_end_is_heard_at_the_next_renewal(tmp_path: Path):
    gate, store = Gate(), Renewals(tmp_path / "log.db", failing=2)
    async with (
        create_app(Slow, store=store, models={"ollama:slow": gate}) as app,
        create_app(Slow, store=SqliteStore(tmp_path / "log.db"), models={"ollama:slow": gate}) as other,
    ):
        tern = asyncio.create_task(app.execute("Go.", thread="t", create_thread=True))
        await gate.asked.wait()
        assert await other.cancel("t")
        with pytest.raises(TernCancelledError):
            await tern
        assert store.tries > 2
