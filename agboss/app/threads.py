"""``app.threads``: list, read, export and delete threads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic_core import to_jsonable_python

from agboss.app.request import check_id
from agboss.components.metadata import is_count
from agboss.errors import InvalidInputError
from agboss.units import new_id
from agboss_memory.contract import utc_now
from agboss_memory.messages import Message, Summary, Tern
from agboss_memory.records import Record
from agboss_memory.stores.contract import Append, MessagePage, TernPage, ThreadInfo, ThreadRef, WindowSpec

if TYPE_CHECKING:
    from agboss.app.lifecycle import Lifecycle

PAGE = 200
"""Terns read at once."""


class Thread(Record):
    """A thread with its Terns.

    Attributes:
        id: The thread's id.
        workflow: The workflow it belongs to.
        owner: Its owner, None when it has none.
        created_at: Aware UTC.
        terns: Oldest first.
    """

    id: str
    workflow: str
    owner: str | None
    created_at: datetime
    terns: tuple[Tern, ...]


class ThreadExport(Record):
    """Everything that is stored of a thread: Terns, what the agents said, and every summary ever made."""

    thread: Thread
    messages: tuple[Message, ...]
    summaries: tuple[Summary, ...]

    def to_dict(self) -> dict[str, Any]:
        """The export as JSON-ready values."""
        return to_jsonable_python(self, fallback=str)


def _check_count(name: str, value: Any, *, least: int) -> None:
    if not is_count(value, least=least):
        raise InvalidInputError("threads.bad-count", f"{name}={value!r:.80}", f"use a whole number, {least} or more")


class AppThreads:
    """The threads of one App's workflow. An operator's view: no owner is needed, one that is named is checked."""

    def __init__(self, lifecycle: Lifecycle) -> None:
        self._lifecycle = lifecycle

    async def list(
        self, *, owner: str | None = None, after: str | None = None, limit: int = 100
    ) -> tuple[ThreadInfo, ...]:
        """Threads, newest first.

        Args:
            owner: Only this owner's; None = all.
            after: Continue after this thread (the last one of the page before).
            limit: At most so many, 1 or more.

        Raises:
            InvalidInputError: ``limit``, ``owner`` or ``after`` is not acceptable.
        """
        _check_count("limit", limit, least=1)
        check_id("owner", owner)
        check_id("after", after)
        store = (await self._lifecycle.runtime()).store
        return await store.threads(self._lifecycle.assembly.spec.name, owner, after, limit)

    async def create(self, *, owner: str | None = None) -> str:
        """Make an empty thread, bound to ``owner``; gives its id."""
        check_id("owner", owner)
        runtime = await self._lifecycle.runtime()
        thread = new_id()
        await runtime.store.append(
            Append(workflow=runtime.plan.name, thread=thread, owner=owner, agent="", messages=(), now=utc_now())
        )
        return thread

    async def get(self, thread: str, last: int | None = None, *, owner: str | None = None) -> Thread:
        """A thread with all its Terns, read in pages; ``last`` = only the newest so many.

        Raises:
            InvalidInputError: ``last`` is below 0.
            UnknownThreadError: No such thread, or one of another owner.
        """
        if last is not None:
            _check_count("last", last, least=0)
        runtime = await self._lifecycle.runtime()
        state = await runtime.store.thread(self._ref(thread, owner), WindowSpec())
        if last is not None:
            terns = await runtime.store.terns(state.key, TernPage(limit=last, newest=True)) if last > 0 else ()
        else:
            terns = tuple([tern async for tern in self._all(state.key)])
        info = state.info
        return Thread(id=info.id, workflow=info.workflow, owner=info.owner, created_at=info.created_at, terns=terns)

    async def export(self, thread: str, *, owner: str | None = None) -> ThreadExport:
        """Everything stored of a thread. Raises UnknownThreadError."""
        runtime = await self._lifecycle.runtime()
        found = await self.get(thread, owner=owner)
        state = await runtime.store.thread(self._ref(thread, owner), WindowSpec())
        messages: list[Message] = []
        for tern in found.terns:
            page = MessagePage(agent=None, tern=tern.number, limit=10_000)
            messages.extend(await runtime.store.messages(state.key, page))
        summaries = await runtime.store.summaries(state.key, all_states=True)
        return ThreadExport(thread=found, messages=tuple(messages), summaries=summaries)

    async def delete(self, thread: str, *, owner: str | None = None) -> None:
        """Remove a thread with all that belongs to it; a Tern still running in it can store nothing any more.

        Raises:
            UnknownThreadError: No such thread, or one of another owner.
        """
        runtime = await self._lifecycle.runtime()
        await runtime.store.delete_thread(self._ref(thread, owner))
        runtime.windows.drop(thread)

    async def _all(self, key: int) -> AsyncIterator[Tern]:
        store = (await self._lifecycle.runtime()).store
        after = 0
        while page := await store.terns(key, TernPage(after=after, limit=PAGE)):
            for tern in page:
                yield tern
            after = page[-1].number

    def _ref(self, thread: str, owner: str | None) -> ThreadRef:
        check_id("thread", thread)
        check_id("owner", owner)
        return ThreadRef(
            workflow=self._lifecycle.assembly.spec.name, thread=thread, owner=owner, any_owner=owner is None
        )
