"""What model calls were shown, as far as it was recorded: composition, no text."""

from __future__ import annotations

from agboss_memory.records import Record


class ViewRecord(Record, kw_only=True):
    """The composition of one view.

    Attributes:
        tern: Number of the Tern.
        agent: Name of the agent.
        call: Which call of its model in that Tern, from 0.
        composition: Ids, states, tokens and reasons, as JSON text.
    """

    tern: int
    agent: str
    call: int
    composition: str


class MemoryViews:
    """Recorded views of the in-memory store."""

    def __init__(self) -> None:
        self._views: dict[int, dict[tuple[int, str, int], ViewRecord]] = {}

    async def write_views(self, key: int, views: tuple[ViewRecord, ...]) -> None:
        """See ``Store.write_views``."""
        kept = self._views.setdefault(key, {})
        kept.update({(view.tern, view.agent, view.call): view for view in views})

    async def views(self, key: int, tern: int) -> tuple[ViewRecord, ...]:
        """See ``Store.views``."""
        found = self._views.get(key, {})
        return tuple(found[at] for at in sorted(found) if at[0] == tern)

    def forget_views(self, key: int) -> None:
        """The thread is gone."""
        self._views.pop(key, None)
