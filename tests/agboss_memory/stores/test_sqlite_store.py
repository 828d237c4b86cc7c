"""The SQLite store: what every store does."""

from pathlib import Path

from agboss_memory.stores import Store, open_store
from agboss_memory.testing.store_conformance import StoreConformance


class TestSqliteStore(StoreConformance):
    def make_store(self, folder: Path) -> Store:
        return open_store(f"sqlite:///{folder / 'deep' / 'log.db'}?synchronous=NORMAL")
