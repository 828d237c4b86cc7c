"""The newest part of threads in use, kept in memory so that a Tern reads nothing it has just written."""

from __future__ import annotations

from collections import OrderedDict

from agboss_memory.messages import Block, Summary, Tern
from agboss_memory.records import Struct, replace
from agboss_memory.stores.contract import Admitted, Window, WindowSpec

MOST_THREADS = 1024
"""Threads whose window is kept; the one unused for longest goes first."""


class Held(Struct):
    """A thread's window together with the version under which it holds."""

    version: int
    window: Window


class Windows:
    """Windows of threads. One holds only as long as the store still has the same version of the thread.

    Args:
        spec: How much of a thread readers need.
        most: Threads kept at once.
    """

    def __init__(self, spec: WindowSpec, most: int = MOST_THREADS) -> None:
        self.spec = spec
        self._most = most
        self._entries: OrderedDict[str, Held] = OrderedDict()

    def held(self, thread: str) -> Held | None:
        """What is held of a thread, None when nothing is."""
        return self._entries.get(thread)

    def after_admission(self, admitted: Admitted, held: Held | None) -> Window:
        """The window for an admitted Tern: the one just read, else the one that was held when it was asked for."""
        window = admitted.window
        if window is None and held is not None:
            window = held.window
        if window is None:
            window = Window()
        self._entries[admitted.thread] = Held(admitted.version, window)
        self._entries.move_to_end(admitted.thread)
        if len(self._entries) > self._most:
            self._entries.popitem(last=False)
        return window

    def after_commit(
        self, thread: str, version: int, tern: Tern, planned: tuple[Block, ...], due: tuple[Block, ...]
    ) -> None:
        """Take a finished Tern into the window (a paused one is not shown), with the blocks that it began and all that are due now."""
        entry = self._entries.get(thread)
        if entry is None:
            return
        window = entry.window
        terns = (*window.terns, tern)[-self.spec.terns :] if tern.status.finished else window.terns
        entry.version = version
        passed = bool(window.blocks and terns) and window.blocks[0].last < terns[0].number
        if not (planned or due or passed):
            entry.window = replace(window, terns=terns)
            return
        begun = tuple(replace(block, state="open") for block in planned)
        entry.window = replace(
            window,
            terns=terns,
            blocks=merge_blocks(window.blocks, (*begun, *due), terns),
            planned_to=max((window.planned_to, *(block.last for block in planned))),
        )

    def after_summary(self, thread: str, window: Window, summary: Summary, block: Block) -> Window:
        """Take a new summary into the thread's window, or into ``window`` when none is held; gives the new one."""
        entry = self._entries.get(thread)
        if entry is not None:
            window = entry.window
        ordered = tuple(sorted((*window.summaries, summary), key=lambda item: item.last))
        changed = replace(
            window,
            summaries=ordered[-self.spec.summaries :] if self.spec.summaries else (),
            blocks=merge_blocks(window.blocks, (block,), window.terns),
        )
        return _put(entry, changed)

    def after_block(self, thread: str, window: Window, block: Block) -> Window:
        """Take a block's new state into the thread's window, or into ``window`` when none is held; gives the new one."""
        entry = self._entries.get(thread)
        if entry is not None:
            window = entry.window
        return _put(entry, replace(window, blocks=merge_blocks(window.blocks, (block,), window.terns)))

    def drop(self, thread: str) -> None:
        """Forget a thread's window."""
        self._entries.pop(thread, None)


def _put(entry: Held | None, window: Window) -> Window:
    if entry is not None:
        entry.window = window
        entry.version += 1
    return window


def merge_blocks(held: tuple[Block, ...], new: tuple[Block, ...], terns: tuple[Tern, ...]) -> tuple[Block, ...]:
    """``held`` with ``new`` in place of blocks of the same range; settled ones below the oldest Tern go."""
    merged = {block.last: block for block in (*held, *new)}
    oldest = terns[0].number if terns else 0
    kept = (block for block in merged.values() if block.last >= oldest or block.state == "due")
    return tuple(sorted(kept, key=lambda block: block.last))
