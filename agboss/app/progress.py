"""How far a Compact is, told while it works."""

from __future__ import annotations

from collections.abc import Callable

import agboss.events as events
from agboss.components.model_spec import ModelSpec
from agboss.models.chat import ChatModel, ModelReply, ModelRequest
from agboss.models.meter import Meter
from agboss_memory.records import Record, replace


class CompactProgress(Record, kw_only=True):
    """How far a Compact is.

    Attributes:
        calls: Model calls that have ended.
        summaries: Summaries that are written, one per block in turn memory.
        blocks: Blocks of turn memory that were to be summarised when it began; 0 for other kinds, which learn on the way.
    """

    calls: int = 0
    summaries: int = 0
    blocks: int = 0


HearProgress = Callable[[CompactProgress], None]


class ProgressTeller:
    """Tells each step of one Compact.

    Args:
        hear: Who is told.
    """

    def __init__(self, hear: HearProgress) -> None:
        self._hear = hear
        self._now = CompactProgress()

    def begins(self, blocks: int) -> None:
        """The number of blocks is known."""
        self._tell(replace(self._now, blocks=blocks))

    def called(self) -> None:
        """A model call has ended."""
        self._tell(replace(self._now, calls=self._now.calls + 1))

    def take(self, event: events.RunEvent) -> None:
        """An event of the work."""
        if isinstance(event, events.Compacted):
            self._tell(replace(self._now, summaries=self._now.summaries + 1))

    def _tell(self, now: CompactProgress) -> None:
        self._now = now
        self._hear(now)


class ToldMeter(Meter):
    """A meter that tells of each model call."""

    teller: ProgressTeller | None = None

    async def generate(self, model: ChatModel, spec: ModelSpec, request: ModelRequest, node: str) -> ModelReply:
        """See ``Meter.generate``."""
        try:
            return await super().generate(model, spec, request, node)
        finally:
            if self.teller is not None:
                self.teller.called()
