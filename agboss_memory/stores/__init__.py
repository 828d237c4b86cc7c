"""Stores: where threads live. ``open_store`` takes a URL; ``contract`` says what every store does."""

from agboss_memory.stores.contract import (
    Admission,
    Admitted,
    Append,
    Appended,
    BookedUsage,
    Commit,
    Committed,
    DaySpend,
    MemoryOutcome,
    MessagePage,
    PendingWork,
    Store,
    SummaryWrite,
    TernPage,
    ThreadInfo,
    ThreadRef,
    ThreadState,
    Window,
    WindowSpec,
)
from agboss_memory.stores.conversation import StoredConversation
from agboss_memory.stores.files import DiskFiles, FileStore, FileWrite, MemoryFiles
from agboss_memory.stores.lease import holder_alive, new_holder, release_holder
from agboss_memory.stores.memory import MemoryStore
from agboss_memory.stores.sqlite import SqliteStore
from agboss_memory.stores.urls import open_store

__all__ = [
    "Admission",
    "Admitted",
    "Append",
    "Appended",
    "BookedUsage",
    "Commit",
    "Committed",
    "DaySpend",
    "DiskFiles",
    "FileStore",
    "FileWrite",
    "MemoryFiles",
    "MemoryOutcome",
    "MemoryStore",
    "MessagePage",
    "PendingWork",
    "SqliteStore",
    "Store",
    "StoredConversation",
    "SummaryWrite",
    "TernPage",
    "ThreadInfo",
    "ThreadRef",
    "ThreadState",
    "Window",
    "WindowSpec",
    "holder_alive",
    "new_holder",
    "open_store",
    "release_holder",
]
