"""From a definition to an agent class, as a workflow takes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agboss.components.agent import agent
from agboss.components.tool import ToolRef, tool_spec
from agboss.definitions.definition import AgentDefinition, DefinedTool
from agboss.errors import InvalidInputError
from agboss_memory.nearest import close_names
from agboss_memory.tool_results import FETCH_TOOL_RESULT


def defined_agent(definition: AgentDefinition, *, tools: Sequence[Any] = ()) -> type[Any]:
    """An agent class for ``chain(...)``, made of a definition.

    Args:
        definition: The agent.
        tools: Tool classes, functions or ``ToolRef`` that its tool names may mean.

    Raises:
        InvalidInputError: ``definition.unknown-tool``: names every tool that is not among ``tools``.
        DeclarationError: A tool is none.
    """
    named = _by_name(tools)
    missing = [item.name for item in definition.tools if item.name not in named]
    if missing:
        raise _unknown_tools(definition.name, missing, list(named))
    title = "".join(part.capitalize() for part in definition.name.split("-"))
    made = type(title, (), {"__doc__": definition.description})
    return agent(
        name=definition.name,
        description=definition.description,
        prompt=definition.system_prompt,
        model=definition.model,
        tools=[_used(named[item.name], item) for item in definition.tools],
        memory_config=definition.effective_memory,
    )(made)


def known_tools(tools: Sequence[Any]) -> dict[str, str]:
    """The first line of each tool's description by its name, ``fetch_tool_result`` among them.

    Raises:
        InvalidInputError: ``definition.duplicate-tool``: two tools have one name.
        DeclarationError: A tool is none.
    """
    told = {FETCH_TOOL_RESULT: "Reads a shortened tool result again, in pages."}
    for name, item in _by_name(tools).items():
        if name != FETCH_TOOL_RESULT:
            target = item.target if isinstance(item, ToolRef) else item
            told[name] = next(iter(tool_spec(target, {}).description.strip().splitlines()), "")
    return told


def _by_name(tools: Sequence[Any]) -> dict[str, Any]:
    named: dict[str, Any] = {FETCH_TOOL_RESULT: FETCH_TOOL_RESULT}
    for item in tools:
        target = item.target if isinstance(item, ToolRef) else item
        name = tool_spec(target, {}).name
        if named.setdefault(name, item) is not item:
            text = f"two of the tools are called {name!r}"
            raise InvalidInputError("definition.duplicate-tool", text, "give one of them another name", tool=name)
    return named


def _used(given: Any, item: DefinedTool) -> Any:
    if given == FETCH_TOOL_RESULT or item.max_result_chars <= 0:
        return given
    return ToolRef(given.target if isinstance(given, ToolRef) else given, max_result_chars=item.max_result_chars)


def _unknown_tools(name: str, missing: Sequence[str], known: Sequence[str]) -> InvalidInputError:
    nearest = [(tool, close_names(tool, known)) for tool in missing]
    meant = [f"for {tool!r} did you mean {near[0]!r}?" for tool, near in nearest if near]
    return InvalidInputError(
        "definition.unknown-tool",
        f"agent {name!r} names tools that are not there: " + ", ".join(repr(tool) for tool in missing),
        " ".join(meant) or "pass them as tools=; known are: " + ", ".join(sorted(known)),
        agent=name,
        tools=tuple(missing),
    )
