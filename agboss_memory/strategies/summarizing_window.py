"""A suffix of the conversation that fits a share of the window; what is older is summarised."""

from __future__ import annotations

import asyncio
import logging

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
from agboss_memory.config import SummarizingWindowConfig, SummaryPlacement
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
from agboss_memory.errors import AgbossError, CompactionError
from agboss_memory.messages import Message, Summary
from agboss_memory.records import replace
from agboss_memory.render import placed
from agboss_memory.strategies.reading import Loaded, Reader
from agboss_memory.strategies.selection import WindowRule, mapped, share, usable, view_of, within_tokens
from agboss_memory.strategies.stubbing import compress_results, stubs_shown
from agboss_memory.wording import told

CAP_MARK = "\n[... message cut: it is longer than one message may be in this window]"
_LOG = logging.getLogger("agboss_memory")


class SummarizingWindowMemory(BaseMemoryStrategy):
    """The newest messages within a share of the window, older ones as summaries, old tool results as stubs.

    Args:
        config: Its configuration; None = the defaults.
        model: Writes summaries; without one nothing is summarised.
        stub_model: Writes stubs of tool results; None = by rule.
        summary_window: Window of ``model`` in tokens; None = that of the agent.
    """

    kind = "summarizing_window"

    def __init__(
        self,
        config: SummarizingWindowConfig | None = None,
        model: MemoryModel | None = None,
        *,
        stub_model: MemoryModel | None = None,
        summary_window: int | None = None,
    ) -> None:
        self.config = config or SummarizingWindowConfig()
        self.rule = WindowRule()
        self.reach = Reach(terns=0, messages=self.config.max_history_fetch, summaries=0)
        self._model = model
        self._stub_model = stub_model
        self._summary_window = summary_window

    async def build_context(self, context: MemoryContext) -> MemoryView:
        """Compress what may be compressed, then take the newest messages that fit."""
        window = self.rule.window(context.budget, context.agent)
        reader = Reader(context, self.config.max_history_fetch)
        loaded = await self._load(reader, window, share(window, self.config.max_conversation_ratio))
        loaded, warnings = await self._compressed(reader, loaded, window)
        sound = usable(loaded.shown)
        picked = within_tokens(sound.kept, share(window, self.config.max_conversation_ratio))
        in_system = self.config.summary_placement is SummaryPlacement.SYSTEM_PROMPT
        led = bool(loaded.summaries) and not in_system
        view = view_of(loaded, (sound, picked), summaries=loaded.summaries, led=led)
        return replace(placed(view, loaded.summaries, in_system=in_system), warnings=warnings)

    async def _load(self, reader: Reader, window: int, limit: int | None) -> Loaded:
        cap = share(window, self.config.max_message_ratio)

        async def shape(atoms: tuple[Atom, ...]) -> tuple[Atom, ...]:
            return await asyncio.to_thread(self._shown, reader, atoms, cap)

        return await reader.live(shape, limit)

    def _shown(self, reader: Reader, atoms: tuple[Atom, ...], cap: int) -> tuple[Atom, ...]:
        def cut(message: Message) -> Message:
            if (message.tokens or 0) <= cap:
                return message
            (tokens,) = reader.counter.count([message.content])
            if tokens <= cap:
                return message
            content = reader.counter.truncate(message.content, cap) + CAP_MARK
            size = (message.tokens or 0) - tokens + reader.counter.count([content])[0]
            return replace(message, content=content, tokens=size, state="cut")

        return mapped(stubs_shown(atoms), cut)

    async def _compressed(self, reader: Reader, loaded: Loaded, window: int) -> tuple[Loaded, tuple[str, ...]]:
        """The same with fresh stubs. A failure leaves what is there."""
        try:
            done, failed = await compress_results(reader, loaded, window, self.config, self._stub_model)
        except Exception as error:  # the turn goes on uncompressed
            _LOG.warning("tool results of %r stay uncompressed: %s", reader.context.agent, told(error))
            return loaded, (f"tool-result compression failed: {type(error).__name__}",)
        warnings = (f"tool-result compression failed for {failed} results; they stay full",) if failed else ()
        if not done:
            return loaded, warnings
        return await self._load(reader, window, share(window, self.config.max_conversation_ratio)), warnings

    async def update_memory(self, turn: MemoryTurn) -> MemoryUpdate:
        """Summarise when live tokens exceed their share of the window. Errors wait for the next turn."""
        if not self.config.auto_summarize or turn.log is None:
            return MemoryUpdate()
        window = self.rule.window(turn.budget, turn.agent)
        reader = Reader(turn, self.config.max_history_fetch)
        live = await reader.at_most_live()
        if live is not None and live <= window * self.config.auto_summarize_ratio:
            return MemoryUpdate()
        loaded = await self._load(reader, window, 0)
        if loaded.live_tokens <= window * self.config.auto_summarize_ratio:
            return MemoryUpdate()
        return MemoryUpdate(report=await self._compress(reader, window, Calls(PER_TURN), quiet=True))

    async def compress(self, context: MemoryContext) -> CompressReport:
        """Summarise everything before the newest turn. Raises CompactionError; what was written before stays."""
        if context.log is None:
            return CompressReport()
        window = self.rule.window(context.budget, context.agent)
        return await self._compress(Reader(context, self.config.max_history_fetch), window, Calls(), quiet=False)

    async def _compress(self, reader: Reader, window: int, calls: Calls, *, quiet: bool) -> CompressReport:
        loaded = await self._load(reader, window, None)
        made: list[Summary] = []
        covered, failure = 0, None
        stored = [atom for atom in stubs_shown(loaded.atoms) if atom.numbers and atom.numbers[-1] <= loaded.last]
        for task in self._tasks(stored, window, reader):
            try:
                made.append(await self._summarise(reader, task, calls))
            except AgbossError as error:
                if not quiet:
                    raise
                failure = error
                break
            covered += sum(len(atom.numbers) for atom in task.atoms)
        results = 0
        if made or failure is None:
            _, results = await self._results(reader, window)
        return CompressReport(
            compressed_messages=covered,
            summaries=tuple(made),
            compressed_results=results,
            error_code=failure.code if failure else "",
            error=failure.message if failure else "",
        )

    async def _results(self, reader: Reader, window: int) -> tuple[int, int]:
        loaded = await self._load(reader, window, share(window, self.config.max_conversation_ratio))
        try:
            done, failed = await compress_results(reader, loaded, window, self.config, self._stub_model)
        except Exception as error:  # summaries that were written are not undone by it
            _LOG.warning("tool results of %r stay uncompressed: %s", reader.context.agent, told(error))
            return 0, 0
        return failed, len(done)

    def _tasks(self, atoms: list[Atom], window: int, reader: Reader) -> list[RangeTask]:
        summariser = self._summary_window or window
        empty = RangeTask(atoms=(), agent_window=window, summariser_window=summariser)
        limit = min(share(window, self.config.max_conversation_ratio), transcript_room(empty, reader.counter))
        newest = newest_turn(atoms)
        unanswered = bool(atoms) and (in_loop(atoms) or atoms[-1].from_user)
        end = atoms[newest].numbers[0] if unanswered else None
        tasks = [replace(empty, atoms=chunk) for run in runs(atoms[:newest], end) for chunk in chunks(run, limit)]
        return [task for task in tasks if can_gain(task, reader.counter)]

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


def no_model(kind: str) -> CompactionError:
    """There is nobody to write a summary."""
    return CompactionError(
        "compaction.no-model", f"{kind} has no model that could write a summary", "pass model= to it, or to Memory"
    )
