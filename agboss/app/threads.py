"""``app.threads``: list, read, export, import, check and delete threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import agboss.app as parts  # what goes on with paused turns, and copies of threads, are loaded when they are used
import agboss_memory.stores as stores
from agboss.app.request import check_count, check_id
from agboss.errors import InvalidInputError
from agboss.pauses import Pause, PauseAnswer, questions
from agboss.recording import RecordedCall, recorded_call
from agboss.units import new_id
from agboss_memory.contract import utc_now
from agboss_memory.messages import Message, Summary, Tern
from agboss_memory.records import Record, replace
from agboss_memory.stores.contract import (
    Append,
    Finding,
    Store,
    TernPage,
    ThreadCopy,
    ThreadInfo,
    ThreadRef,
    WindowSpec,
)
from agboss_memory.wording import quoted

if TYPE_CHECKING:
    from agboss.app.lifecycle import Lifecycle

PAGE = 200
"""Terns read at once."""


class Thread(Record, kw_only=True):
    """A thread with its Terns.

    Attributes:
        id: The thread's id.
        workflow: The workflow it belongs to.
        owner: Its owner, None when it has none.
        created_at: Aware UTC.
        terns: Oldest first.
        spend: What all of the thread has cost in US dollars, also the Terns that are left out here; None when the cost of
            a call is unknown.
    """

    id: str
    workflow: str
    owner: str | None
    created_at: datetime
    terns: tuple[Tern, ...]
    spend: Decimal | None = None


class ThreadExport(Record, kw_only=True):
    """Everything that is stored of a thread: Terns, what the agents said, and every summary ever made.

    Attributes:
        thread: The thread with its Terns.
        messages: What the agents said, Tern by Tern; first what was stored outside a Tern.
        summaries: In the order in which they were written.
        copy: The same as the store's records, with what people do not read: lineage, blocks, due work, step keys.
    """

    thread: Thread
    messages: tuple[Message, ...]
    summaries: tuple[Summary, ...]
    copy: ThreadCopy

    def to_dict(self) -> dict[str, Any]:
        """The export for people and reports, as JSON-ready values. It cannot be imported; ``lines`` can."""
        from pydantic_core import to_jsonable_python

        shown = {"thread": self.thread, "messages": self.messages, "summaries": self.summaries}
        return to_jsonable_python(shown, fallback=str)

    def lines(self) -> Iterator[str]:
        """The export as JSON Lines, each with its line end: lossless, for ``import_``."""
        return stores.dump_thread(self.copy)


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
        check_count("limit", limit, least=1)
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
            check_count("last", last, least=0)
        runtime = await self._lifecycle.runtime()
        state = await runtime.store.thread(self._ref(thread, owner), WindowSpec())
        if last is not None:
            terns = await runtime.store.terns(state.key, TernPage(limit=last, newest=True)) if last > 0 else ()
        else:
            terns = tuple([tern async for tern in self._all(state.key)])
        info = state.info
        return Thread(
            id=info.id,
            workflow=info.workflow,
            owner=info.owner,
            created_at=info.created_at,
            terns=terns,
            spend=info.spend,
        )

    async def terns(
        self, thread: str, *, before: int | None = None, limit: int = 100, owner: str | None = None
    ) -> tuple[Tern, ...]:
        """A page of a thread's Terns, oldest first.

        Args:
            thread: The thread.
            before: Only Terns with a smaller number, the newest of them; None = the newest of all.
            limit: At most so many, 1 or more; default 100.
            owner: Who asks.

        Raises:
            InvalidInputError: ``before`` or ``limit`` is below 1.
            UnknownThreadError: No such thread, or one of another owner.
        """
        check_count("limit", limit, least=1)
        if before is not None:
            check_count("before", before, least=1)
        store = (await self._lifecycle.runtime()).store
        state = await store.thread(self._ref(thread, owner), WindowSpec())
        return await store.terns(state.key, TernPage(before=before, limit=limit, newest=True))

    async def export(self, thread: str, *, owner: str | None = None) -> ThreadExport:
        """Everything stored of a thread, as of one moment; a Tern that is running is left out.

        Raises:
            UnknownThreadError: No such thread, or one of another owner.
        """
        runtime = await self._lifecycle.runtime()
        copy = await runtime.store.copy(self._ref(thread, owner))
        said = sorted(copy.messages, key=lambda item: (item.message.tern, item.place))
        return ThreadExport(
            thread=Thread(
                id=copy.thread,
                workflow=copy.workflow,
                owner=copy.owner,
                created_at=copy.created_at,
                terns=tuple(
                    replace(item.tern, usage=tuple(booked.record for booked in item.usage)) for item in copy.terns
                ),
            ),
            messages=tuple(item.message for item in said),
            summaries=tuple(item.summary for item in copy.summaries),
            copy=copy,
        )

    async def import_(self, lines: Iterable[str], *, thread: str | None = None) -> Thread:
        """Take in a thread that ``ThreadExport.lines`` wrote: every line is checked, then all is written or nothing.

        Args:
            lines: Such as an open file. Of several results of one tool call the last counts.
            thread: Another id for it; its idempotency keys are then left out. None = the id that it had.

        Returns:
            The thread as it is stored now.

        Raises:
            CopyError: A line or the whole cannot be taken in, or the thread or one of its idempotency keys is there.
            InvalidInputError: It belongs to another workflow, an id is not acceptable, or ``lines`` are no lines
                (``copy.no-lines``).
        """
        copy = await asyncio.to_thread(stores.load_thread, lines)  # thousands of Terns take seconds
        name = self._lifecycle.assembly.spec.name
        if copy.workflow != name:
            raise InvalidInputError(
                "threads.other-workflow",
                f"the thread belongs to workflow {quoted(copy.workflow)}, not to {name!r}",
                "import it with the App of its own workflow",
                workflow=copy.workflow,
            )
        if thread is not None and thread != copy.thread:
            unkeyed = tuple(replace(item, idempotency_key=None) for item in copy.terns)
            copy = replace(copy, thread=thread, terns=unkeyed)
        self._ref(copy.thread, copy.owner)
        runtime = await self._lifecycle.runtime()
        await runtime.store.restore(copy)
        runtime.windows.drop(copy.thread)
        return await self.get(copy.thread)

    async def check(self) -> tuple[Finding, ...]:
        """Read everything in the store, of all workflows, and tell what cannot be. Changes nothing.

        Returns:
            One record per finding with code, thread, what is wrong and what to do; empty when all is well.
        """
        return await (await self._lifecycle.runtime()).store.check()

    async def calls(self, thread: str, tern: int, *, owner: str | None = None) -> tuple[RecordedCall, ...]:
        """What the model calls of a Tern were shown, by agent; of an App with ``record_views=True``.

        Raises:
            InvalidInputError: ``tern`` is below 1, or the thread has no such Tern (``memory.no-such-tern``).
            UnknownThreadError: No such thread, or one of another owner.
        """
        store, key = await self._place(thread, tern, owner)
        return tuple(map(recorded_call, await store.views(key, tern)))

    async def pauses(self, thread: str, *, owner: str | None = None) -> tuple[Pause, ...]:
        """The calls of a thread that wait for a decision, oldest Tern first.

        Raises:
            UnknownThreadError: No such thread, or one of another owner.
        """
        runtime = await self._lifecycle.runtime()
        state = await runtime.store.thread(self._ref(thread, owner), WindowSpec())
        return await parts.open_pauses_of(runtime, state.key, thread)

    async def decisions(self, thread: str, tern: int, *, owner: str | None = None) -> tuple[PauseAnswer, ...]:
        """What a Tern was asked about, in that order, and what was decided; kept as long as the thread.

        Raises:
            InvalidInputError: ``tern`` is below 1, or the thread has no such Tern (``memory.no-such-tern``).
            UnknownThreadError: No such thread, or one of another owner.
        """
        store, key = await self._place(thread, tern, owner)
        asked = questions(await store.steps(key, tern), thread, tern)
        return tuple(PauseAnswer(pause=one.pause, decision=one.decision) for one in asked)

    async def delete(self, thread: str, *, owner: str | None = None) -> None:
        """Remove a thread with all that belongs to it.

        A Tern that still runs in it is stopped, here at once and elsewhere at the next sign of life of its lease; its
        caller gets ThreadDeletedError.

        Raises:
            UnknownThreadError: No such thread, or one of another owner.
        """
        runtime = await self._lifecycle.runtime()
        await runtime.store.delete_thread(self._ref(thread, owner))
        runtime.windows.drop(thread)
        runtime.stop(thread)

    async def _all(self, key: int) -> AsyncIterator[Tern]:
        store = (await self._lifecycle.runtime()).store
        after = 0
        while page := await store.terns(key, TernPage(after=after, limit=PAGE)):
            for tern in page:
                yield tern
            after = page[-1].number

    async def _place(self, thread: str, tern: int, owner: str | None) -> tuple[Store, int]:
        """The store and the thread's key there, once it is sure that the thread has the Tern."""
        check_count("tern", tern, least=1)
        store = (await self._lifecycle.runtime()).store
        state = await store.thread(self._ref(thread, owner), WindowSpec())
        await parts.past_tern(store, state, tern)
        return store, state.key

    def _ref(self, thread: str, owner: str | None) -> ThreadRef:
        check_id("thread", thread)
        check_id("owner", owner)
        return ThreadRef(
            workflow=self._lifecycle.assembly.spec.name, thread=thread, owner=owner, any_owner=owner is None
        )
