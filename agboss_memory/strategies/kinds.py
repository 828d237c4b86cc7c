"""From a configuration to its strategy."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import agboss_memory.strategies as strategies  # each kind is loaded when it is used
from agboss_memory.config import (
    AnyMemoryConfig,
    AutoCompactConfig,
    FullConfig,
    NoneConfig,
    SummarizingWindowConfig,
    WindowedConfig,
)
from agboss_memory.contract import MemoryModel
from agboss_memory.errors import InvalidInputError
from agboss_memory.wording import quoted

if TYPE_CHECKING:
    from agboss_memory.strategies.auto_compact import AutoCompactMemory
    from agboss_memory.strategies.full import FullMemory
    from agboss_memory.strategies.none import NoneMemory
    from agboss_memory.strategies.summarizing_window import SummarizingWindowMemory
    from agboss_memory.strategies.windowed import WindowedMemory

WindowStrategy: TypeAlias = "SummarizingWindowMemory | AutoCompactMemory | WindowedMemory | FullMemory | NoneMemory"


def strategy_for(
    config: AnyMemoryConfig,
    model: MemoryModel | None = None,
    *,
    stub_model: MemoryModel | None = None,
    summary_window: int | None = None,
) -> WindowStrategy:
    """The strategy of a kind.

    Args:
        config: Its configuration.
        model: Writes summaries, for the kinds that have them.
        stub_model: Writes stubs of tool results; None = by rule.
        summary_window: Window of ``model`` in tokens; None = that of the agent.

    Raises:
        InvalidInputError: ``config`` is no configuration.
    """
    if isinstance(config, WindowedConfig):
        return strategies.WindowedMemory(config)
    if isinstance(config, FullConfig):
        return strategies.FullMemory(config)
    if isinstance(config, NoneConfig):
        return strategies.NoneMemory(config)
    if isinstance(config, AutoCompactConfig):
        return strategies.AutoCompactMemory(config, model, summary_window=summary_window)
    if not isinstance(config, SummarizingWindowConfig):  # pyright: ignore[reportUnnecessaryIsInstance]
        what = f"{quoted(config)} is no memoryConfig"
        raise InvalidInputError("memory-config.invalid", what, "pass what parse_memory_config(...) gives")
    return strategies.SummarizingWindowMemory(config, model, stub_model=stub_model, summary_window=summary_window)
