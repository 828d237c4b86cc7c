"""The store in one SQLite file: ``sqlite:///file.db``. Every method is one call on the connection's thread."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from agboss_memory.contract import Conversation
from agboss_memory.errors import LeaseLostError, ThreadDeletedError
from agboss_memory.messages import Block, Message, Summary, Tern
from agboss_memory.records import Record
from agboss_memory.stores.bell import bell_of
from agboss_memory.stores.contract import (
    Admission,
    Admitted,
    Append,
    Appended,
    Claim,
    Commit,
    Committed,
    DaySpend,
    Enqueue,
    Finding,
    Interruption,
    MemoryClaim,
    MemoryOutcome,
    MessagePage,
    Owing,
    Resumable,
    Step,
    StepWrite,
    SummaryWrite,
    TernPage,
    ThreadCopy,
    ThreadInfo,
    ThreadRef,
    ThreadState,
    WindowSpec,
)
from agboss_memory.stores.files import DiskFiles, FileStore
from agboss_memory.stores.pauses import Resumption
from agboss_memory.stores.refusals import refuse_invalid
from agboss_memory.stores.spending import SpendQuery, SpendRow
from agboss_memory.stores.sqlite import (
    admissions,
    blocks,
    checking,
    conversations,
    copying,
    messages,
    pausing,
    reads,
    spending,
    steps,
    summaries,
    threads,
    tickets,
    transactions,
    usage,
)
from agboss_memory.stores.sqlite import views as shown
from agboss_memory.stores.sqlite.connection import Connection, Synchronous, Trace
from agboss_memory.stores.sqlite.faults import store_fault
from agboss_memory.stores.views import ViewRecord

T = TypeVar("T")


class _Running(Record, kw_only=True):
    """A Tern, or memory work after it, of this process: whose, under which fence, and the count of the file that it is in."""

    holder: str
    number: int
    fence: int
    file: int


class SqliteStore:
    """Keeps threads in an SQLite file that several processes of one machine may use at once.

    Args:
        path: The file; it and its folder are made when missing. Read against the working directory of now.
        url: How the store calls itself.
        synchronous: ``FULL``: what was acknowledged survives a power loss. ``NORMAL``: it survives a crash of the
            process; the last Terns may be lost with the power.
        timeout: How long to wait for another process's lock, in seconds.
        trace: Called with every SQL statement that runs, on the store's thread.
    """

    def __init__(
        self,
        path: Path,
        *,
        url: str = "",
        synchronous: Synchronous = "FULL",
        timeout: float = 5.0,
        trace: Trace | None = None,
    ) -> None:
        path = path.absolute()
        self.url = url or f"sqlite:///{path}"
        self._running: dict[int, _Running] = {}  # by thread key; an index in the file would cost every Tern a page
        self._tickets: dict[int, str] = {}  # ticket -> holder
        self._bell = bell_of(Path(os.path.realpath(path)))  # a link that leads round is told when it is opened
        self._connection = Connection(path, synchronous=synchronous, timeout=timeout, trace=trace)
        self._files = DiskFiles(path.with_name(f"{path.name}.files"))

    @property
    def files(self) -> FileStore:
        """See ``Store.files``: the folder ``<file>.files`` beside the database."""
        return self._files

    async def open(self) -> None:
        """See ``Store.open``."""
        await self._connection.open()

    async def close(self) -> None:
        """See ``Store.close``."""
        await self._connection.close()

    async def admit(self, request: Admission) -> Admitted:
        """See ``Store.admit``."""
        admitted, file = await self._begin(partial(admissions.admit, request=request))
        self._take_note(admitted, file, request)
        return admitted

    async def _begin(self, call: Callable[[sqlite3.Connection], T]) -> tuple[T, int]:
        """Write the begin of a Tern or of memory work; also gives the count of the file that it is in."""
        opened = self._connection
        return await opened.write(lambda connection: (call(connection), opened.files), keep=True)

    def _take_note(self, admitted: Admitted, file: int, request: Admission | Resumption) -> None:
        if admitted.kind == "busy":
            if admitted.ticket:
                self._tickets[admitted.ticket] = request.holder
        else:
            self._tickets.pop(request.ticket, None)
            self._note(admitted, file, request.holder)

    def _note(self, admitted: Admitted, file: int, holder: str) -> None:
        if admitted.kind == "admitted":
            self._running[admitted.key] = _Running(
                holder=holder, number=admitted.number, fence=admitted.fence, file=file
            )

    def _since(self, key: int, fence: int) -> int | None:
        """The file that the Tern began in: in another one it must not write to what has its numbers there."""
        found = self._running.get(key)
        return found.file if found is not None and found.fence == fence else None

    async def claim(self, request: Claim) -> Admitted:
        """See ``Store.claim``."""
        admitted, file = await self._begin(partial(admissions.claim, request=request))
        self._note(admitted, file, request.holder)
        return admitted

    async def paused(self, key: int) -> tuple[Resumable, ...]:
        """See ``Store.paused``."""
        return await self._connection.read(partial(pausing.paused, key=key))

    async def resume(self, request: Resumption) -> Admitted:
        """See ``Store.resume``."""
        admitted, file = await self._begin(partial(pausing.resume, request=request))
        self._take_note(admitted, file, request)
        return admitted

    async def commit(self, request: Commit) -> Committed:
        """See ``Store.commit``."""
        try:
            committed = await self._connection.write(
                partial(transactions.commit, request=request), keep=True, since=self._since(request.key, request.fence)
            )
        except (LeaseLostError, ThreadDeletedError):
            self._running.pop(request.key, None)
            raise
        if not committed.held:
            self._let_go(request.key)
        return committed

    def _let_go(self, key: int) -> None:
        self._running.pop(key, None)
        self._bell.ring(key)

    async def owing(self, workflow: str, now: datetime, after: int, limit: int) -> tuple[Owing, ...]:
        """See ``Store.owing``."""
        return await self._connection.read(
            partial(admissions.owing, workflow=workflow, now=now, after=after, limit=limit)
        )

    async def hold(self, request: MemoryClaim) -> ThreadState | None:
        """See ``Store.hold``."""
        state, file = await self._begin(partial(admissions.hold, request=request))
        if state is not None:
            self._running[request.key] = _Running(
                holder=request.holder, number=state.info.terns, fence=state.fence, file=file
            )
        return state

    async def release(self, key: int, fence: int, number: int) -> None:
        """See ``Store.release``."""
        if key not in self._running:
            return
        try:
            released = await self._connection.write(
                partial(threads.release, key=key, fence=fence, number=number), since=self._since(key, fence)
            )
        except BaseException:
            self._running.pop(key, None)  # it is not renewed any more
            raise
        if released:
            self._let_go(key)

    async def renew(self, holder: str, until: datetime) -> tuple[Interruption, ...]:
        """See ``Store.renew``."""
        file = self._connection.files
        terns = {key: item.number for key, item in self._running.items() if (item.holder, item.file) == (holder, file)}
        waiting = [ticket for ticket, waits in self._tickets.items() if waits == holder]
        if not (terns or waiting):
            return ()

        def extend(connection: sqlite3.Connection) -> tuple[Interruption, ...]:
            tickets.renew(connection, waiting, until)
            return threads.renew(connection, terns, holder, until)

        return await self._connection.write(extend, since=file)

    async def enqueue(self, request: Enqueue) -> int:
        """See ``Store.enqueue``."""
        ticket = await self._connection.write(partial(tickets.take, request=request), keep=True)
        self._tickets[ticket] = request.holder
        return ticket

    async def leave(self, ticket: int) -> None:
        """See ``Store.leave``."""
        self._tickets.pop(ticket, None)
        key = await self._connection.write(partial(tickets.give_back, ticket=ticket))
        self._bell.ring(key)

    async def wait(self, key: int, seconds: float) -> None:
        """See ``Store.wait``."""
        await self._bell.wait(key, seconds)

    async def interrupt(self, ref: ThreadRef, *, unless: str | None = None) -> Interruption | None:
        """See ``Store.interrupt``."""
        return await self._connection.write(partial(threads.interrupt, ref=ref, unless=unless))

    async def resumable(self, workflow: str, now: datetime, after: int, limit: int) -> tuple[Resumable, ...]:
        """See ``Store.resumable``."""
        return await self._connection.read(
            partial(admissions.resumable, workflow=workflow, now=now, after=after, limit=limit)
        )

    async def write_step(self, request: StepWrite) -> None:
        """See ``Store.write_step``."""
        since = self._since(request.key, request.fence)
        await self._connection.write(partial(transactions.write_step, request=request), since=since)

    async def steps(self, key: int, number: int) -> tuple[Step, ...]:
        """See ``Store.steps``."""
        return await self._connection.read(partial(steps.of_tern, key=key, number=number))

    async def write_views(self, key: int, views: tuple[ViewRecord, ...]) -> None:
        """See ``Store.write_views``."""
        await self._connection.write(partial(shown.write, key=key, views=views))

    async def views(self, key: int, tern: int) -> tuple[ViewRecord, ...]:
        """See ``Store.views``."""
        return await self._connection.read(partial(shown.of_tern, key=key, tern=tern))

    async def write_summary(self, request: SummaryWrite) -> Summary:
        """See ``Store.write_summary``."""
        return await self._connection.write(partial(transactions.write_summary, request=request))

    async def settle(self, request: MemoryOutcome) -> None:
        """See ``Store.settle``."""
        if await self._connection.write(partial(transactions.settle, request=request)):
            self._let_go(request.key)

    async def thread(self, ref: ThreadRef, window: WindowSpec) -> ThreadState:
        """See ``Store.thread``."""
        return await self._connection.read(partial(reads.state, ref=ref, spec=window))

    async def threads(self, workflow: str, owner: str | None, after: str | None, limit: int) -> tuple[ThreadInfo, ...]:
        """See ``Store.threads``. Newest means made last."""
        return await self._connection.read(
            partial(threads.page, workflow=workflow, owner=owner, after=after, limit=limit)
        )

    async def terns(self, key: int, page: TernPage) -> tuple[Tern, ...]:
        """See ``Store.terns``."""
        return await self._connection.read(partial(reads.terns_with_usage, key=key, asked=page))

    async def messages(self, key: int, page: MessagePage) -> tuple[Message, ...]:
        """See ``Store.messages``."""
        return await self._connection.read(partial(messages.page, key=key, asked=page))

    async def append(self, request: Append) -> Appended:
        """See ``Store.append``."""
        return await self._connection.write(partial(transactions.append, request=request))

    async def conversation(self, key: int, agent: str, limit: int) -> Conversation:
        """See ``Store.conversation``."""
        return await self._connection.read(partial(reads.conversation, key=key, agent=agent, limit=limit))

    async def message(self, key: int, agent: str, number: int) -> Message | None:
        """See ``Store.message``."""
        return await self._connection.read(partial(messages.one, key=key, agent=agent, number=number))

    async def write_counts(self, key: int, agent: str, counts: Mapping[int, int], tokenizer: str) -> None:
        """See ``Store.write_counts``."""
        await self._connection.write(
            partial(conversations.write_counts, key=key, agent=agent, counts=counts, name=tokenizer)
        )

    async def compress_result(self, key: int, agent: str, number: int, stub: str, tokens: int) -> bool:
        """See ``Store.compress_result``."""
        return await self._connection.write(
            partial(conversations.compress, key=key, agent=agent, number=number, stub=stub, tokens=tokens)
        )

    async def summaries(
        self,
        key: int,
        agent: str = "",
        all_states: bool = False,
        *,
        before: int | None = None,
        limit: int | None = None,
    ) -> tuple[Summary, ...]:
        """See ``Store.summaries``."""
        if before is None and limit is None:
            read = partial(summaries.of_agent, key=key, agent=agent, all_states=all_states)
        else:
            read = partial(summaries.newest, key=key, agent=agent, all_states=all_states, before=before, limit=limit)
        return await self._connection.read(read)

    async def blocks(self, key: int, states: Sequence[str], limit: int) -> tuple[Block, ...]:
        """See ``Store.blocks``."""
        return await self._connection.read(partial(blocks.in_states, key=key, states=states, limit=limit))

    async def retire(self, key: int, summary: int, now: datetime) -> Summary | None:
        """See ``Store.retire``."""
        return await self._connection.write(partial(transactions.retire, key=key, number=summary))

    async def delete_thread(self, ref: ThreadRef) -> None:
        """See ``Store.delete_thread``."""
        await self._connection.write(partial(transactions.delete, ref=ref, contents=self._files))

    async def drop_files(self, ids: Sequence[str]) -> None:
        """See ``Store.drop_files``."""
        await self._connection.write(partial(transactions.drop_files, ids=ids, contents=self._files))

    async def day_spend(self, workflow: str, day: str) -> DaySpend:
        """See ``Store.day_spend``."""
        return await self._connection.read(partial(usage.day_spend, workflow=workflow, day=day))

    async def spend(self, query: SpendQuery) -> tuple[SpendRow, ...]:
        """See ``Store.spend``."""
        return await self._connection.read(partial(spending.of_days, query=query))

    async def copy(self, ref: ThreadRef) -> ThreadCopy:
        """See ``Store.copy``."""
        return await self._connection.read(partial(copying.copy, ref=ref))

    async def restore(self, copy: ThreadCopy) -> None:
        """See ``Store.restore``."""
        refuse_invalid(copy)
        await self._connection.write(partial(copying.restore, given=copy))

    async def check(self) -> tuple[Finding, ...]:
        """See ``Store.check``. Other calls go on meanwhile."""
        path = self._connection.path
        await self._connection.read(lambda _: None)  # the file is still there
        try:
            return await asyncio.to_thread(checking.check, path, self._files)
        except (sqlite3.Error, OSError) as error:
            raise store_fault(error, path) from error
