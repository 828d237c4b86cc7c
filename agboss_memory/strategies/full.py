"""Everything that is loaded."""

from __future__ import annotations

from agboss_memory.config import FullConfig
from agboss_memory.contract import BaseMemoryStrategy, MemoryContext, MemoryView, Reach
from agboss_memory.strategies.reading import Reader
from agboss_memory.strategies.selection import WindowRule, usable, view_of, within_messages


class FullMemory(BaseMemoryStrategy):
    """The newest ``max_history_fetch`` messages, verbatim; summaries are ignored.

    Args:
        config: Its configuration; None = the defaults.
    """

    kind = "full"

    def __init__(self, config: FullConfig | None = None) -> None:
        self.config = config or FullConfig()
        self.rule = WindowRule()
        self.reach = Reach(terns=0, messages=self.config.max_history_fetch, summaries=0)

    async def build_context(self, context: MemoryContext) -> MemoryView:
        """All that is loaded; an atom that the bound cuts is left out whole."""
        self.rule.window(context.budget, context.agent)
        loaded = await Reader(context).newest(self.config.max_history_fetch)
        running = sum(number not in loaded.stored for atom in loaded.atoms for number in atom.numbers)
        sound = usable(loaded.atoms)
        return view_of(loaded, (sound, within_messages(sound.kept, self.config.max_history_fetch + running)))
