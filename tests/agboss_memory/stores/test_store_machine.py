"""Random lives of threads: a model says what must come out, and both stores must say it alike, record by record."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agboss_memory.errors import AgbossError
from agboss_memory.messages import Block, Message, Summary, TernStatus, ToolCall
from agboss_memory.records import replace
from agboss_memory.stores import (
    Admission,
    Admitted,
    Append,
    Claim,
    MemoryClaim,
    MemoryOutcome,
    MemoryStore,
    PendingWork,
    Resumable,
    SqliteStore,
    StepWrite,
    Store,
    SummaryWrite,
    TernPage,
    WindowSpec,
    dump_thread,
    load_thread,
)
from agboss_memory.stores.pauses import Resumption
from agboss_memory.testing.store_pauses import answer as given
from agboss_memory.testing.store_recovery import question, step
from agboss_memory.testing.store_requests import WIDE, admission, booked, ending, later, ref, summary

THREADS = st.sampled_from(("one", "two"))
HOLDERS = st.sampled_from(("ada", "bob", "cyd"))
TEXTS = st.sampled_from(("", "hello", "\x00\ud800", "longer text"))
KEYS = st.none() | st.sampled_from(("k1", "k2"))
ENDS = st.sampled_from((TernStatus.ANSWERED, TernStatus.FAILED, TernStatus.CANCELLED, TernStatus.PAUSED))
PICK = st.integers(0, 99)
OLD = st.none() | st.integers(0, 2)  # how old the fence of memory work is; None = a caller without a lease


@dataclass
class Expected:
    """What a thread must hold: tasks, answers and statuses of its Terns, the running one's fence, its messages.

    ``asked`` is the Tern that was asked to end last.
    """

    terns: list[tuple[str, str, TernStatus]] = field(default_factory=list[tuple[str, str, TernStatus]])
    said: int = 0
    running: Admitted | None = None
    asked: int = 0


class StoreMachine(RuleBasedStateMachine):
    """Every rule is applied to both stores; what they answer, errors too, must be equal."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.runner = asyncio.Runner()
        self.seconds = 0
        self.expected: dict[str, Expected] = {}
        self.admitted: list[tuple[Admission | Claim | Resumption, Admitted, str]] = []
        self.tickets: list[tuple[int, Admission]] = []
        self.held: list[tuple[int, int, int]] = []
        self.stores: tuple[Store, Store] = (MemoryStore(), self.sqlite())
        self.both(lambda store: store.open())

    def sqlite(self) -> SqliteStore:
        return SqliteStore(Path(self.folder.name) / "log.db", synchronous="NORMAL")

    def teardown(self) -> None:
        self.both(lambda store: store.close())
        self.runner.close()
        self.folder.cleanup()

    def both(self, call: Callable[[Store], Awaitable[Any]]) -> Any:
        """The answer of both stores, or the code of the error that both raised."""
        answers = [self.runner.run(self.answer(call, store)) for store in self.stores]
        assert answers[0] == answers[1]
        return answers[0]

    @staticmethod
    async def answer(call: Callable[[Store], Awaitable[Any]], store: Store) -> Any:
        try:
            return await call(store)
        except AgbossError as error:
            return error.code

    @property
    def now(self) -> datetime:
        return later(self.seconds)

    # Terns

    @rule(
        thread=THREADS,
        holder=HOLDERS,
        task=TEXTS,
        key=KEYS,
        queue=st.booleans(),
        create=st.booleans(),
        held=st.booleans(),
    )
    def admit(
        self, thread: str, holder: str, task: str, key: str | None, queue: bool, create: bool, held: bool
    ) -> None:
        version = self.both(lambda store: store.thread(ref(thread), WindowSpec()))
        known = None if isinstance(version, str) or not held else version.version
        request = admission(
            task,
            thread=thread,
            holder=holder,
            idempotency_key=key,
            queue=queue,
            create=create,
            known=known,
            now=self.now,
        )
        self.ask(request)

    @precondition(lambda self: self.tickets)
    @rule(pick=PICK)
    def ask_again(self, pick: int) -> None:
        ticket, request = self.tickets.pop(pick % len(self.tickets))
        self.ask(replace(request, ticket=ticket, now=self.now, known=None))

    def ask(self, request: Admission) -> None:
        answer: Any = self.both(lambda store: store.admit(request))
        if isinstance(answer, str):
            assert answer in ("run.unknown-thread", "run.idempotency-conflict")
            return
        if answer.kind == "busy":
            if answer.ticket:
                self.tickets.append((answer.ticket, request))
            return
        thread = self.expected.setdefault(answer.thread, Expected())
        if answer.kind == "repeat":
            number: int = answer.number
            stored = (answer.tern.task, answer.tern.answer, answer.tern.status)
            assert stored == thread.terns[number - 1]
            return
        for number in answer.closed:
            assert thread.terns[number - 1][2] is TernStatus.RUNNING
            thread.terns[number - 1] = (*thread.terns[number - 1][:2], TernStatus.CANCELLED)
        assert answer.stop == (answer.resumed and thread.asked == answer.number)
        if not answer.resumed:
            thread.terns.append((request.task, "", TernStatus.RUNNING))
        assert answer.number == len(thread.terns)
        thread.running = answer
        self.admitted.append((request, answer, request.task))

    @precondition(lambda self: self.admitted)
    @rule(
        pick=PICK,
        said=TEXTS,
        status=ENDS,
        tool=st.booleans(),
        agent=st.sampled_from(("desk", "other")),
        due=st.booleans(),
        remembers=st.sampled_from(("no", "due", "yes")),
    )
    def commit(
        self, pick: int, said: str, status: TernStatus, tool: bool, agent: str, due: bool, remembers: str
    ) -> None:
        _, admitted, task = self.admitted.pop(pick % len(self.admitted))
        call = Message(role="assistant", agent=agent, tool_calls=(ToolCall(id="c", name="find"),), tokens=2)
        result = Message(role="tool", agent=agent, content="long" * 9, tool_call_id="c", tool_name="find", tokens=9)
        messages = (
            Message(role="user", content=task, agent=agent, tokens=1),
            *((call, result) if tool else ()),
            Message(role="assistant", content=said, agent="desk"),
        )
        if status is TernStatus.PAUSED:  # what was said comes with its final transaction
            messages = ()
        last = admitted.number
        request = ending(
            admitted,
            said,
            task=task,
            status=status,
            now=self.now,
            messages=messages,
            usage=(booked("a"), booked("b"), booked("a")),
            blocks=(Block(first=last - 1, last=last),) if due and last % 2 == 0 else (),
            strategies=("Facts",) if due else (),
            steps=1,
            remembers="no" if status is TernStatus.PAUSED else remembers,
        )
        if status is TernStatus.PAUSED:
            asked = StepWrite(key=admitted.key, fence=admitted.fence, number=last, step=question(f"pause.{last}"))
            self.both(lambda store: store.write_step(asked))
        answer = self.both(lambda store: store.commit(request))
        if not isinstance(answer, str) and answer.held:
            self.held.append((admitted.key, admitted.fence, last))
        thread = self.expected.get(admitted.thread)
        running = thread.running if thread else None
        holds = running is not None and (running.key, running.number, running.fence) == (
            admitted.key,
            last,
            admitted.fence,
        )
        assert isinstance(answer, str) != holds
        if thread and holds:
            thread.terns[last - 1] = (task, said, status)
            thread.said += len(messages)
            thread.running = None

    @rule(thread=THREADS, holder=HOLDERS, outcome=st.sampled_from(("yes", "no", "")), pick=PICK)
    def resume(self, thread: str, holder: str, outcome: str, pick: int) -> None:
        key = self.key_of(thread)
        waiting: tuple[Resumable, ...] = self.both(lambda store: store.paused(key))
        if not waiting:
            return
        found = waiting[pick % len(waiting)]
        number = found.tern.number
        request = Resumption(
            key=found.key,
            number=number,
            holder=holder,
            now=self.now,
            thread=thread,
            workflow="w",
            steps=(given(outcome, f"decision.{number}"),) if outcome else (),
            window=WIDE,
        )
        answer: Any = self.both(lambda store: store.resume(request))
        known = self.expected[thread]
        if isinstance(answer, str):
            assert answer == "pause.decided"
        elif answer.kind == "admitted":
            for closed in answer.closed:
                known.terns[closed - 1] = (*known.terns[closed - 1][:2], TernStatus.CANCELLED)
            task = known.terns[number - 1][0]
            if known.terns[number - 1][2] is TernStatus.PAUSED and known.asked == number:
                known.asked = 0  # it had paused before it learned of it
            assert answer.stop == (known.asked == number)
            known.terns[number - 1] = (*known.terns[number - 1][:2], TernStatus.RUNNING)
            known.running = answer
            self.admitted.append((request, answer, task))

    @precondition(lambda self: self.admitted)
    @rule(pick=PICK, key=TEXTS)
    def keep_step(self, pick: int, key: str) -> None:
        _, admitted, _ = self.admitted[pick % len(self.admitted)]
        write = StepWrite(key=admitted.key, fence=admitted.fence, number=admitted.number, step=step(key))
        self.both(lambda store: store.write_step(write))
        self.both(lambda store: store.steps(admitted.key, admitted.number))

    # Crashes and time

    @rule(seconds=st.sampled_from((1, 11, -5)))
    def time_passes(self, seconds: int) -> None:
        self.seconds += seconds

    @rule()
    def reopen(self) -> None:
        """The process is gone: nothing is kept but the file."""
        memory, old = self.stores
        self.held.clear()
        self.runner.run(old.close())
        self.stores = (memory, self.sqlite())
        self.runner.run(self.stores[1].open())

    @rule(holder=HOLDERS)
    def recover(self, holder: str) -> None:
        for item in self.both(lambda store: store.resumable("w", self.now, 0, 9)):
            claim = Claim(key=item.key, number=item.tern.number, holder=holder, now=self.now, window=WIDE)
            answer = self.both(lambda store, claim=claim: store.claim(claim))
            assert (answer.kind, answer.resumes) == ("admitted", item.resumes + 1)
            assert answer.stop == (self.expected[item.thread].asked == answer.number)
            self.expected[item.thread].running = answer
            self.admitted.append((claim, answer, item.tern.task))

    @precondition(lambda self: self.tickets)
    @rule(pick=PICK)
    def leave(self, pick: int) -> None:
        ticket, _ = self.tickets.pop(pick % len(self.tickets))
        self.both(lambda store: store.leave(ticket))

    @rule(thread=THREADS, unless=st.integers(0, 2))
    def interrupt(self, thread: str, unless: int) -> None:
        asked: Any = self.both(lambda store: store.interrupt(ref(thread), unless=unless))
        known = self.expected.get(thread)
        if known is None:
            assert asked == "run.unknown-thread"
        elif asked is None:
            assert known.running is None or known.running.number == unless
        else:
            assert known.running is not None
            assert asked.number != unless
            known.asked = asked.number

    # Memory work

    @rule(thread=THREADS, holder=HOLDERS)
    def hold(self, thread: str, holder: str) -> None:
        key = self.key_of(thread)
        claim = MemoryClaim(key=key, holder=holder, now=self.now, window=WIDE)
        state: Any = self.both(lambda store: store.hold(claim))
        if state == "run.thread-deleted":
            assert thread not in self.expected
        elif state is not None:
            self.held.append((key, state.fence, state.info.terns))
            running = self.expected[thread].running
            if running is not None:  # whoever ran it is behind the fence now
                self.expected[thread].running = replace(running, fence=state.fence)

    @precondition(lambda self: self.held)
    @rule(pick=PICK)
    def release(self, pick: int) -> None:
        held = self.held.pop(pick % len(self.held))
        self.both(lambda store: store.release(*held))

    @rule()
    def look_for_work(self) -> None:
        for item in self.both(lambda store: store.owing("w", self.now, 0, 9)):
            known = self.expected[item.thread]
            assert known.running is None

    @rule(thread=THREADS, tokens=st.none() | st.integers(0, 50), agent=st.sampled_from(("desk", "other")))
    def append(self, thread: str, tokens: int | None, agent: str) -> None:
        said = (Message(role="user", content="aside", tokens=tokens),)
        self.both(
            lambda store: store.append(Append(workflow="w", thread=thread, agent=agent, messages=said, now=self.now))
        )
        self.expected.setdefault(thread, Expected()).said += 1

    def memory_of(self, thread: str) -> object:
        """What only the holder of a thread may change."""
        copy = self.both(lambda store: store.copy(ref(thread)))
        return copy if isinstance(copy, str) else (copy.summaries, copy.blocks, copy.work)

    def key_of(self, thread: str) -> int:
        state = self.both(lambda store: store.thread(ref(thread), WIDE))
        return 0 if isinstance(state, str) else state.key

    def fence_of(self, thread: str, old: int | None) -> int | None:
        """The fence of a thread, one that it had before, or none."""
        state = self.both(lambda store: store.thread(ref(thread), WIDE))
        return None if old is None or isinstance(state, str) else state.fence - old

    @rule(thread=THREADS, text=TEXTS, old=OLD)
    def compact(self, thread: str, text: str, old: int | None) -> None:
        key, fence = self.key_of(thread), self.fence_of(thread, old)
        for block in self.both(lambda store: store.blocks(key, ["due", "skipped"], 9)):
            write = SummaryWrite(
                key=key,
                tern=block.last,
                summary=summary(block.first, block.last, text=text),
                now=self.now,
                usage=(booked(f"compact.{block.last}", purpose="compaction"),),
                fence=fence,
            )
            before = self.memory_of(thread)
            answer = self.both(lambda store, write=write: store.write_summary(write))
            if fence is not None and old:
                assert (answer, self.memory_of(thread)) == ("run.lease-lost", before)

    @rule(thread=THREADS, agent=st.sampled_from(("desk", "other")), first=st.integers(1, 4), more=st.integers(0, 3))
    def summarise(self, thread: str, agent: str, first: int, more: int) -> None:
        key = self.key_of(thread)
        last = self.both(lambda store: store.conversation(key, agent, 0)).last
        if key and first + more <= last:
            made = Summary(first=first, last=first + more, text="s", agent=agent, kind="k")
            self.both(lambda store: store.write_summary(SummaryWrite(key=key, tern=0, summary=made, now=self.now)))

    @rule(thread=THREADS, number=st.integers(1, 6))
    def undo(self, thread: str, number: int) -> None:
        key = self.key_of(thread)
        self.both(lambda store: store.retire(key, number, self.now))

    @rule(thread=THREADS, done=st.booleans(), old=OLD)
    def settle(self, thread: str, done: bool, old: int | None) -> None:
        state: Any = self.both(lambda store: store.thread(ref(thread), WIDE))
        pending: tuple[PendingWork, ...] = () if isinstance(state, str) else state.pending
        for work in pending[:1]:
            usage = (booked(f"facts.{work.attempts}", purpose="memory"),)
            key = self.key_of(thread)
            fence, before = self.fence_of(thread, old), self.memory_of(thread)
            outcome = MemoryOutcome(
                key=key, tern=work.tern, now=self.now, work=work, done=done, usage=usage, fence=fence
            )
            answer = self.both(lambda store, outcome=outcome: store.settle(outcome))
            if fence is not None and old:
                assert (answer, self.memory_of(thread)) == ("run.lease-lost", before)

    @rule(thread=THREADS, number=st.integers(1, 6), tokens=st.integers(0, 9))
    def compress_and_count(self, thread: str, number: int, tokens: int) -> None:
        key = self.key_of(thread)
        self.both(lambda store: store.compress_result(key, "desk", number, "stub", tokens))
        self.both(lambda store: store.write_counts(key, "desk", {number: tokens}, "x"))

    # Whole threads

    @rule(thread=THREADS)
    def delete(self, thread: str) -> None:
        gone = self.both(lambda store: store.delete_thread(ref(thread)))
        assert (gone is None) == (self.expected.pop(thread, None) is not None)

    @precondition(lambda self: self.expected)
    @rule(pick=PICK)
    def export_and_import(self, pick: int) -> None:
        thread = sorted(self.expected)[pick % len(self.expected)]
        copy = self.both(lambda store: store.copy(ref(thread)))
        assert self.both(lambda store: store.restore(copy)) == "copy.exists"
        self.both(lambda store: store.delete_thread(ref(thread)))
        assert self.both(lambda store: store.restore(load_thread(dump_thread(copy)))) is None
        assert self.both(lambda store: store.copy(ref(thread))) == copy
        known = self.expected[thread]
        if known.running is not None:  # a running Tern is no part of a copy, unless it paused before
            if len(copy.terns) < len(known.terns):
                known.terns.pop()
            else:
                task, said, _ = known.terns[known.running.number - 1]
                known.terns[known.running.number - 1] = (task, said, TernStatus.PAUSED)
            known.running = None

    @invariant()
    def nothing_is_wrong(self) -> None:
        assert self.both(lambda store: store.check()) == ()
        for thread, known in self.expected.items():
            key = self.key_of(thread)
            terns = self.both(lambda store, key=key: store.terns(key, TernPage()))
            assert [(tern.task, tern.answer, tern.status) for tern in terns] == known.terns
            assert [tern.number for tern in terns] == list(range(1, len(terns) + 1))
            copy = self.both(lambda store, thread=thread: store.copy(ref(thread)))
            assert len(copy.messages) == known.said


StoreMachine.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
TestStoreMachine = StoreMachine.TestCase
