"""What the in-memory store tells of a thread, and who keeps whom out of it."""

from __future__ import annotations

from datetime import datetime

from agboss_memory.stores.contract import ThreadInfo, ThreadState, WindowSpec
from agboss_memory.stores.lease import holder_alive, lease_holds
from agboss_memory.stores.memory_thread import MemoryThread
from agboss_memory.stores.spending import known_spend


def info_of(thread: MemoryThread) -> ThreadInfo:
    """The thread as listed."""
    return ThreadInfo(
        id=thread.id,
        workflow=thread.workflow,
        owner=thread.owner,
        created_at=thread.created_at,
        updated_at=thread.updated_at,
        terns=thread.last,
        running=thread.running != 0 and holder_alive(thread.holder),
        spend=known_spend(thread.total.nano_usd, thread.total.unknown),
    )


def state_of(thread: MemoryThread, window: WindowSpec) -> ThreadState:
    """The thread as it stands."""
    return ThreadState(
        info=info_of(thread),
        key=thread.key,
        fence=thread.fence,
        version=thread.version,
        window=thread.window(window),
        pending=thread.pending(),
    )


def taken(thread: MemoryThread, now: datetime, asker: str) -> bool:
    """Whether a Tern, or memory work after one, keeps ``asker`` out."""
    held = thread.running or thread.remembering
    return bool(held) and lease_holds(thread.holder, thread.lease_until, now, asker)
