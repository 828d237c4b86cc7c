"""The in-memory store."""

from pathlib import Path

from agboss_memory.stores import MemoryStore, Store
from agboss_memory.testing.store_conformance import StoreConformance


class TestMemoryStore(StoreConformance):
    def make_store(self, folder: Path) -> Store:
        return MemoryStore()
