"""An agent as JSON: who it is, what it may call, what it remembers."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, ValidationError, field_validator

from agboss.errors import InvalidInputError
from agboss_memory.config import (
    AnyMemoryConfig,
    MemoryConfig,
    SummarizingWindowConfig,
    WireModel,
    wire_pointers,
    wire_problems,
)

NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
LONGEST_NAME = 64
"""Characters of an agent's name."""

_HINT = "see its JSON Schema, which 'agboss schema' prints"


class DefinedTool(WireModel):
    """A tool that an agent may call.

    Attributes:
        name: Name of a tool that the runtime was given, or ``fetch_tool_result``.
        max_result_chars: Characters of a result that are kept for this agent; 0 or less = the tool's own setting.
    """

    name: str = Field(min_length=1, max_length=64)
    max_result_chars: Annotated[int, Field(strict=True)] = 0


class AgentDefinition(WireModel):
    """An agent as a JSON file holds it; on the wire ``systemPrompt``, ``maxResultChars``, ``memoryConfig``.

    Attributes:
        name: Lowercase letters, digits and single dashes, at most 64; the file is called after it.
        description: What it is for.
        system_prompt: Its system prompt.
        model: Model id such as ``openai:gpt-5-mini``; null = that of ``AGBOSS_MODEL``.
        tools: What it may call.
        memory_config: What it remembers; null = ``summarizing_window`` with its defaults.
        editor_schema: ``$schema``, for editors.
    """

    name: str
    description: str = ""
    system_prompt: str = ""
    model: str | None = None
    tools: tuple[DefinedTool, ...] = ()
    memory_config: MemoryConfig | None = None
    editor_schema: str | None = Field(default=None, alias="$schema")

    @field_validator("name")
    @classmethod
    def _usable_name(cls, name: str) -> str:
        if not NAME.fullmatch(name) or len(name) > LONGEST_NAME:
            raise ValueError(f"use up to {LONGEST_NAME} lowercase letters, digits and single dashes")
        return name

    @field_validator("tools")
    @classmethod
    def _distinct_tools(cls, tools: tuple[DefinedTool, ...]) -> tuple[DefinedTool, ...]:
        double = [name for name, count in Counter(tool.name for tool in tools).items() if count > 1]
        if double:
            raise ValueError(f"{double[0]!r} is named twice")
        return tools

    @property
    def effective_memory(self) -> AnyMemoryConfig:
        """The memoryConfig that counts: the stored one, else ``summarizing_window`` with its defaults."""
        return SummarizingWindowConfig() if self.memory_config is None else self.memory_config

    @property
    def version(self) -> str:
        """Changes with every change of the definition."""
        return "d-" + hashlib.sha256(self.to_json().encode()).hexdigest()[:12]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values in wire spelling. A memoryConfig keeps what was left out of it left out."""
        config = self.memory_config
        told: dict[str, Any] = {} if self.editor_schema is None else {"$schema": self.editor_schema}
        return told | {
            "name": self.name,
            "description": self.description,
            "systemPrompt": self.system_prompt,
            "model": self.model,
            "tools": [tool.model_dump(mode="json") for tool in self.tools],
            "memoryConfig": None
            if config is None
            else {"kind": config.kind, **config.model_dump(mode="json", exclude_unset=True)},
        }

    def to_json(self) -> str:
        """The text of its file."""
        return json.dumps(self.to_dict(), indent=2) + "\n"


def parse_definition(value: AgentDefinition | Mapping[str, Any] | str) -> AgentDefinition:
    """A definition from a model, a dict or JSON text.

    Raises:
        InvalidInputError: ``definition.invalid``: names each JSON pointer, the value and the nearest known name;
            ``data["problems"]`` holds pointers and messages.
    """
    try:
        return AgentDefinition.model_validate(_read(value) if isinstance(value, str) else value)
    except ValidationError as error:
        raise InvalidInputError(
            "definition.invalid",
            "the agent definition is not valid: " + wire_problems(error),
            _HINT,
            problems=wire_pointers(error),
        ) from error


def with_memory(definition: AgentDefinition, text: str) -> AgentDefinition:
    """A definition with another memoryConfig, given as JSON. Blank text keeps it, ``null`` is the default.

    Raises:
        InvalidInputError: ``definition.invalid``, as ``parse_definition``.
    """
    if not text.strip():
        return definition
    return parse_definition(definition.to_dict() | {"memoryConfig": _read(text)})


def definition_schema() -> dict[str, Any]:
    """JSON Schema of an agent definition, as editors read it."""
    return AgentDefinition.model_json_schema(by_alias=True)


def _read(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        place = f" at line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        what = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise InvalidInputError(
            "definition.invalid",
            f"this is no JSON{place}: {what}",
            _HINT,
            problems=(("", f"{what}{place}"),),
        ) from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys stand once: of two, one would be lost without a word."""
    made = dict(pairs)
    if len(made) < len(pairs):
        double = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {double!r} stands twice")
    return made
