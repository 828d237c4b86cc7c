"""The SQLite store: one file per aggregate holds its SQL; ``transactions`` joins them; ``store`` is the door."""

from agboss_memory.stores.sqlite.connection import Synchronous, Trace
from agboss_memory.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore", "Synchronous", "Trace"]
