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
from agboss_memory.stores.refusals import lost_memory, refuse_invalid
from agboss_memory.stores.spending import SpendQuery, SpendRow
from agboss_memory.stores.sqlite import (
    admissions,
    blocks,
    checking,
    conversations,
    copying,
    keys,
    messages,
    pausing,
    reads,
    spending,
    steps,
    summaries,
    terns,
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
    """A Tern, or memory work after it, of this process: whose it is, and under which fence."""

    holder: str
    number: int
    fence: int


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
        opened = self._connection

        def admit(connection: sqlite3.Connection) -> Admitted:
            return keys.told(admissions.admit(connection, keys.queued(request, opened.files)), opened.files)

        admitted = await opened.write(admit, keep=True)
        self._take_note(admitted, request)
        return admitted

    def _told(self, call: Callable[[sqlite3.Connection], keys.Told]) -> Callable[[sqlite3.Connection], keys.Told]:
        """What ``call`` gives, with the key that callers get: which file it is in shows on the connection's thread."""
        opened = self._connection
        return lambda connection: keys.told(call(connection), opened.files)

    def _told_all(
        self, call: Callable[[sqlite3.Connection], tuple[keys.Told, ...]]
    ) -> Callable[[sqlite3.Connection], tuple[keys.Told, ...]]:
        opened = self._connection
        return lambda connection: keys.told_all(call(connection), opened.files)

    def _place(self, key: int) -> keys.InFile:
        return keys.in_file(key, self._connection.files)

    def _take_note(self, admitted: Admitted, request: Admission | Resumption) -> None:
        if admitted.kind == "busy":
            if admitted.ticket:
                self._tickets[admitted.ticket] = request.holder
        else:
            self._tickets.pop(request.ticket, None)
            self._note(admitted, request.holder)

    def _note(self, admitted: Admitted, holder: str) -> None:
        if admitted.kind == "admitted":
            self._running[admitted.key] = _Running(holder=holder, number=admitted.number, fence=admitted.fence)

    async def claim(self, request: Claim) -> Admitted:
        """See ``Store.claim``."""
        at = self._place(request.key)
        claim = self._told(partial(admissions.claim, request=keys.asked(request, at)))
        admitted = await self._connection.write(claim, keep=True, since=at.file)
        self._note(admitted, request.holder)
        return admitted

    async def paused(self, key: int) -> tuple[Resumable, ...]:
        """See ``Store.paused``."""
        at = self._place(key)
        return await self._connection.read(self._told_all(partial(pausing.paused, key=at.number)), since=at.file)

    async def resume(self, request: Resumption) -> Admitted:
        """See ``Store.resume``."""
        at, opened = self._place(request.key), self._connection
        here = keys.asked(request, at)

        def resume(connection: sqlite3.Connection) -> Admitted:
            return keys.told(pausing.resume(connection, keys.queued(here, opened.files)), opened.files)

        admitted = await opened.write(resume, keep=True, since=at.file)
        self._take_note(admitted, request)
        return admitted

    async def commit(self, request: Commit) -> Committed:
        """See ``Store.commit``."""
        at = self._place(request.key)
        commit = partial(transactions.commit, request=keys.asked(request, at))
        try:
            committed = await self._connection.write(commit, keep=True, since=at.file)
        except (LeaseLostError, ThreadDeletedError):
            self._forget(request.key, request.fence)
            raise
        if not committed.held:
            self._let_go(request.key)
        return committed

    def _let_go(self, key: int) -> None:
        self._running.pop(key, None)
        self._bell.ring(self._place(key).number)

    def _forget(self, key: int, fence: int | None) -> None:
        """Whoever had the thread under this fence has it no longer; its lease is not renewed any more."""
        found = self._running.get(key)
        if found is not None and found.fence == fence:
            del self._running[key]

    async def owing(self, workflow: str, now: datetime, after: int, limit: int) -> tuple[Owing, ...]:
        """See ``Store.owing``."""
        at = self._place(after)
        owing = partial(admissions.owing, workflow=workflow, now=now, after=at.number, limit=limit)
        return await self._connection.read(self._told_all(owing), since=at.file)

    async def hold(self, request: MemoryClaim) -> ThreadState | None:
        """See ``Store.hold``."""
        at, opened = self._place(request.key), self._connection
        hold = partial(admissions.hold, request=keys.asked(request, at))

        def told(connection: sqlite3.Connection) -> ThreadState | None:
            state = hold(connection)
            return None if state is None else keys.told(state, opened.files)

        state = await opened.write(told, keep=True, since=at.file)
        if state is not None:
            self._running[state.key] = _Running(holder=request.holder, number=state.info.terns, fence=state.fence)
        return state

    async def release(self, key: int, fence: int, number: int) -> None:
        """See ``Store.release``."""
        if key not in self._running:
            return
        at = self._place(key)
        try:
            released = await self._connection.write(
                partial(threads.release, key=at.number, fence=fence, number=number), since=at.file
            )
        except BaseException:
            self._running.pop(key, None)  # it is not renewed any more
            raise
        if released:
            self._let_go(key)

    async def renew(self, holder: str, until: datetime) -> tuple[Interruption, ...]:
        """See ``Store.renew``."""
        file = self._connection.files
        places = ((self._place(key), item) for key, item in self._running.items())
        running = {at.number: item.number for at, item in places if (item.holder, at.file) == (holder, file)}
        lines = ((self._place(ticket), waits) for ticket, waits in self._tickets.items())
        waiting = [at.number for at, waits in lines if (waits, at.file) == (holder, file)]
        if not (running or waiting):
            return ()

        def extend(connection: sqlite3.Connection) -> tuple[Interruption, ...]:
            tickets.renew(connection, waiting, until)
            return threads.renew(connection, running, holder, until)

        return keys.told_all(await self._connection.write(extend, since=file), file)

    async def enqueue(self, request: Enqueue) -> int:
        """See ``Store.enqueue``."""
        opened = self._connection

        def take(connection: sqlite3.Connection) -> int:
            return keys.key_of(tickets.take(connection, request), opened.files)

        ticket = await opened.write(take, keep=True)
        self._tickets[ticket] = request.holder
        return ticket

    async def leave(self, ticket: int) -> None:
        """See ``Store.leave``."""
        self._tickets.pop(ticket, None)
        at = self._place(ticket)
        if at.file != self._connection.files:
            return  # it went with the file that it was of
        key = await self._connection.write(partial(tickets.give_back, ticket=at.number), since=at.file)
        self._bell.ring(key)

    async def wait(self, key: int, seconds: float) -> None:
        """See ``Store.wait``."""
        await self._bell.wait(self._place(key).number, seconds)

    async def keyed(self, owner: str | None, idempotency_key: str) -> bool:
        """See ``Store.keyed``."""
        found = await self._connection.read(partial(terns.keyed, owner=owner, idempotency_key=idempotency_key))
        return found is not None

    async def interrupt(self, ref: ThreadRef, unless: int = 0) -> Interruption | None:
        """See ``Store.interrupt``."""
        opened = self._connection

        def interrupt(connection: sqlite3.Connection) -> Interruption | None:
            asked = threads.interrupt(connection, ref, unless)
            return None if asked is None else keys.told(asked, opened.files)

        return await opened.write(interrupt)

    async def resumable(self, workflow: str, now: datetime, after: int, limit: int) -> tuple[Resumable, ...]:
        """See ``Store.resumable``."""
        at = self._place(after)
        resumable = partial(admissions.resumable, workflow=workflow, now=now, after=at.number, limit=limit)
        return await self._connection.read(self._told_all(resumable), since=at.file)

    async def write_step(self, request: StepWrite) -> None:
        """See ``Store.write_step``."""
        at = self._place(request.key)
        await self._connection.write(partial(transactions.write_step, request=keys.asked(request, at)), since=at.file)

    async def steps(self, key: int, number: int) -> tuple[Step, ...]:
        """See ``Store.steps``."""
        at = self._place(key)
        return await self._connection.read(partial(steps.of_tern, key=at.number, number=number), since=at.file)

    async def write_views(self, key: int, views: tuple[ViewRecord, ...]) -> None:
        """See ``Store.write_views``."""
        at = self._place(key)
        await self._connection.write(partial(shown.write, key=at.number, views=views), since=at.file)

    async def views(self, key: int, tern: int) -> tuple[ViewRecord, ...]:
        """See ``Store.views``."""
        at = self._place(key)
        return await self._connection.read(partial(shown.of_tern, key=at.number, tern=tern), since=at.file)

    async def write_summary(self, request: SummaryWrite) -> Summary:
        """See ``Store.write_summary``."""
        at = self._place(request.key)
        write = partial(transactions.write_summary, request=keys.asked(request, at))
        stored = await self._connection.write(write, since=at.file)
        if stored is None:
            self._forget(request.key, request.fence)
            raise lost_memory(request.key, request.tern)
        return stored

    async def settle(self, request: MemoryOutcome) -> None:
        """See ``Store.settle``."""
        at = self._place(request.key)
        settle = partial(transactions.settle, request=keys.asked(request, at))
        left = await self._connection.write(settle, since=at.file)
        if left == "lost":
            self._forget(request.key, request.fence)
            raise lost_memory(request.key, request.tern)
        if left == "free":
            self._let_go(request.key)

    async def thread(self, ref: ThreadRef, window: WindowSpec) -> ThreadState:
        """See ``Store.thread``."""
        return await self._connection.read(self._told(partial(reads.state, ref=ref, spec=window)))

    async def threads(self, workflow: str, owner: str | None, after: str | None, limit: int) -> tuple[ThreadInfo, ...]:
        """See ``Store.threads``. Newest means made last."""
        return await self._connection.read(
            partial(threads.page, workflow=workflow, owner=owner, after=after, limit=limit)
        )

    async def terns(self, key: int, page: TernPage) -> tuple[Tern, ...]:
        """See ``Store.terns``."""
        at = self._place(key)
        return await self._connection.read(partial(reads.terns_with_usage, key=at.number, asked=page), since=at.file)

    async def messages(self, key: int, page: MessagePage) -> tuple[Message, ...]:
        """See ``Store.messages``."""
        at = self._place(key)
        return await self._connection.read(partial(messages.page, key=at.number, asked=page), since=at.file)

    async def append(self, request: Append) -> Appended:
        """See ``Store.append``."""
        return await self._connection.write(self._told(partial(transactions.append, request=request)))

    async def conversation(self, key: int, agent: str, limit: int) -> Conversation:
        """See ``Store.conversation``."""
        at = self._place(key)
        return await self._connection.read(
            partial(reads.conversation, key=at.number, agent=agent, limit=limit), since=at.file
        )

    async def message(self, key: int, agent: str, number: int) -> Message | None:
        """See ``Store.message``."""
        at = self._place(key)
        return await self._connection.read(
            partial(messages.one, key=at.number, agent=agent, number=number), since=at.file
        )

    async def write_counts(self, key: int, agent: str, counts: Mapping[int, int], tokenizer: str) -> None:
        """See ``Store.write_counts``."""
        at = self._place(key)
        write = partial(conversations.write_counts, key=at.number, agent=agent, counts=counts, name=tokenizer)
        await self._connection.write(write, since=at.file)

    async def compress_result(self, key: int, agent: str, number: int, stub: str, tokens: int) -> bool:
        """See ``Store.compress_result``."""
        at = self._place(key)
        compress = partial(conversations.compress, key=at.number, agent=agent, number=number, stub=stub, tokens=tokens)
        return await self._connection.write(compress, since=at.file)

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
        at = self._place(key)
        if before is None and limit is None:
            read = partial(summaries.of_agent, key=at.number, agent=agent, all_states=all_states)
        else:
            most = partial(summaries.newest, before=before, limit=limit)
            read = partial(most, key=at.number, agent=agent, all_states=all_states)
        return await self._connection.read(read, since=at.file)

    async def blocks(self, key: int, states: Sequence[str], limit: int) -> tuple[Block, ...]:
        """See ``Store.blocks``."""
        at = self._place(key)
        return await self._connection.read(
            partial(blocks.in_states, key=at.number, states=states, limit=limit), since=at.file
        )

    async def retire(self, key: int, summary: int, now: datetime) -> Summary | None:
        """See ``Store.retire``."""
        at = self._place(key)
        return await self._connection.write(partial(transactions.retire, key=at.number, number=summary), since=at.file)

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
        await asyncio.to_thread(refuse_invalid, copy)
        await self._connection.write(partial(copying.restore, given=copy))

    async def check(self) -> tuple[Finding, ...]:
        """See ``Store.check``. Other calls go on meanwhile."""
        path = self._connection.path
        await self._connection.read(lambda _: None)  # the file is still there
        try:
            return await asyncio.to_thread(checking.check, path, self._files)
        except (sqlite3.Error, OSError) as error:
            raise store_fault(error, path) from error
