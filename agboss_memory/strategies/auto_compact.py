"""The whole live conversation, folded into one summary when it grows too large."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from agboss_memory.atoms import Atom, in_loop, newest_turn
from agboss_memory.compaction import (
    PER_TURN,
    WINDOW_PROMPT_HASH,
    Calls,
    RangeTask,
    can_gain,
    chunks,
    runs,
    summarise_range,
    transcript_room,
)
from agboss_memory.config import AutoCompactConfig, SummaryPlacement
from agboss_memory.contract import (
    BaseMemoryStrategy,
    CompressReport,
    MemoryContext,
    MemoryModel,
    MemoryTurn,
    MemoryUpdate,
    MemoryView,
    Reach,
)
from agboss_memory.errors import AgbossError
from agboss_memory.fit import WindowFit
from agboss_memory.fit.window import room_for, view_tokens
from agboss_memory.messages import Summary
from agboss_memory.records import Struct, replace
from agboss_memory.render import placed
from agboss_memory.strategies.reading import PAGE, Loaded, Reader, shown_tokens
from agboss_memory.strategies.selection import WindowRule, share, usable, view_of
from agboss_memory.strategies.stubbing import evicted
from agboss_memory.strategies.summarizing_window import no_model

FAILED = "compaction failed: "
"""How a warning begins that keeps the rest of the turn from trying again."""

_LOG = logging.getLogger("agboss_memory")


class _Folded(Struct):
    """What a fold did so far."""

    made: list[Summary]
    covered: int = 0


class AutoCompactMemory(BaseMemoryStrategy):
    """Live messages verbatim; above a share of the window they all become one summary.

    Args:
        config: Its configuration; None = the defaults.
        model: Writes the summary; without one nothing is compacted.
        summary_window: Window of ``model`` in tokens; None = that of the agent.
    """

    kind = "auto_compact"

    def __init__(
        self,
        config: AutoCompactConfig | None = None,
        model: MemoryModel | None = None,
        *,
        summary_window: int | None = None,
    ) -> None:
        self.config = config or AutoCompactConfig()
        self.rule = WindowRule()
        self.reach = Reach(terns=0, messages=PAGE, summaries=0)
        self._model = model
        self._summary_window = summary_window

    async def build_context(self, context: MemoryContext) -> MemoryView:
        """All live messages. When they would not fit the window, what is older than the turn is compacted first."""
        window = self.rule.window(context.budget, context.agent)
        reader = Reader(context)
        view = await self._view(reader, window)
        if not await self._must_compact(context, view):
            return view
        report = await self._compact(reader, window, Calls(PER_TURN), quiet=True)
        if report.summaries:
            view = await self._view(reader, window)
        return replace(view, warnings=(f"{FAILED}{report.error_code}",)) if report.error_code else view

    async def _view(self, reader: Reader, window: int) -> MemoryView:
        loaded = await self._load(reader, window)
        sound = usable(loaded.shown)
        in_system = self.config.summary_placement is SummaryPlacement.SYSTEM_PROMPT
        led = bool(loaded.summaries) and not in_system
        view = view_of(loaded, (sound,), summaries=loaded.summaries, led=led)
        return placed(view, loaded.summaries, in_system=in_system)

    async def _load(self, reader: Reader, limit: int | None) -> Loaded:
        policy = self.config.tool_result_eviction

        async def shape(atoms: tuple[Atom, ...]) -> tuple[Atom, ...]:
            return await asyncio.to_thread(evicted, atoms, policy, reader.counter)

        return await reader.live(shape, limit)

    async def _must_compact(self, context: MemoryContext, view: MemoryView) -> bool:
        if self._model is None or context.log is None:
            return False
        before = context.previous
        if context.call_index and (before is None or any(text.startswith(FAILED) for text in before.warnings)):
            return False
        asked = WindowFit(agent=context.agent, view=view, budget=context.budget)
        room = room_for(asked)
        size = await asyncio.to_thread(view_tokens, view, Reader(context).counter)
        return size > room

    async def update_memory(self, turn: MemoryTurn) -> MemoryUpdate:
        """Compact when the rendered live window exceeds its share. Errors wait for the next turn."""
        if turn.log is None:
            return MemoryUpdate()
        window = self.rule.window(turn.budget, turn.agent)
        reader = Reader(turn)
        shortened = self.config.tool_result_eviction is not None  # a pointer may be longer than a short result
        live = None if shortened else await reader.at_most_live()
        if live is not None and live <= window * self.config.compact_at_ratio:
            return MemoryUpdate()
        loaded = await self._load(reader, share(window, self.config.compact_at_ratio))
        if sum(map(shown_tokens, loaded.shown)) <= window * self.config.compact_at_ratio:
            return MemoryUpdate()
        if not _foldable(loaded)[0]:
            return MemoryUpdate()
        return MemoryUpdate(report=await self._compact(reader, window, Calls(PER_TURN), quiet=True))

    async def compress(self, context: MemoryContext) -> CompressReport:
        """Compact now. Raises CompactionError; the steps before the one that failed stay."""
        if context.log is None:
            return CompressReport()
        window = self.rule.window(context.budget, context.agent)
        return await self._compact(Reader(context), window, Calls(), quiet=False)

    async def _compact(self, reader: Reader, window: int, calls: Calls, *, quiet: bool) -> CompressReport:
        loaded = await self._load(reader, None)
        folded = _Folded(made=[])
        failure: AgbossError | None = None
        try:
            await self._fold(reader, loaded, window, calls, folded)
        except AgbossError as error:
            if not quiet:
                raise
            failure = error
        return CompressReport(
            compressed_messages=folded.covered,
            summaries=tuple(folded.made[-1:]),
            error_code=failure.code if failure else "",
            error=failure.message if failure else "",
        )

    async def _fold(self, reader: Reader, loaded: Loaded, window: int, calls: Calls, folded: _Folded) -> None:
        """Step by step: the summary so far and the next chunk become the next summary. Each step is complete."""
        active = list(loaded.summaries)
        for run in runs(*_foldable(loaded)):
            rest = list(run)
            while rest:
                previous = _neighbour(active, rest[0])
                task = RangeTask(
                    atoms=(), previous=previous, agent_window=window, summariser_window=self._summary_window or window
                )
                chunk = chunks(rest, transcript_room(task, reader.counter))[0]
                rest = rest[len(chunk) :]
                task = replace(task, atoms=chunk)
                if not can_gain(task, reader.counter):
                    break
                summary = await self._summarise(reader, task, calls)
                active = [kept for kept in active if not summary.first <= kept.first <= summary.last] + [summary]
                folded.made.append(summary)
                folded.covered += sum(len(atom.numbers) for atom in chunk)

    async def _summarise(self, reader: Reader, task: RangeTask, calls: Calls) -> Summary:
        if self._model is None:
            raise no_model(self.kind)
        text, tokens = await summarise_range(self._model, task, reader.counter, calls)
        return await reader.log.save_summary(
            Summary(
                first=task.first,
                last=task.last,
                text=text,
                kind=self.kind,
                tokens=tokens,
                model=self.config.summary_model or "",
                prompt_hash=WINDOW_PROMPT_HASH,
                created_at=reader.context.now,
            )
        )


def _foldable(loaded: Loaded) -> tuple[list[Atom], int | None]:
    """Stored atoms that may be folded: all of them after an answer, else those before the newest turn, and its number."""
    stored = [atom for atom in loaded.atoms if atom.numbers and atom.numbers[-1] <= loaded.last]
    running = len(stored) < len(loaded.atoms)
    if not stored or running:
        return stored[: newest_turn(loaded.atoms)], None
    if in_loop(stored) or stored[-1].from_user:
        newest = newest_turn(stored)
        return stored[:newest], stored[newest].numbers[0]
    return stored, None


def _neighbour(active: Sequence[Summary], atom: Atom) -> Summary | None:
    """The summaries that reach without a gap to right before an atom, as one; the next summary replaces them."""
    chain: list[Summary] = []
    begin = atom.numbers[0]
    for summary in sorted(active, key=lambda kept: -kept.first):
        if summary.first <= begin <= summary.last + 1:
            chain.insert(0, summary)
            begin = summary.first
    if len(chain) <= 1:
        return chain[0] if chain else None
    text = "\n".join(summary.text for summary in chain)
    return Summary(first=chain[0].first, last=chain[-1].last, text=text)
