"""The SQLite store: what every store does."""

from agboss_memory import open_store
from agboss_memory.testing import store_conformance

TestSqliteStore = store_conformance(
    lambda folder: open_store(f"sqlite:///{folder / 'deep' / 'log.db'}?synchronous=NORMAL")
)
