"""Where the parts of the store suite get their store from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from agboss_memory.stores.contract import (
    Store,
)


class StoreSuite(ABC):
    """Part of the suite; ``make_store`` is yours to say."""

    @abstractmethod
    def make_store(self, folder: Path) -> Store:
        """A new store that keeps its data in ``folder``, if anywhere. Not yet open."""

    @asynccontextmanager
    async def opened(self, folder: Path) -> AsyncGenerator[Store]:
        """The store, open."""
        store = self.make_store(folder)
        await store.open()
        try:
            yield store
        finally:
            await store.close()
