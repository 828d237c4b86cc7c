"""An agent with everything decided: what the runner works with."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from agboss.agents.tools import BoundTool
from agboss.components.agent import AgentSpec, PromptContext
from agboss.models import ModelHandle
from agboss_memory.attachments import PartContentReader
from agboss_memory.contract import BaseMemoryStrategy, Budget, Reach, TokenCounter
from agboss_memory.mapper import LlmMessageMapper
from agboss_memory.records import Record
from agboss_memory.strategies.turns import TurnMemory

if TYPE_CHECKING:
    from agboss_memory.config import AnyMemoryConfig

_PLACEHOLDER = r"\{([A-Za-z_][A-Za-z0-9_]*)\}"


class AgentPlan(Record, kw_only=True):
    """A resolved agent.

    Attributes:
        name: The agent's name.
        spec: The declaration.
        prompt: Its system prompt, filled; None when a function makes it.
        schema_texts: The tool schemas as text, for counting.
        model: Its model, with all defaults filled into its specification.
        tools: Its tools by name.
        strategy: What decides its view.
        strategy_name: Name of the strategy in errors and in ``/memory``.
        reach: How far the strategy reads, with ``None`` replaced by numbers.
        counter: Gives the token counter of its model.
        variables: Values of ``{name}`` placeholders.
        config: Its memoryConfig, None = it has no conversation of its own.
        shares_thread: Terns of other agents are part of its conversation.
        summary_model: Id of the model that writes its summaries, or empty.
        mapper: The last step before its model.
        reader: Reads the bytes of files; None = the store's own.
    """

    name: str
    spec: AgentSpec
    prompt: str | None
    schema_texts: tuple[str, ...]
    model: ModelHandle
    tools: Mapping[str, BoundTool]
    strategy: BaseMemoryStrategy
    strategy_name: str
    reach: Reach
    counter: Callable[[], TokenCounter]
    variables: Mapping[str, str]
    mapper: LlmMessageMapper
    reader: PartContentReader | None = None
    config: AnyMemoryConfig | None = None
    shares_thread: bool = False
    summary_model: str = ""

    @property
    def kind(self) -> str:
        """The memoryConfig kind, ``turns`` for turn memory, else ``custom``."""
        if self.config is not None:
            return self.config.kind
        return "turns" if isinstance(self.strategy, TurnMemory) else "custom"

    @property
    def budget(self) -> Budget:
        """Window, reply reserve and counter: what a strategy has to go by."""
        return self.model.budget(self.counter)

    def system_prompt(self, context: PromptContext) -> str:
        """The prompt with its placeholders filled."""
        prompt = self.spec.prompt
        return fill(prompt, self.variables) if isinstance(prompt, str) else fill(prompt(context), self.variables)


def placeholders(text: str) -> list[str]:
    """Names that stand in braces in a text, in order."""
    return re.findall(_PLACEHOLDER, text) if "{" in text else []


def fill(text: str, variables: Mapping[str, str]) -> str:
    """``text`` with ``{name}`` replaced for every known name; braces that name no variable are left alone."""
    if not variables or "{" not in text:
        return text
    return re.sub(_PLACEHOLDER, lambda found: variables.get(found.group(1), found.group(0)), text)
