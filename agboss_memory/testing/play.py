"""A thread is played through a strategy as the framework plays it: every request it leads to is kept."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from contextlib import suppress

from agboss_memory.atoms import atoms_of, complete
from agboss_memory.contract import (
    BaseMemoryStrategy,
    Budget,
    MemoryContext,
    MemoryModel,
    MemoryTurn,
    MemoryUpdate,
    MemoryView,
)
from agboss_memory.errors import AgbossError, StrategyError
from agboss_memory.fit import FitRequest, fit
from agboss_memory.messages import Block, Message, Summary, Tern, TernStatus
from agboss_memory.metering import Meter, MeteredModel, metered
from agboss_memory.records import Record, Struct, field, replace
from agboss_memory.render import user_message
from agboss_memory.stores import Commit, MessagePage, Store, SummaryWrite, TernPage, WindowSpec
from agboss_memory.stores.contract import Admitted
from agboss_memory.stores.conversation import StoredConversation
from agboss_memory.testing.counter import QuarterCounter
from agboss_memory.testing.promises import (
    check_append_only,
    check_calls,
    check_cover,
    check_fit,
    check_pairs,
    check_pins,
    check_round_trip,
    check_stable_prefix,
    check_trust,
    check_turn_cover,
)
from agboss_memory.testing.shown import Shown
from agboss_memory.testing.store_requests import DAY, NOW, admission, ending
from agboss_memory.testing.summariser import HOSTILE, MoodySummariser
from agboss_memory.testing.threads import Turn

AGENT = "ag"
SYSTEM = "P"
BLOCK = 3
"""Turns that one summary of the played turn memory stands for."""

ALL = 10_000
REFUSALS = ("memory.fixed-overhead", "memory.open-round")
"""What a request may be refused with: it cannot fit."""


class World(Record, kw_only=True):
    """What is the same for all threads of one play.

    Attributes:
        strategy: The strategy.
        store: An open store.
        model: What the strategy's model calls end at.
        window: The model's window in tokens.
        names_all: Whether the strategy itself must name everything that it leaves out.
    """

    strategy: BaseMemoryStrategy
    store: Store
    model: MoodySummariser
    window: int
    names_all: bool = False

    @property
    def reserve(self) -> int:
        """Tokens kept free for the answer."""
        return min(4096, self.window // 8)


def model_for(model: MoodySummariser) -> MemoryModel:
    """The model as a strategy gets it: its calls are limited and booked."""
    return MeteredModel(model, QuarterCounter(), AGENT, "moody", "memory")


class Played(Struct, kw_only=True):
    """One thread of a world.

    Attributes:
        world: The world.
        thread: Its id.
        key: The store's key of it; 0 before its first turn.
        requests: Every request in order; None = refused because it could not fit.
        log: The whole log after the last turn.
    """

    world: World
    thread: str = "t"
    key: int = 0
    requests: list[Shown | None] = field(default_factory=list[Shown | None])
    log: tuple[Message, ...] = ()
    said: list[Message] = field(default_factory=list[Message])

    async def turn(self, turn: Turn) -> None:
        """One turn: views while it runs, then the commit and the work after it. Raises BrokenPromise."""
        world = self.world
        reach = world.strategy.reach
        spec = WindowSpec(
            terns=10 if reach.terns is None else reach.terns,
            summaries=3 if reach.summaries is None else reach.summaries,
        )
        request = admission(turn.task.content, thread=self.thread, window=spec)
        admitted = await world.store.admit(request)
        self.key = admitted.key
        calls = world.model.calls
        meter = Meter(store=world.store, key=self.key, left=4, clock=lambda: NOW)
        running = _Running(played=self, admitted=admitted, spec=spec)
        with metered(meter):
            for step in turn.steps:
                running.said += (replace(message, tern=admitted.number, agent=AGENT) for message in step)
                if step[-1] is not turn.answer:
                    await running.look()
            self.said += running.said
            await self._commit(turn, running)
            await self._after(running)
        check_calls(world.model.calls - calls)

    async def compact(self) -> None:
        """What the Compact button does. A summariser that fails is no broken promise."""
        meter = Meter(store=self.world.store, key=self.key, left=None, clock=lambda: NOW)
        context = MemoryContext(thread_id=self.thread, agent=AGENT, now=NOW, budget=self.budget, log=self.talk(0))
        with metered(meter), suppress(AgbossError):
            await self.world.strategy.compress(context)
        await self._check_log()

    @property
    def budget(self) -> Budget:
        """What fits."""
        counter = QuarterCounter()
        overhead = sum(counter.count([SYSTEM]))
        return Budget(window=self.world.window, reply_reserve=self.world.reserve, overhead=overhead, counter=counter)

    def talk(self, tern: int) -> StoredConversation:
        """The agent's conversation as a strategy reaches it."""
        return StoredConversation(self.world.store, self.key, AGENT, tern=tern, clock=lambda: NOW)

    async def summaries(self) -> tuple[Summary, ...]:
        """All summaries of messages that were ever written."""
        return await self.world.store.summaries(self.key, AGENT, True)

    async def spent(self) -> int:
        """Model calls that the ledger has."""
        return (await self.world.store.day_spend("w", DAY)).model_calls

    async def _commit(self, turn: Turn, running: _Running) -> None:
        number = running.admitted.number
        answer = turn.answer.content if turn.answer else ""
        status = TernStatus.ANSWERED if turn.answer else TernStatus.FAILED
        made: Commit = ending(
            running.admitted, answer, task=turn.task.content, status=status, messages=tuple(running.said)
        )
        await self.world.store.commit(replace(made, blocks=_blocks(number)))
        running.terns = (*running.terns, made.tern)
        if number % BLOCK == 0:
            text = HOSTILE if number % 2 else f"Turns up to {number}."
            whole = Summary(first=number - BLOCK + 1, last=number, text=text, created_at=NOW)
            await self.world.store.write_summary(SummaryWrite(key=self.key, tern=number, summary=whole, now=NOW))
        await self._check_log()

    async def _check_log(self) -> None:
        kept = await self.world.store.messages(self.key, MessagePage(agent=AGENT, limit=ALL))
        check_round_trip(self.said, kept)
        check_append_only(self.log, kept)
        self.log = kept

    async def _after(self, running: _Running) -> None:
        number = running.admitted.number
        finished = MemoryTurn(
            thread_id=self.thread,
            agent=AGENT,
            now=NOW,
            tern=running.terns[-1],
            messages=tuple(running.said),
            idempotency_key=f"{self.thread}:{number}",
            log=self.talk(number),
            budget=self.budget,
        )
        before = len(self.world.model.moods)
        try:
            update = await self.world.strategy.update_memory(finished)
        except Exception:
            if len(self.world.model.moods) == before:
                raise
        else:
            if not isinstance(update, MemoryUpdate):
                raise TypeError(f"update_memory gave {type(update).__name__}, not a MemoryUpdate")
        await self._check_log()


