"""The last stored messages."""

from __future__ import annotations

from agboss_memory.config import WindowedConfig
from agboss_memory.contract import BaseMemoryStrategy, MemoryContext, MemoryView, Reach
from agboss_memory.strategies.reading import Reader
from agboss_memory.strategies.selection import WindowRule, usable, view_of, within_messages


class WindowedMemory(BaseMemoryStrategy):
    """The last ``window_size`` stored messages, whole atoms only, verbatim; no summaries.

    Args:
        config: Its configuration; None = the defaults.
    """

    kind = "windowed"

    def __init__(self, config: WindowedConfig | None = None) -> None:
        self.config = config or WindowedConfig()
        self.rule = WindowRule()
        self.reach = Reach(terns=0, messages=self.config.window_size, summaries=0)

    async def build_context(self, context: MemoryContext) -> MemoryView:
        """The newest messages; the current task comes on top and does not count."""
        self.rule.window(context.budget, context.agent)
        loaded = await Reader(context).newest(self.config.window_size)
        current = [atom for atom in loaded.atoms if not any(n in loaded.stored for n in atom.numbers)]
        free = 1 if current and current[0].from_user and len(current) == 1 else 0
        sound = usable(loaded.atoms)
        return view_of(loaded, (sound, within_messages(sound.kept, self.config.window_size + free)))
