"""The store that keeps everything in this process: ``memory://``. For tests, demos and bots that may forget.

No method awaits inside, so each is atomic on its event loop and cannot be cancelled half-way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache

from agboss_memory.messages import EPOCH, Block, Summary, TernStatus, as_utc
from agboss_memory.records import replace
from agboss_memory.stores.bell import Bell
from agboss_memory.stores.checks import copy_findings, file_findings, sum_findings
from agboss_memory.stores.contract import (
    Admission,
    Admitted,
    Append,
    Appended,
    Claim,
    Commit,
    Committed,
    Enqueue,
    Finding,
    Interruption,
    MemoryClaim,
    MemoryOutcome,
    Owing,
    Resumable,
    StepWrite,
    SummaryWrite,
    ThreadCopy,
    ThreadInfo,
    ThreadRef,
    ThreadState,
    WindowSpec,
)
from agboss_memory.stores.files import FileStore, MemoryFiles
from agboss_memory.stores.lease import lease_holds
from agboss_memory.stores.memory_ledger import MemoryLedger
from agboss_memory.stores.memory_reads import MemoryReads
from agboss_memory.stores.memory_states import info_of, state_of, taken
from agboss_memory.stores.memory_terns import ended
from agboss_memory.stores.memory_thread import MemoryThread
from agboss_memory.stores.memory_tickets import Tickets
from agboss_memory.stores.pauses import Resumption, fresh_answers, goes_on
from agboss_memory.stores.refusals import (
    deleted_thread,
    existing_key,
    existing_thread,
    foreign_thread,
    key_conflict,
    lost_lease,
    lost_memory,
    matches,
    refuse_invalid,
    unknown_thread,
)

MOST_LOST = 256
"""Deleted threads of which holders that have not renewed since are still to be told."""


@lru_cache(maxsize=64)
def _seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


class MemoryStore(MemoryLedger, MemoryReads):
    """Keeps threads in dictionaries. Closing it keeps them; they end with the object."""

    def __init__(self, url: str = "memory://") -> None:
        super().__init__()
        self.url = url
        self._next_key = 1
        self._threads: dict[tuple[str, str], MemoryThread] = {}
        self._idempotent: dict[tuple[str | None, str], tuple[MemoryThread, int]] = {}
        self._running: dict[int, MemoryThread] = {}
        self._lost: deque[Interruption] = deque(maxlen=MOST_LOST)
        self._tickets = Tickets()
        self._bell = Bell()
        self._files = MemoryFiles()

    @property
    def files(self) -> FileStore:
        """See ``Store.files``."""
        return self._files

    async def open(self) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing to do; what was stored stays readable."""

    async def admit(self, request: Admission) -> Admitted:
        """See ``Store.admit``."""
        now = as_utc(request.now)
        if request.idempotency_key is not None:
            stored = self._idempotent.get((request.owner, request.idempotency_key))
            if stored is not None:
                return self._leave_with(request, self._admit_again(request, now, *stored))
        thread = self._threads.get((request.workflow, request.thread))
        if thread is None:
            thread = self._create(request, now)
        elif thread.owner != request.owner:
            raise foreign_thread(request.workflow, request.thread)
        if taken(thread, now, request.holder):
            return self._busy(request, thread)
        if self._tickets.ahead(request.workflow, request.thread, now, request.holder):
            return self._busy(request, thread)
        closed = (thread.interrupt(now),) if thread.running else ()
        number = thread.begin(request)
        if request.idempotency_key is not None:
            self._idempotent[request.owner, request.idempotency_key] = (thread, number)
            thread.idempotency_keys[number] = request.idempotency_key
        return self._leave_with(request, self._take(thread, request, now, number, closed))

    def _busy(self, request: Admission | Resumption, thread: MemoryThread) -> Admitted:
        """Somebody else's turn. A caller that waits keeps its place, or gets the last one."""
        ticket = request.ticket
        if not self._tickets.stands(thread.workflow, thread.id, ticket):
            waiting = Enqueue(
                workflow=thread.workflow,
                thread=thread.id,
                holder=request.holder,
                now=request.now,
                lease_seconds=request.lease_seconds,
            )
            ticket = self._tickets.take(waiting) if request.queue else 0
        return Admitted(kind="busy", thread=thread.id, key=thread.key, number=thread.running, ticket=ticket)

    def _leave_with(self, request: Admission | Resumption, admitted: Admitted) -> Admitted:
        if request.ticket and admitted.kind != "busy":
            self._tickets.give_back(request.ticket)
        return admitted

    def _create(self, request: Admission, now: datetime) -> MemoryThread:
        if not request.create:
            raise unknown_thread(request.workflow, request.thread)
        return self._make(request.workflow, request.thread, request.owner, now)

    def _make(self, workflow: str, name: str, owner: str | None, now: datetime) -> MemoryThread:
        thread = MemoryThread(self._next_key, workflow, name, owner, now)
        self._next_key += 1
        self._threads[workflow, name] = self._by_key[thread.key] = thread
        return thread

    def _admit_again(self, request: Admission, now: datetime, thread: MemoryThread, number: int) -> Admitted:
        tern = thread.tern(number)
        if not matches(request, tern, workflow=thread.workflow, thread=thread.id):
            raise key_conflict(request)
        if thread.running != number:
            return Admitted(
                kind="repeat",
                thread=thread.id,
                key=thread.key,
                number=number,
                fence=thread.fence,
                version=thread.version,
                tern=tern,
            )
        if lease_holds(thread.holder, thread.lease_until, now, request.holder):
            return replace(self._busy(request, thread), tern=tern)
        return self._take(thread, request, now, number, (), resumed=True)

    def _take(
        self,
        thread: MemoryThread,
        request: Admission | Claim | Resumption,
        now: datetime,
        number: int,
        closed: tuple[int, ...],
        *,
        resumed: bool = False,
        paused: bool = False,
    ) -> Admitted:
        known = thread.version
        fresh = thread.holder != request.holder or resumed or bool(closed)
        thread.fence += fresh
        thread.version += 1
        thread.resumes = thread.resumes + 1 if resumed and not paused else 0
        thread.stalled = thread.stalled + 1 if resumed and not paused else 0
        thread.stop = number if resumed and not paused and thread.stop == number else 0
        thread.remembering = 0
        thread.holder = request.holder
        thread.lease_until = now + _seconds(request.lease_seconds)
        thread.updated_at = now
        self._running[thread.key] = thread
        held = isinstance(request, Admission) and request.known == known and not fresh
        return Admitted(
            kind="admitted",
            thread=thread.id,
            key=thread.key,
            number=number,
            fence=thread.fence,
            version=thread.version,
            window=None if held else thread.window(request.window, number),
            resumed=resumed,
            closed=closed,
            pending=thread.pending(),
            resumes=thread.resumes,
            stalled=thread.stalled,
            stop=thread.stop > 0,
        )

    async def resume(self, request: Resumption) -> Admitted:
        """See ``Store.resume``."""
        thread, now, number = self._existing(request.key), as_utc(request.now), request.number
        tern, kept = thread.tern(number), thread.steps.get(number, {})
        paused = tern.status is TernStatus.PAUSED
        fresh = fresh_answers(request, kept.values(), finished=tern.status.finished)
        if tern.status.finished or (paused and not goes_on(request, tuple(kept.values()), fresh)):
            answer = Admitted(kind="repeat", thread=thread.id, key=thread.key, number=number, tern=tern)
            return self._leave_with(request, answer)
        if taken(thread, now, request.holder):
            return self._busy(request, thread)
        if paused and self._tickets.ahead(thread.workflow, thread.id, now, request.holder):
            return self._busy(request, thread)
        closed = (thread.interrupt(now),) if thread.running not in (0, number) else ()
        thread.reopen(number, fresh)
        return self._leave_with(request, self._take(thread, request, now, number, closed, resumed=True, paused=paused))

    async def commit(self, request: Commit) -> Committed:
        """See ``Store.commit``."""
        thread = self._existing(request.key)
        number = request.tern.number
        admission = self._held(thread, request.fence, number)
        thread.end(ended(admission, request))
        if request.messages:
            thread.say(number, request.messages)
        fresh = thread.book(number, request.usage) if request.usage else ()
        if fresh or request.steps or request.tool_calls:
            self.spent(thread, request.now, fresh, steps=request.steps, tool_calls=request.tool_calls)
        if request.blocks:
            thread.plan(request.blocks)
        if request.strategies:
            thread.owe(number, request.strategies)
        thread.version += 1
        thread.updated_at = as_utc(request.now)
        due = thread.blocks.due()
        held = request.remembers == "yes" or (request.remembers == "due" and bool(request.strategies or due))
        if held:
            thread.remembering = number
        else:
            self._let_go(thread)
        return Committed(version=thread.version, due=due, held=held)

    def _let_go(self, thread: MemoryThread) -> None:
        thread.remembering = 0
        self._running.pop(thread.key, None)
        self._bell.ring(thread.key)

    async def owing(self, workflow: str, now: datetime, after: int, limit: int) -> tuple[Owing, ...]:
        """See ``Store.owing``."""
        now = as_utc(now)
        found = [
            Owing(key=thread.key, thread=thread.id, owner=thread.owner)
            for thread in self._by_key.values()
            if thread.key > after
            and thread.workflow == workflow
            and thread.owes()
            and not (thread.running or taken(thread, now, ""))
        ]
        return tuple(found[: max(limit, 0)])

    async def hold(self, request: MemoryClaim) -> ThreadState | None:
        """See ``Store.hold``."""
        thread, now = self._existing(request.key), as_utc(request.now)
        if taken(thread, now, request.holder):
            return None
        thread.remembering = max(thread.last, 1)
        thread.fence += 1
        thread.version += 1
        thread.holder = request.holder
        thread.lease_until = now + _seconds(request.lease_seconds)
        self._running[thread.key] = thread
        return state_of(thread, request.window)

    async def release(self, key: int, fence: int, number: int) -> None:
        """See ``Store.release``."""
        thread = self._by_key.get(key)
        if thread is not None and thread.fence == fence and max(number, 1) in (thread.running, thread.remembering):
            thread.lease_until = EPOCH
            if thread.running:  # its end could not be stored: whoever wants to may take it over
                thread.holder, thread.remembering = "", 0
                self._bell.ring(key)
            else:
                self._let_go(thread)

    @staticmethod
    def _held(thread: MemoryThread, fence: int, number: int) -> Admission:
        admission = thread.request_of(number) if thread.running == number > 0 else None
        if admission is None or thread.fence != fence:
            raise lost_lease(thread.key, number)
        return admission

    async def renew(self, holder: str, until: datetime) -> tuple[Interruption, ...]:
        """See ``Store.renew``."""
        until = as_utc(until)
        self._tickets.renew(holder, until)
        asked = [lost for lost in self._lost if lost.holder == holder]
        for lost in asked:
            self._lost.remove(lost)
        for thread in self._running.values():
            if thread.holder == holder:
                thread.lease_until = until
                if thread.running and thread.stop == thread.running:
                    asked.append(Interruption(key=thread.key, number=thread.running, holder=holder))
        return tuple(asked)

    async def enqueue(self, request: Enqueue) -> int:
        """See ``Store.enqueue``."""
        return self._tickets.take(request)

    async def leave(self, ticket: int) -> None:
        """See ``Store.leave``."""
        line = self._tickets.give_back(ticket)
        thread = None if line is None else self._threads.get(line)
        if thread is not None:
            self._bell.ring(thread.key)

    async def wait(self, key: int, seconds: float) -> None:
        """See ``Store.wait``."""
        await self._bell.wait(key, seconds)

    async def keyed(self, owner: str | None, idempotency_key: str) -> bool:
        """See ``Store.keyed``."""
        return (owner, idempotency_key) in self._idempotent

    async def interrupt(self, ref: ThreadRef, unless: int = 0) -> Interruption | None:
        """See ``Store.interrupt``."""
        thread = self._named(ref)
        if thread.running in (0, unless):
            return None
        thread.stop = thread.running
        return Interruption(key=thread.key, number=thread.running, holder=thread.holder)

    async def resumable(self, workflow: str, now: datetime, after: int, limit: int) -> tuple[Resumable, ...]:
        """See ``Store.resumable``."""
        now = as_utc(now)
        orphaned = [
            thread
            for key, thread in sorted(self._running.items())
            if key > after and thread.running and thread.workflow == workflow and not taken(thread, now, "")
        ]
        return tuple(thread.resumable(thread.running) for thread in orphaned[: max(limit, 0)])

    async def claim(self, request: Claim) -> Admitted:
        """See ``Store.claim``."""
        thread, now = self._existing(request.key), as_utc(request.now)
        if thread.running != request.number or taken(thread, now, ""):
            return Admitted(kind="busy", thread=thread.id, key=thread.key, number=thread.running)
        return self._take(thread, request, now, request.number, (), resumed=True)

    async def write_step(self, request: StepWrite) -> None:
        """See ``Store.write_step``."""
        thread = self._existing(request.key)
        self._held(thread, request.fence, request.number)
        thread.steps.setdefault(request.number, {}).setdefault(request.step.key, request.step)
        thread.stalled = 0
        if request.usage:
            self.spent(thread, request.now, thread.book(request.number, request.usage))

    async def write_summary(self, request: SummaryWrite) -> Summary:
        """See ``Store.write_summary``."""
        thread = self._existing(request.key)
        if request.fence not in (None, thread.fence):
            self.spent(thread, request.now, thread.book(request.tern, request.usage))
            raise lost_memory(request.key, request.tern)
        summary = request.summary
        moment = request.now if summary.created_at == EPOCH else summary.created_at
        stored, new = thread.add_summary(replace(summary, created_at=as_utc(moment)), request.tern)
        self.spent(thread, request.now, thread.book(request.tern, request.usage))
        changed = stored.kind == "turns" and stored.agent == "" and self._block_done(thread, stored, tried=new)
        thread.version += new or changed
        return stored

    @staticmethod
    def _block_done(thread: MemoryThread, summary: Summary, *, tried: bool) -> bool:
        old = thread.blocks.by_last.get(summary.last) or Block(first=summary.first, last=summary.last)
        if old.first != summary.first or (old.state == "done" and not tried):
            return False
        thread.blocks.put(replace(old, state="done", attempts=old.attempts + tried, error=""))
        return True

    async def settle(self, request: MemoryOutcome) -> None:
        """See ``Store.settle``."""
        thread = self._existing(request.key)
        if request.usage:
            self.spent(thread, request.now, thread.book(request.tern, request.usage))
        if request.fence not in (None, thread.fence):
            if request.work is not None or request.block is not None:
                raise lost_memory(request.key, request.tern)
            return
        if request.work is not None:
            thread.tried(request.work, done=request.done)
        if request.block is not None:
            thread.blocks.put(request.block)
            thread.version += 1
        if request.done and thread.remembering == request.tern and not thread.owes():
            self._let_go(thread)

    async def thread(self, ref: ThreadRef, window: WindowSpec) -> ThreadState:
        """See ``Store.thread``."""
        return state_of(self._named(ref), window)

    async def threads(self, workflow: str, owner: str | None, after: str | None, limit: int) -> tuple[ThreadInfo, ...]:
        """See ``Store.threads``. Newest means made last."""
        mine = [t for t in self._by_key.values() if t.workflow == workflow and owner in (None, t.owner)]
        if after is not None:
            last = self._threads.get((workflow, after))
            if last is None or owner not in (None, last.owner):
                raise unknown_thread(workflow, after)
            mine = [thread for thread in mine if thread.key < last.key]
        return tuple(info_of(thread) for thread in mine[::-1][: max(limit, 0)])

    async def append(self, request: Append) -> Appended:
        """See ``Store.append``."""
        thread = self._threads.get((request.workflow, request.thread))
        if thread is None:
            thread = self._make(request.workflow, request.thread, request.owner, as_utc(request.now))
        elif thread.owner != request.owner:
            raise foreign_thread(request.workflow, request.thread)
        thread.say(0, [replace(message, agent=request.agent) for message in request.messages])
        if request.messages:
            thread.version += 1
            thread.updated_at = as_utc(request.now)
        last = len(thread.message_numbers(request.agent, None))
        return Appended(key=thread.key, first=last - len(request.messages) + 1, last=last)

    async def retire(self, key: int, summary: int, now: datetime) -> Summary | None:
        """See ``Store.retire``."""
        thread = self._by_key.get(key)
        retired = thread.retire(summary) if thread else None
        if thread and retired:
            thread.version += 1
        return retired

    async def delete_thread(self, ref: ThreadRef) -> None:
        """See ``Store.delete_thread``."""
        thread = self._named(ref)
        del self._threads[thread.workflow, thread.id]
        del self._by_key[thread.key]
        self.forget_views(thread.key)
        if self._running.pop(thread.key, None) is not None:
            number = thread.running or thread.remembering
            self._lost.append(Interruption(key=thread.key, number=number, holder=thread.holder))
        for key in thread.idempotency_keys.values():
            del self._idempotent[thread.owner, key]
        await self.drop_files(tuple(thread.file_ids()))

    async def drop_files(self, ids: Sequence[str]) -> None:
        """See ``Store.drop_files``."""
        if ids:
            self._files.remove(set(ids).difference(*(thread.file_ids() for thread in self._by_key.values())))

    async def copy(self, ref: ThreadRef) -> ThreadCopy:
        """See ``Store.copy``."""
        return self._named(ref).copy()

    async def restore(self, copy: ThreadCopy) -> None:
        """See ``Store.restore``."""
        refuse_invalid(copy)
        if (copy.workflow, copy.thread) in self._threads:
            raise existing_thread(copy)
        for item in copy.terns:
            if item.idempotency_key is not None and (copy.owner, item.idempotency_key) in self._idempotent:
                raise existing_key(copy, item.tern.number)
        thread = self._make(copy.workflow, copy.thread, copy.owner, copy.created_at)
        thread.restore(copy)
        for number, key in thread.idempotency_keys.items():
            self._idempotent[copy.owner, key] = (thread, number)

    async def check(self) -> tuple[Finding, ...]:
        """See ``Store.check``."""
        found: list[Finding] = []
        for thread in self._by_key.values():
            copy = thread.copy()
            found += [*copy_findings(copy), *sum_findings(copy, thread.all_sums()), *file_findings(copy, self._files)]
        return tuple(found)

    def _existing(self, key: int) -> MemoryThread:
        thread = self._by_key.get(key)
        if thread is None:
            raise deleted_thread(key)
        return thread

    def _named(self, ref: ThreadRef) -> MemoryThread:
        thread = self._threads.get((ref.workflow, ref.thread))
        if thread is None:
            raise unknown_thread(ref.workflow, ref.thread)
        if not ref.any_owner and thread.owner != ref.owner:
            raise foreign_thread(ref.workflow, ref.thread)
        return thread