class _Running(Struct, kw_only=True):
    """The turn that runs."""

    played: Played
    admitted: Admitted
    spec: WindowSpec
    said: list[Message] = field(default_factory=list[Message])
    terns: tuple[Tern, ...] = ()
    previous: MemoryView | None = None
    index: int = 0
    before: tuple[Shown, int] | None = None

    async def look(self) -> None:
        """Ask for a view, make the request, check it."""
        played, world = self.played, self.played.world
        context = await self._context()
        try:
            made = world.strategy.build_context(context)
            view = await made if inspect.isawaitable(made) else made
            if not isinstance(view, MemoryView):
                raise TypeError(f"build_context gave {type(view).__name__}, not a MemoryView")
            shown = self._request(view)
        except StrategyError as error:
            if error.code not in REFUSALS:
                raise
            played.requests.append(None)
            self.before = None
            return
        self.previous = view
        self.index += 1
        played.requests.append(shown)
        await self._check(shown, context)

    async def _context(self) -> MemoryContext:
        played, window = self.played, self.admitted.window
        log = played.talk(self.admitted.number)
        reach = played.world.strategy.reach
        self.terns = await played.world.store.terns(played.key, TernPage(limit=ALL, before=self.admitted.number))
        return MemoryContext(
            thread_id=played.thread,
            agent=AGENT,
            now=NOW,
            task=self.said[0].content,
            history=window.terns if window else (),
            summaries=window.summaries if window else (),
            blocks=window.blocks if window else (),
            messages=(await log.newest(reach.messages)).messages if reach.messages else (),
            budget=played.budget,
            call_index=self.index,
            previous=self.previous,
            load_older=log.older,
            log=log,
            current=tuple(self.said),
        )

    def _request(self, view: MemoryView) -> Shown:
        played = self.played
        # The framework gives every call of its loop a result before it asks the model again.
        added = tuple(message for atom in atoms_of(self.said[1:]) for message in complete(atom))
        exact = view.messages is not None
        system = "\n\n".join(text for text in (SYSTEM, view.system_addendum) if text)
        asked = FitRequest(
            agent=AGENT,
            view=view,
            task=self.said[0].content,
            added=added,
            fixed=(SYSTEM if exact else system,),
            budget=played.budget,
            tern=self.admitted.number,
        )
        fitted = fit(asked)
        messages = fitted.view.messages
        if messages is None:
            messages = (user_message(fitted.view, fitted.task), *fitted.added)
        system = "\n\n".join(text for text in (SYSTEM, fitted.view.system_addendum) if text)
        return Shown(
            system=system,
            messages=messages,
            summaries=fitted.view.summaries,
            history=fitted.view.history,
            left_out=fitted.view.left_out,
            exact=exact,
            window=played.world.window,
            reply_reserve=played.world.reserve,
            counter=QuarterCounter(),
        )

    async def _check(self, shown: Shown, context: MemoryContext) -> None:
        check_pairs(shown)
        check_pins(shown, system=SYSTEM, running=self.said)
        check_fit(shown)
        check_trust(shown)
        if shown.exact:
            check_cover(shown, self._log(shown), names_all=self.played.world.names_all)
        else:
            check_turn_cover(shown, self.terns)
        await self._check_prefix(shown)

    def _log(self, shown: Shown) -> Sequence[Message]:
        last = len(self.played.log)
        return (*self.played.log, *(replace(m, number=last + place) for place, m in enumerate(self.said, 1)))

    async def _check_prefix(self, shown: Shown) -> None:
        """Within a turn only a compaction, or a summary that no longer fits, may move the prefix."""
        written = len(await self.played.summaries())
        cut = any(item.reason == "over_window" for item in shown.left_out)
        if self.before is not None and not cut and self.before[1] == written:
            check_stable_prefix(self.before[0], shown)
        self.before = None if cut else (shown, written)


def _blocks(number: int) -> tuple[Block, ...]:
    first = (number - 1) // BLOCK * BLOCK + 1
    return (Block(first=first, last=first + BLOCK - 1),)
