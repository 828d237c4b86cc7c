"""Stores: where threads live. ``open_store`` takes a URL; ``contract`` says what every store does."""

from typing import TYPE_CHECKING

from agboss_memory.later import later

if TYPE_CHECKING:
    from agboss_memory.stores.admissions import (
        Admission,
        Admitted,
        BookedUsage,
        Claim,
        Enqueue,
        Interruption,
        MemoryClaim,
        Owing,
        PendingWork,
        Resumable,
        Step,
        StepWrite,
        Window,
        WindowSpec,
    )
    from agboss_memory.stores.contract import (
        Append,
        Appended,
        Commit,
        Committed,
        DaySpend,
        MemoryOutcome,
        MessagePage,
        Store,
        SummaryWrite,
        TernPage,
        ThreadInfo,
        ThreadRef,
        ThreadState,
    )
    from agboss_memory.stores.conversation import StoredConversation
    from agboss_memory.stores.copies import Finding, MessageCopy, SummaryCopy, TernCopy, ThreadCopy
    from agboss_memory.stores.files import (
        DiskFiles,
        FileStore,
        FileWrite,
        MemoryFiles,
    )
    from agboss_memory.stores.jsonl import dump_thread, load_thread
    from agboss_memory.stores.lease import holder_alive, new_holder, release_holder
    from agboss_memory.stores.memory import MemoryStore
    from agboss_memory.stores.pauses import Resumption
    from agboss_memory.stores.spending import SpendQuery, SpendRow
    from agboss_memory.stores.sqlite import SqliteStore
    from agboss_memory.stores.urls import open_store
else:
    __getattr__ = later(
        __name__,
        {
            "agboss_memory.stores.admissions": (
                "BookedUsage",
                "Admission",
                "Admitted",
                "Claim",
                "Enqueue",
                "Interruption",
                "MemoryClaim",
                "Owing",
                "PendingWork",
                "Resumable",
                "Step",
                "StepWrite",
                "Window",
                "WindowSpec",
            ),
            "agboss_memory.stores.contract": (
                "Append",
                "Appended",
                "Commit",
                "Committed",
                "DaySpend",
                "MemoryOutcome",
                "MessagePage",
                "Store",
                "SummaryWrite",
                "TernPage",
                "ThreadInfo",
                "ThreadRef",
                "ThreadState",
            ),
            "agboss_memory.stores.conversation": ("StoredConversation",),
            "agboss_memory.stores.copies": (
                "Finding",
                "MessageCopy",
                "SummaryCopy",
                "TernCopy",
                "ThreadCopy",
            ),
            "agboss_memory.stores.files": (
                "DiskFiles",
                "FileStore",
                "FileWrite",
                "MemoryFiles",
            ),
            "agboss_memory.stores.jsonl": (
                "dump_thread",
                "load_thread",
            ),
            "agboss_memory.stores.lease": (
                "holder_alive",
                "new_holder",
                "release_holder",
            ),
            "agboss_memory.stores.memory": ("MemoryStore",),
            "agboss_memory.stores.pauses": ("Resumption",),
            "agboss_memory.stores.spending": ("SpendQuery", "SpendRow"),
            "agboss_memory.stores.sqlite": ("SqliteStore",),
            "agboss_memory.stores.urls": ("open_store",),
        },
    )

__all__ = [
    "Admission",
    "Admitted",
    "Append",
    "Appended",
    "BookedUsage",
    "Claim",
    "Commit",
    "Committed",
    "DaySpend",
    "DiskFiles",
    "Enqueue",
    "FileStore",
    "FileWrite",
    "Finding",
    "Interruption",
    "MemoryClaim",
    "MemoryFiles",
    "MemoryOutcome",
    "MemoryStore",
    "MessageCopy",
    "MessagePage",
    "Owing",
    "PendingWork",
    "Resumable",
    "Resumption",
    "SpendQuery",
    "SpendRow",
    "SqliteStore",
    "Step",
    "StepWrite",
    "Store",
    "StoredConversation",
    "SummaryCopy",
    "SummaryWrite",
    "TernCopy",
    "TernPage",
    "ThreadCopy",
    "ThreadInfo",
    "ThreadRef",
    "ThreadState",
    "Window",
    "WindowSpec",
    "dump_thread",
    "holder_alive",
    "load_thread",
    "new_holder",
    "open_store",
    "release_holder",
]
