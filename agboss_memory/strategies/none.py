"""Nothing of the past."""

from __future__ import annotations

from agboss_memory.atoms import in_loop, newest_turn
from agboss_memory.config import NoneConfig
from agboss_memory.contract import BaseMemoryStrategy, MemoryContext, MemoryView, Reach
from agboss_memory.strategies.reading import PAGE, Reader
from agboss_memory.strategies.selection import Picked, WindowRule, usable, view_of


class NoneMemory(BaseMemoryStrategy):
    """The system prompt and the current turn.

    Args:
        config: Its configuration; there is nothing to configure.
    """

    kind = "none"

    def __init__(self, config: NoneConfig | None = None) -> None:
        self.config = config or NoneConfig()
        self.rule = WindowRule()
        self.reach = Reach(terns=0, messages=0, summaries=0)

    async def build_context(self, context: MemoryContext) -> MemoryView:
        """The running turn: what the log does not have yet, or a newest turn that has no answer."""
        self.rule.window(context.budget, context.agent)
        loaded = await Reader(context).newest(PAGE)
        sound = usable(loaded.atoms)
        atoms = sound.kept
        begin = newest_turn(atoms)
        open_turn = bool(atoms) and (in_loop(atoms) or atoms[-1].from_user)
        kept = atoms[begin:] if open_turn else ()
        left = tuple((atom, "not_of_this_turn") for atom in atoms[: len(atoms) - len(kept)])
        return view_of(loaded, (sound, Picked(kept=kept, left=left)))
