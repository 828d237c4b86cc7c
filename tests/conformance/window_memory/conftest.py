"""The rows run over both stores."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from agboss_memory import MemoryStore, SqliteStore, Store


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: Any, tmp_path: Path) -> AsyncGenerator[Store]:
    """An open store, in memory or in a file."""
    made: Store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "log.db", synchronous="NORMAL")
    await made.open()
    yield made
    await made.close()
