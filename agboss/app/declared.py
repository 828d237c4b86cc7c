"""What ``create_app`` was given, made whole: the workflow's record with its settings and its single-agent form."""

from __future__ import annotations

from typing import Any

import agboss.components as parts  # settings are loaded where somebody sets them
from agboss.components.agent import AgentSpec
from agboss.components.boundary import AnswerFinish, TaskStart
from agboss.components.inherited import inherited
from agboss.components.metadata import component_of, settings_error
from agboss.components.naming import describe, normal_name
from agboss.components.workflow import WorkflowSpec
from agboss.errors import AssemblyError, DeclarationError
from agboss.flow import chain
from agboss_memory.records import replace


def declared(target: Any) -> WorkflowSpec:
    """The workflow's record, with what ``settings()`` returns filled in. One agent is a workflow of one.

    Raises:
        AssemblyError: ``target`` is neither a workflow nor an agent.
    """
    spec = component_of(target)
    if isinstance(spec, AgentSpec):
        return WorkflowSpec(
            kind="workflow",
            name=normal_name(spec.name),
            description=spec.description,
            target=spec.target,
            version="0.0.0",
            flow=(chain(TaskStart, target, AnswerFinish),),
            prompt_variables={},
        )
    if not isinstance(spec, WorkflowSpec):
        label = describe(target)
        problem = DeclarationError(
            "assembly.not-a-workflow",
            f"create_app got {label}, which is neither a workflow nor an agent",
            "decorate it with @workflow(...) or @agent(...)",
        )
        raise AssemblyError.of(label, [problem])
    return _with_settings(spec)


def _with_settings(spec: WorkflowSpec) -> WorkflowSpec:
    method = getattr(spec.target, "settings", None)
    if method is None:
        return spec
    from pydantic import ValidationError

    try:
        settings = spec.target().settings()
    except ValidationError as error:
        raise AssemblyError.of(spec.name, [settings_error(f"{describe(spec.target)}.settings()", error)]) from error
    if not isinstance(settings, parts.WorkflowSettings):
        problem = DeclarationError(
            "assembly.bad-settings",
            f"{describe(spec.target)}.settings() gave {type(settings).__name__}",
            "return WorkflowSettings.builder()....build()",
        )
        raise AssemblyError.of(spec.name, [problem])
    changes: dict[str, Any] = {
        name: value
        for name in ("compaction", "limits", "prompt_variables")
        if (value := getattr(settings, name)) is not None
    }
    if settings.defaults is not None:
        changes["defaults"] = inherited(settings.defaults)
    return replace(spec, **changes)
