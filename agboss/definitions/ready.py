"""Definitions that come with the package."""

from __future__ import annotations

from importlib.resources import files

from agboss.definitions.definition import AgentDefinition, parse_definition


def ready_definitions() -> tuple[AgentDefinition, ...]:
    """Four agents to begin with, by name: save one into a folder and edit it.

    ``assistant-with-tools`` and ``research-lead`` (memory as by default), ``planner`` (``auto_compact``) and
    ``conversation-summarizer`` (``none``).
    """
    folder = files("agboss.definitions").joinpath("ready")
    texts = [entry.read_text(encoding="utf-8") for entry in folder.iterdir() if entry.name.endswith(".json")]
    return tuple(sorted(map(parse_definition, texts), key=lambda item: item.name))
