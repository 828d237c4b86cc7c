"""The store in one SQLite file: ``sqlite:///file.db``. Every method is one call on the connection's thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

from agboss_memory.contract import Conversation
from agboss_memory.errors import LeaseLostError, ThreadDeletedError
from agboss_memory.messages import Block, Message, Summary, Tern
from agboss_memory.stores.contract import (
    Admission,
    Admitted,
    Append,
    Appended,
    Commit,
    Committed,
    DaySpend,
    MemoryOutcome,
    MessagePage,
    SummaryWrite,
    TernPage,
    ThreadInfo,
    ThreadRef,
    ThreadState,
    WindowSpec,
)
from agboss_memory.stores.files import DiskFiles, FileStore
from agboss_memory.stores.sqlite import blocks, conversations, messages, summaries, threads, transactions, usage
from agboss_memory.stores.sqlite.connection import Connection, Synchronous, Trace


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
        self._running: dict[int, str] = {}  # thread key -> holder; an index in the file would cost every Tern a page
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
        admitted = await self._connection.write(partial(transactions.admit, request=request), keep=True)
        if admitted.kind == "admitted":
            self._running[admitted.key] = request.holder
        return admitted

    async def commit(self, request: Commit) -> Committed:
        """See ``Store.commit``."""
        try:
            committed = await self._connection.write(partial(transactions.commit, request=request), keep=True)
        except (LeaseLostError, ThreadDeletedError):
            self._running.pop(request.key, None)
            raise
        self._running.pop(request.key, None)
        return committed

    async def renew(self, holder: str, until: datetime) -> None:
        """See ``Store.renew``; of the Terns that were admitted through this object."""
        keys = [key for key, runs in self._running.items() if runs == holder]
        if keys:
            await self._connection.write(partial(threads.renew, keys=keys, holder=holder, until=until))

    async def write_summary(self, request: SummaryWrite) -> Summary:
        """See ``Store.write_summary``."""
        return await self._connection.write(partial(transactions.write_summary, request=request))

    async def settle(self, request: MemoryOutcome) -> None:
        """See ``Store.settle``."""
        await self._connection.write(partial(transactions.settle, request=request))

    async def thread(self, ref: ThreadRef, window: WindowSpec) -> ThreadState:
        """See ``Store.thread``."""
        return await self._connection.read(partial(transactions.state, ref=ref, spec=window))

    async def threads(self, workflow: str, owner: str | None, after: str | None, limit: int) -> tuple[ThreadInfo, ...]:
        """See ``Store.threads``. Newest means made last."""
        return await self._connection.read(
            partial(threads.page, workflow=workflow, owner=owner, after=after, limit=limit)
        )

    async def terns(self, key: int, page: TernPage) -> tuple[Tern, ...]:
        """See ``Store.terns``."""
        return await self._connection.read(partial(transactions.terns_with_usage, key=key, asked=page))

    async def messages(self, key: int, page: MessagePage) -> tuple[Message, ...]:
        """See ``Store.messages``."""
        return await self._connection.read(partial(messages.page, key=key, asked=page))

    async def append(self, request: Append) -> Appended:
        """See ``Store.append``."""
        return await self._connection.write(partial(transactions.append, request=request))

    async def conversation(self, key: int, agent: str, limit: int) -> Conversation:
        """See ``Store.conversation``."""
        return await self._connection.read(partial(transactions.conversation, key=key, agent=agent, limit=limit))

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

    async def summaries(self, key: int, agent: str = "", all_states: bool = False) -> tuple[Summary, ...]:
        """See ``Store.summaries``."""
        return await self._connection.read(partial(summaries.of_agent, key=key, agent=agent, all_states=all_states))

    async def blocks(self, key: int, states: Sequence[str], limit: int) -> tuple[Block, ...]:
        """See ``Store.blocks``."""
        return await self._connection.read(partial(blocks.in_states, key=key, states=states, limit=limit))

    async def retire(self, key: int, summary: int, now: datetime) -> Summary | None:
        """See ``Store.retire``."""
        return await self._connection.write(partial(transactions.retire, key=key, number=summary))

    async def delete_thread(self, ref: ThreadRef) -> None:
        """See ``Store.delete_thread``."""
        await self._connection.write(partial(transactions.delete, ref=ref, contents=self._files))

    async def day_spend(self, workflow: str, day: str) -> DaySpend:
        """See ``Store.day_spend``."""
        return await self._connection.read(partial(usage.day_spend, workflow=workflow, day=day))
