"""Agents as JSON files."""

from agboss.definitions.agents import defined_agent, known_tools
from agboss.definitions.definition import AgentDefinition, DefinedTool, definition_schema, parse_definition, with_memory
from agboss.definitions.folder import DefinitionFolder, DefinitionProblem, unknown_agent
from agboss.definitions.ready import ready_definitions

__all__ = [
    "AgentDefinition",
    "DefinedTool",
    "DefinitionFolder",
    "DefinitionProblem",
    "defined_agent",
    "definition_schema",
    "known_tools",
    "parse_definition",
    "ready_definitions",
    "unknown_agent",
    "with_memory",
]
