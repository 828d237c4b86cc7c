"""What a workflow's components inherit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agboss_memory.records import Record

if TYPE_CHECKING:
    from agboss.components.model_spec import ModelSpec, Thinking
    from agboss.components.router import AnyRouter
    from agboss.components.settings import Defaults

HISTORY_LIMIT = 10
"""Last Terns that are shown raw where nobody says how many."""


class Inherited(Record, kw_only=True):
    """A workflow's ``defaults`` as they are read; without an attribute set, as they are where nobody gives any.

    Attributes:
        model: Model of agents that name none.
        temperature: Sampling temperature.
        max_tokens: Longest answer in tokens.
        thinking: Reasoning effort.
        router: Router of components that name none.
        history_limit: Last Terns shown raw, in turns.
        history_summaries: Latest summaries shown; None = as many as compaction keeps.
    """

    model: ModelSpec | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    thinking: Thinking | None = None
    router: AnyRouter | None = None
    history_limit: int = HISTORY_LIMIT
    history_summaries: int | None = None


def inherited(defaults: Defaults) -> Inherited:
    """What ``defaults`` say."""
    models, history = defaults.models, defaults.history
    return Inherited(
        model=models.model,
        temperature=models.temperature,
        max_tokens=models.max_tokens,
        thinking=models.thinking,
        router=defaults.router,
        history_limit=history.limit,
        history_summaries=history.summaries,
    )
