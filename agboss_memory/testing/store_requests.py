"""Requests to a store with everything filled in that a test does not care about."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from agboss_memory.messages import Block, Message, Summary, Tern, TernStatus, UsageRecord
from agboss_memory.stores.contract import (
    Admission,
    Admitted,
    BookedUsage,
    Commit,
    Committed,
    Store,
    SummaryWrite,
    TernPage,
    ThreadRef,
    WindowSpec,
)

NOW = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)
DAY = "2026-01-31"
WIDE = WindowSpec(terns=10, summaries=10)


def later(seconds: float) -> datetime:
    """A moment after ``NOW``."""
    return NOW + timedelta(seconds=seconds)


def admission(task: str = "hi", **changes: Any) -> Admission:
    """A request to start a Tern in thread ``t`` of workflow ``w``."""
    values: dict[str, Any] = {
        "workflow": "w",
        "thread": "t",
        "create": True,
        "owner": None,
        "task": task,
        "start": "ask",
        "holder": "one",
        "now": NOW,
        "version": "1",
        "config_hash": "abc",
        "window": WIDE,
    }
    return Admission(**{**values, **changes})


def conversation(task: str, answer: str, agent: str = "desk") -> tuple[Message, ...]:
    """A question and its answer."""
    return (
        Message(role="user", content=task, agent=agent, created_at=NOW, tokens=2, tokenizer="o200k_base"),
        Message(role="assistant", content=answer, agent=agent, created_at=NOW, tokens=3, tokenizer="o200k_base"),
    )


def booked(step_key: str = "desk.model.1", **changes: Any) -> BookedUsage:
    """A booked call of 10 + 5 tokens for 0.0000015 US dollars."""
    values: dict[str, Any] = {
        "caller": "desk",
        "model": "m",
        "input_tokens": 10,
        "output_tokens": 5,
        "usd": Decimal("0.0000015"),
        "source": "price-table",
    }
    return BookedUsage(step_key=step_key, record=UsageRecord(**{**values, **changes}))


def ending(
    admitted: Admitted,
    answer: str = "hello",
    *,
    task: str = "hi",
    status: TernStatus = TernStatus.ANSWERED,
    tern: dict[str, Any] | None = None,
    **changes: Any,
) -> Commit:
    """The final transaction of an admitted Tern."""
    values: dict[str, Any] = {
        "number": admitted.number,
        "task": task,
        "answer": answer,
        "status": status,
        "agent": "desk",
        "start": "ask",
        "finish": "done",
        "path": ("desk",),
        "version": "1",
        "config_hash": "abc",
        "started_at": NOW,
        "finished_at": NOW if status.finished else None,
        "tokens": 5,
    }
    made: dict[str, Any] = {
        "key": admitted.key,
        "fence": admitted.fence,
        "tern": Tern(**{**values, **(tern or {})}),
        "now": NOW,
    }
    return Commit(**{**made, **changes})


async def run_tern(
    store: Store, task: str = "hi", answer: str = "hello", *, commit: dict[str, Any] | None = None, **changes: Any
) -> tuple[Admitted, Committed]:
    """One whole Tern with its two messages and one booked call."""
    admitted = await store.admit(admission(task, **changes))
    values: dict[str, Any] = {"messages": conversation(task, answer), "usage": (booked(),), **(commit or {})}
    return admitted, await store.commit(ending(admitted, answer, task=task, **values))


async def run_terns(store: Store, count: int, **changes: Any) -> Admitted:
    """Several Terns ``q1`` → ``a1``, ``q2`` → ``a2``, ... The last admission is returned."""
    admitted = Admitted(kind="busy", thread="")
    for number in range(1, count + 1):
        admitted, _ = await run_tern(store, f"q{number}", f"a{number}", **changes)
    return admitted


def pair(first: int, last: int) -> tuple[Block, ...]:
    """A block to plan."""
    return (Block(first=first, last=last),)


def summary(first: int, last: int, **changes: Any) -> Summary:
    """A summary of a block."""
    values: dict[str, Any] = {
        "text": f"{first}-{last}",
        "tokens": 3,
        "model": "m",
        "usd": Decimal("0.01"),
        "prompt_hash": "p",
        "created_at": NOW,
    }
    return Summary(first=first, last=last, **{**values, **changes})


def summary_write(admitted: Admitted, first: int, last: int, **changes: Any) -> SummaryWrite:
    """A summary of a block with one booked call, during the Tern of ``admitted``."""
    values: dict[str, Any] = {
        "key": admitted.key,
        "tern": admitted.number,
        "summary": summary(first, last),
        "now": NOW,
        "usage": (booked(f"compact.{first}-{last}", purpose="compaction"),),
    }
    return SummaryWrite(**{**values, **changes})


def ref(thread: str = "t", **changes: Any) -> ThreadRef:
    """Names thread ``t`` of workflow ``w``."""
    values: dict[str, Any] = {"workflow": "w", "thread": thread}
    return ThreadRef(**{**values, **changes})


async def version_of(store: Store, thread: str = "t") -> int:
    """The version of a thread."""
    return (await store.thread(ref(thread), WindowSpec())).version


async def all_terns(store: Store, key: int) -> tuple[Tern, ...]:
    """Every Tern of a short thread."""
    return await store.terns(key, TernPage(limit=1000))


def numbers(terns: Sequence[Tern]) -> list[int]:
    """Their numbers."""
    return [tern.number for tern in terns]
