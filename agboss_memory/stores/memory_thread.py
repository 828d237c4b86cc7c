"""One thread of the in-memory store: its log, its summaries, its due work."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, cast

from agboss_memory.messages import Block, Message, Summary, Tern, TernStatus, UsageRecord, as_utc
from agboss_memory.records import replace
from agboss_memory.stores.contract import (
    Admission,
    BookedUsage,
    PendingWork,
    Resumable,
    Step,
    Window,
    WindowSpec,
)
from agboss_memory.stores.copies import AgentSums, MessageCopy, SummaryCopy, TernCopy, ThreadCopy
from agboss_memory.stores.memory_blocks import MemoryBlocks
from agboss_memory.stores.memory_terns import admitted_as, begun
from agboss_memory.stores.pauses import PAUSE, lasting
from agboss_memory.stores.refusals import INTERRUPTED_CODE, INTERRUPTED_TEXT
from agboss_memory.stores.spending import Sums
from agboss_memory.stores.text import encode_text

_number = attrgetter("number")


def _rendered(message: Message) -> int:
    if message.compressed_tokens is not None:
        return message.compressed_tokens
    return message.tokens or 0


def _inside(old: Summary, new: Summary) -> bool:
    return new.first <= old.first and old.last <= new.last


class MemoryThread:
    """The records of one thread. Every method is one step without an await."""

    __slots__ = (
        "_by_tern",
        "_conversations",
        "_finished",
        "_lineage",
        "_log",
        "_summaries",
        "_sums",
        "_turn_summaries",
        "_usage",
        "_work",
        "blocks",
        "created_at",
        "fence",
        "holder",
        "id",
        "idempotency_keys",
        "imported",
        "key",
        "lease_until",
        "owner",
        "remembering",
        "resumes",
        "running",
        "stalled",
        "steps",
        "stop",
        "total",
        "updated_at",
        "version",
        "workflow",
    )

    def __init__(self, key: int, workflow: str, name: str, owner: str | None, now: datetime) -> None:
        self.key = key
        self.id = name
        self.workflow = workflow
        self.owner = owner
        self.created_at = self.updated_at = self.lease_until = now
        self.version = self.fence = self.running = self.stop = self.resumes = self.imported = 0
        self.remembering = self.stalled = 0
        self.holder = ""
        self.idempotency_keys: dict[int, str] = {}
        self.steps: dict[int, dict[str, Step]] = {}
        self.blocks = MemoryBlocks()
        self._log: list[Tern | Admission] = []
        self._finished: list[Tern] = []
        self._usage: dict[int, tuple[BookedUsage, ...]] = {}
        self.total = Sums()
        self._conversations: dict[str, list[Message]] = {}
        self._sums: dict[str, list[int]] = {}  # agent -> live tokens, messages without a count
        self._by_tern: dict[int, tuple[str | int, ...]] = {}  # agent and number of each message, one after the other
        self._summaries: list[Summary] = []
        self._turn_summaries: list[tuple[int, int, int]] = []  # (first, last, id) of the active ones, sorted
        self._lineage: list[tuple[int, int | None]] = []  # Tern and successor of each summary
        self._work: dict[tuple[int, str], int] = {}

    # Terns

    @property
    def last(self) -> int:
        """Number of the newest Tern."""
        return len(self._log)

    def begin(self, request: Admission) -> int:
        """Add a running Tern."""
        self._log.append(request)
        self.running = len(self._log)
        return self.running

    def request_of(self, number: int) -> Admission | None:
        """The admission of a running Tern, None when it ended."""
        entry = self._log[number - 1]
        if isinstance(entry, Admission):
            return entry
        return admitted_as(entry, self.workflow, self.id, self.owner) if entry.status is TernStatus.RUNNING else None

    def reopen(self, number: int, steps: Iterable[Step]) -> None:
        """A Tern that paused goes on, with the answers that it has now."""
        self._log[number - 1] = replace(self.tern(number, usage=False), status=TernStatus.RUNNING)
        self.running = number
        self.steps.setdefault(number, {}).update({step.key: step for step in steps})

    def paused(self) -> Iterator[int]:
        """Numbers of Terns that wait for a decision, or went on after one and have not ended."""
        for number in sorted(self.steps):
            if not self.tern(number, usage=False).status.finished and self._asked(number):
                yield number

    def _asked(self, number: int) -> bool:
        return any(step.kind == PAUSE for step in self.steps.get(number, {}).values())

    def tern(self, number: int, *, usage: bool = True) -> Tern:
        """One Tern of any status."""
        entry = self._log[number - 1]
        tern = begun(number, entry) if isinstance(entry, Admission) else entry
        booked = self._usage.get(number) if usage else None
        return replace(tern, usage=tuple(item.record for item in booked)) if booked else tern

    def end(self, tern: Tern) -> None:
        """Put a finished or paused Tern in the place of the running one."""
        self._log[tern.number - 1] = tern
        self.running = 0
        if tern.status.finished:
            kept = lasting(self.steps.pop(tern.number, {}))
            if kept:
                self.steps[tern.number] = kept
            if self._finished and self._finished[-1].number > tern.number:  # it paused, and others ended meanwhile
                insort(self._finished, tern, key=_number)
            else:
                self._finished.append(tern)
            self._open_to_due(tern.number)

    def interrupt(self, now: datetime) -> int:
        """Close the running Tern, whose holder is gone."""
        number = self.running
        closed = replace(
            self.tern(number, usage=False),
            status=TernStatus.CANCELLED,
            error=INTERRUPTED_TEXT,
            error_code=INTERRUPTED_CODE,
            finished_at=now,
        )
        self.end(closed)
        return number

    def resumable(self, number: int) -> Resumable:
        """A Tern that somebody may go on with."""
        return Resumable(
            key=self.key,
            thread=self.id,
            owner=self.owner,
            tern=self.tern(number, usage=False),
            idempotency_key=self.idempotency_keys.get(number),
            resumes=self.resumes if number == self.running else 0,
        )

    def book(self, number: int, usage: Iterable[BookedUsage]) -> list[UsageRecord]:
        """Book what is not booked yet, and say what that was."""
        booked = {item.step_key: item for item in self._usage.get(number, ())}
        fresh: list[UsageRecord] = []
        for item in usage:
            if item.step_key not in booked:
                booked[item.step_key] = item
                self.total.add(item.record)
                fresh.append(item.record)
        self._usage[number] = tuple(booked.values())
        return fresh

    # Messages

    def say(self, number: int, messages: Iterable[Message]) -> None:
        """Append messages to the conversations of their agents."""
        places: list[str | int] = []
        for message in messages:
            agent = message.agent
            conversation = self._conversations.get(agent)
            if conversation is None:
                conversation = self._conversations[agent] = []
                self._sums[agent] = [0, 0]
            conversation.append(message if message.tern == number else replace(message, tern=number))
            places += agent, len(conversation)
            sums = self._sums[agent]
            sums[0] += _rendered(message)
            sums[1] += message.tokens is None
        if number:
            self._by_tern[number] = (*self._by_tern.get(number, ()), *places)

    def file_ids(self) -> set[str]:
        """Ids of all attachments of its Terns and messages."""
        said = (message for conversation in self._conversations.values() for message in conversation)
        return {item.id for entry in (*self._log, *said) for item in entry.attachments}

    def message(self, agent: str, number: int) -> Message:
        """One message with its numbers."""
        message = self._conversations[agent][number - 1]
        return replace(message, number=number, created_at=as_utc(message.created_at))

    def message_numbers(self, agent: str | None, tern: int | None) -> list[tuple[str, int]] | range:
        """Where the messages of a Tern are (agent and number), or the numbers of a whole conversation."""
        if tern is not None:
            return [place for place in self._places(tern) if agent in (None, place[0])]
        return range(1, len(self._conversations.get(agent or "", ())) + 1)

    def _places(self, tern: int) -> Iterator[tuple[str, int]]:
        """Agent and number of each message of a Tern, in the order in which they were said."""
        flat = cast("tuple[Any, ...]", self._by_tern.get(tern, ()))
        return zip(flat[::2], flat[1::2], strict=True)

    def sums(self, agent: str) -> tuple[int, int]:
        """Tokens of the live messages of an agent, and how many messages have no count."""
        live, uncounted = self._sums.get(agent, (0, 0))
        return live, uncounted

    def compress(self, agent: str, number: int, stub: str, tokens: int) -> bool:
        """Let a stub stand for a tool result that has none."""
        conversation = self._conversations.get(agent, [])
        if not 0 < number <= len(conversation):
            return False
        message = conversation[number - 1]
        if message.role != "tool" or message.compressed_content is not None:
            return False
        conversation[number - 1] = replace(message, compressed_content=stub, compressed_tokens=tokens)
        if not self._covered(agent, number):
            self._sums[agent][0] += tokens - (message.tokens or 0)
        return True

    def write_counts(self, agent: str, counts: Mapping[int, int], tokenizer: str) -> None:
        """Keep counts by number."""
        conversation = self._conversations.get(agent, [])
        for number, tokens in counts.items():
            if not 0 < number <= len(conversation):
                continue
            message = conversation[number - 1]
            conversation[number - 1] = replace(message, tokens=tokens, tokenizer=tokenizer)
            self._sums[agent][1] -= message.tokens is None
            if message.compressed_tokens is None and not self._covered(agent, number):
                self._sums[agent][0] += tokens - (message.tokens or 0)

    def _covered(self, agent: str, number: int) -> bool:
        return bool(agent) and any(
            s.agent == agent and s.state == "active" and s.first <= number <= s.last for s in self._summaries
        )

    def _live_in_range(self, agent: str, first: int, last: int) -> int:
        said = self._conversations.get(agent, [])
        return sum(
            _rendered(said[n - 1]) for n in range(first, min(last, len(said)) + 1) if not self._covered(agent, n)
        )

    # Blocks

    def plan(self, blocks: Iterable[Block]) -> None:
        """Add blocks that are not there yet, due when all their Terns are finished."""
        for block in blocks:
            if block.last not in self.blocks.by_last:
                self.blocks.put(replace(block, state="due" if self._complete(block) else "open"))

    def _complete(self, block: Block) -> bool:
        if block.last > len(self._log):
            return False
        entries = self._log[block.first - 1 : block.last]
        return all(isinstance(entry, Tern) and entry.status.finished for entry in entries)

    def _open_to_due(self, number: int) -> None:
        for block in self.blocks.open_around(number):
            if self._complete(block):
                self.blocks.put(replace(block, state="due"))

    # Summaries

    def summaries(self) -> tuple[Summary, ...]:
        """All summaries, in the order in which they were written."""
        return tuple(self._summaries)

    def add_summary(self, summary: Summary, tern: int) -> tuple[Summary, bool]:
        """Store an active summary, or find the active one of the same range. Says whether it is new.

        What is done to others of the agent, see ``SummaryWrite``.
        """
        rivals = [
            (index, old)
            for index, old in enumerate(self._summaries)
            if old.state == "active" and old.agent == summary.agent and (old.agent or old.kind == summary.kind)
        ]
        for _, old in rivals:
            same = (old.kind, old.first, old.last) == (summary.kind, summary.first, summary.last)
            touches = old.first <= summary.last and old.last >= summary.first
            if same or (old.agent and touches and not _inside(old, summary)):
                return old, False
        if summary.agent and summary.agent in self._sums:
            self._sums[summary.agent][0] -= self._live_in_range(summary.agent, summary.first, summary.last)
        stored = replace(summary, id=len(self._summaries) + 1, state="active")
        for index, old in rivals:
            if _inside(old, summary):
                self._change_summary(index, replace(old, state="superseded"))
                self._lineage[index] = (self._lineage[index][0], stored.id)
        self._summaries.append(stored)
        self._lineage.append((tern, None))
        if stored.agent == "" and stored.kind == "turns":
            insort(self._turn_summaries, (stored.first, stored.last, stored.id))
        return stored, True

    def retire(self, number: int) -> Summary | None:
        """Undo an active summary and retire its block."""
        if not 0 < number <= len(self._summaries) or self._summaries[number - 1].state != "active":
            return None
        retired = replace(self._summaries[number - 1], state="retired")
        self._change_summary(number - 1, retired)
        if retired.kind == "turns" and retired.agent == "":
            self.blocks.retire(retired.first, retired.last)
        if retired.agent and retired.agent in self._sums:
            self._sums[retired.agent][0] += self._live_in_range(retired.agent, retired.first, retired.last)
        return retired

    def _change_summary(self, index: int, summary: Summary) -> None:
        self._summaries[index] = summary
        place = (summary.first, summary.last, summary.id)
        if place in self._turn_summaries:
            self._turn_summaries.remove(place)

    # Work and window

    def owe(self, number: int, strategies: Iterable[str]) -> None:
        """Note that ``update_memory`` of these strategies is due for a Tern."""
        for name in strategies:
            self._work.setdefault((number, name), 0)

    def tried(self, work: PendingWork, *, done: bool) -> None:
        """Note the end of one try."""
        place = (work.tern, work.strategy)
        if done:
            self._work.pop(place, None)
        elif place in self._work:
            self._work[place] = work.attempts + 1

    def owes(self) -> bool:
        """Whether strategies or blocks are still due."""
        return bool(self._work or self.blocks.due())

    def pending(self) -> tuple[PendingWork, ...]:
        """Work that is still to be done, oldest first."""
        if not self._work:
            return ()
        return tuple(PendingWork(tern=t, strategy=s, attempts=n) for (t, s), n in sorted(self._work.items()))

    def window(self, spec: WindowSpec, before: int | None = None) -> Window:
        """The newest part, below a Tern; costs as much as it returns, however long the thread is."""
        finished, latest = self._finished, self._turn_summaries
        if before is not None and before < len(self._log):  # a Tern that paused goes on after later ones
            finished = finished[: bisect_left(finished, before, key=_number)]
            latest = [place for place in latest if place[1] < before]
        terns = tuple(finished[-spec.terns :]) if spec.terns > 0 else ()
        summaries = latest[-spec.summaries :] if spec.summaries > 0 else []
        shown = Window(terns=terns, summaries=tuple(self._summaries[number - 1] for _, _, number in summaries))
        return self.blocks.shown(shown)

    # Copies

    def copy(self) -> ThreadCopy:
        """All of it, without lease and a running Tern; one that paused before stands as paused."""
        kept = range(1, self.last + (not self.running or self.running < self.last or self._asked(self.running)))
        return ThreadCopy(
            workflow=self.workflow,
            thread=self.id,
            owner=self.owner,
            created_at=self.created_at,
            updated_at=self.updated_at,
            terns=tuple(
                TernCopy(
                    tern=self._copied(number),
                    usage=self._booked(number),
                    idempotency_key=self.idempotency_keys.get(number),
                    steps=tuple(self.steps.get(number, {}).values()),
                )
                for number in kept
            ),
            messages=tuple(self._messages()),
            summaries=tuple(
                SummaryCopy(summary=summary, tern=tern, superseded_by=successor)
                for summary, (tern, successor) in zip(self._summaries, self._lineage, strict=True)
            ),
            blocks=tuple(block for _, block in sorted(self.blocks.by_last.items())),
            work=self.pending(),
            unbound=self._booked(0),
        )

    def _copied(self, number: int) -> Tern:
        tern = self.tern(number, usage=False)
        return replace(tern, status=TernStatus.PAUSED) if tern.status is TernStatus.RUNNING else tern

    def _booked(self, number: int) -> tuple[BookedUsage, ...]:
        return self._usage.get(number, ())

    def _messages(self) -> Iterator[MessageCopy]:
        places = {place: number for tern in self._by_tern for number, place in enumerate(self._places(tern))}
        for agent in sorted(self._conversations, key=encode_text):
            for number in range(1, len(self._conversations[agent]) + 1):
                yield MessageCopy(message=self.message(agent, number), place=places.get((agent, number), 0))

    def all_sums(self) -> tuple[AgentSums, ...]:
        """What is kept so that it need not be added up."""
        return tuple(
            AgentSums(agent=agent, last=len(said), live_tokens=self._sums[agent][0], uncounted=self._sums[agent][1])
            for agent, said in self._conversations.items()
        )

    def restore(self, copy: ThreadCopy) -> None:
        """Fill a new thread with what was exported."""
        for item in copy.terns:
            tern = replace(item.tern, usage=())
            self._log.append(tern)
            if tern.status.finished:
                self._finished.append(tern)
            self.book(tern.number, item.usage)
            if item.idempotency_key is not None:
                self.idempotency_keys[tern.number] = item.idempotency_key
            if item.steps:
                self.steps[tern.number] = {step.key: step for step in item.steps}
        self.book(0, copy.unbound)
        self._restore_messages(copy.messages)
        for item in copy.summaries:
            self._summaries.append(item.summary)
            self._lineage.append((item.tern, item.superseded_by))
            if (item.summary.agent, item.summary.kind, item.summary.state) == ("", "turns", "active"):
                insort(self._turn_summaries, (item.summary.first, item.summary.last, item.summary.id))
        for agent, said in self._conversations.items():
            self._sums[agent][0] = self._live_in_range(agent, 1, len(said))
        for block in copy.blocks:
            self.blocks.put(block)
        self._work = {(item.tern, item.strategy): item.attempts for item in copy.work}
        self.updated_at, self.imported = copy.updated_at, len(copy.terns)
        self.version = 1

    def _restore_messages(self, copies: Sequence[MessageCopy]) -> None:
        for item in copies:
            self._conversations.setdefault(item.message.agent, []).append(item.message)
            self._sums.setdefault(item.message.agent, [0, 0])[1] += item.message.tokens is None
        for item in sorted(copies, key=lambda item: item.place):
            if item.message.tern:
                places = self._by_tern.get(item.message.tern, ())
                self._by_tern[item.message.tern] = (*places, item.message.agent, item.message.number)
