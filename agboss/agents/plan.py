"""An agent with everything decided: what the runner works with."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from agboss.agents.tools import BoundTool
from agboss.components.agent import AgentSpec, PromptContext
from agboss.models import ModelHandle
from agboss_memory.attachments import PartContentReader
from agboss_memory.contract import BaseMemoryStrategy, Reach, TokenCounter
from agboss_memory.mapper import LlmMessageMapper
from agboss_memory.records import Record

PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


class AgentPlan(Record):
    """A resolved agent.

    Attributes:
        spec: The declaration.
        model: Its model, with all defaults filled into its specification.
        tools: Its tools by name.
        strategy: What decides its view.
        strategy_name: Name of the strategy in errors and in ``/memory``.
        reach: How far the strategy reads, with ``None`` replaced by numbers.
        counter: Gives the token counter of its model.
        variables: Values of ``{name}`` placeholders.
        mapper: The last step before its model.
        reader: Reads the bytes of files; None = the store's own.
    """

    spec: AgentSpec
    model: ModelHandle
    tools: Mapping[str, BoundTool]
    strategy: BaseMemoryStrategy
    strategy_name: str
    reach: Reach
    counter: Callable[[], TokenCounter]
    variables: Mapping[str, str]
    mapper: LlmMessageMapper
    reader: PartContentReader | None = None

    @property
    def name(self) -> str:
        """The agent's name."""
        return self.spec.name

    @property
    def schema_texts(self) -> list[str]:
        """The tool schemas as text, for counting."""
        return [
            f"{tool.schema.name} {tool.schema.description} {tool.schema.parameters}" for tool in self.tools.values()
        ]

    @property
    def reply_reserve(self) -> int:
        """Tokens kept free for the answer: ``max_tokens`` if given, else min(4096, window // 8), 0 without a window."""
        if self.model.spec.max_tokens is not None:
            return self.model.spec.max_tokens
        window = self.model.window
        return 0 if window is None else min(4096, window // 8)

    def system_prompt(self, context: PromptContext) -> str:
        """The prompt with its placeholders filled; braces that name no variable are left alone."""
        prompt = self.spec.prompt
        text = prompt if isinstance(prompt, str) else prompt(context)
        return fill(text, self.variables)


def fill(text: str, variables: Mapping[str, str]) -> str:
    """``text`` with ``{name}`` replaced for every known name."""
    if not variables or "{" not in text:
        return text
    return PLACEHOLDER.sub(lambda found: variables.get(found.group(1), found.group(0)), text)
