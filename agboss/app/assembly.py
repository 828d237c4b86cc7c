"""From a declared workflow to a plan: every check first, all violations at once, then the building."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agboss.app.checks import check_agents, check_compaction, check_limits, check_routers, check_types
from agboss.components.action import ActionSpec
from agboss.components.agent import AgentSpec
from agboss.components.injection import Provider, buildable
from agboss.components.keys import Dependency
from agboss.components.metadata import component_of
from agboss.components.model_provider import ModelProviderSpec
from agboss.components.model_spec import ModelSpec
from agboss.components.router import AnyRouter, RouterSpec
from agboss.components.tool import ToolSpec
from agboss.components.workflow import WorkflowSpec
from agboss.container import Checker, Root, merge
from agboss.errors import AgbossError, AssemblyError
from agboss.flow import compile_flow
from agboss_memory.attachments import PartContentReader
from agboss_memory.mapper import LlmMessageMapper

MODEL_VARIABLE = "AGBOSS_MODEL"
"""Environment variable that overrides the model of every agent."""

READ_SIDE = (LlmMessageMapper, PartContentReader)
"""Keys under which a workflow may provide its own way of reading the log to a model; one object for the App."""

OFFLINE_MODEL = "local:extractive"


class Assembly:
    """A checked workflow, ready to be built into a plan.

    Args:
        spec: The workflow, its settings filled in.
        providers: Replace the workflow's providers by key.
        offline: Models are replaced by the built-in one, so that an agent without a model is no violation.

    Raises:
        AssemblyError: With every violation.
    """

    def __init__(self, spec: WorkflowSpec, *, providers: Sequence[Provider] = (), offline: bool = False) -> None:
        self.spec = spec
        self.offline = offline
        self.graph, violations = compile_flow(spec.flow)
        merged, doubles = merge(spec.providers, providers)
        self._checker = Checker(merged)
        violations += doubles
        violations += self._checker.check(self._roots())
        prefixes = tuple(component.name for _, component in self.model_providers())
        violations += check_agents(spec, self.agents(), self.model_of, prefixes)
        violations += check_compaction(spec, self.compaction_model(), prefixes)
        violations += check_routers(spec, self.graph, self.name_of, prefixes)
        violations += check_types(self.graph)
        violations += check_limits(spec, self._all_models())
        if violations:
            raise AssemblyError.of(spec.name, _distinct(violations))

    @property
    def providers(self) -> Mapping[Any, Provider]:
        """All providers by key, concrete classes that need no entry of their own among them."""
        return self._checker.providers

    def name_of(self, target: Any) -> str | None:
        """The name of a component of the flow, None when it is none."""
        return self.graph.names.get(target)

    def agents(self) -> list[AgentSpec]:
        """Agents in the order of the flow."""
        return [node.spec for node in self.graph.of_kind("agent") if isinstance(node.spec, AgentSpec)]

    def actions(self) -> list[ActionSpec]:
        """Actions in the order of the flow."""
        return [node.spec for node in self.graph.of_kind("action") if isinstance(node.spec, ActionSpec)]

    def model_providers(self) -> list[tuple[Provider, ModelProviderSpec]]:
        """Providers whose class is a model provider."""
        found = ((provider, component_of(provider.target)) for provider in self.providers.values())
        return [(provider, item) for provider, item in found if isinstance(item, ModelProviderSpec)]

    def model_of(self, agent: AgentSpec) -> ModelSpec | None:
        """The agent's model with all defaults filled in, None when nothing names one."""
        defaults = self.spec.defaults
        override = os.environ.get(MODEL_VARIABLE)
        base = ModelSpec(override) if override else agent.model or defaults.model
        if base is None:
            return ModelSpec(OFFLINE_MODEL) if self.offline else None
        return base.with_values(
            thinking=_first(agent.thinking, base.thinking, defaults.thinking),
            temperature=_first(agent.temperature, base.temperature, defaults.temperature),
            max_tokens=_first(base.max_tokens, defaults.max_tokens),
        )

    def compaction_model(self) -> ModelSpec | None:
        """Model of summaries: its own, the default, or the one that all agents share; None without compaction."""
        compaction = self.spec.compaction
        if compaction is None:
            return None
        own = compaction.model or self.spec.defaults.model
        if own is not None:
            return own.with_values(temperature=_first(own.temperature, self.spec.defaults.temperature))
        specs = [self.model_of(agent) for agent in self.agents()]
        same = specs[0] if specs and all(spec == specs[0] for spec in specs) else None
        return None if same is None else same.with_values(max_tokens=None)  # that is for answers

    def router_settings(self, spec: RouterSpec) -> AnyRouter:
        """The router's settings with the workflow's default filled in; checked to be there."""
        settings = spec.settings or self.spec.defaults.router
        if settings is None:
            raise LookupError(spec.name)
        if settings.kind == "llm" and settings.model is None:
            return settings.model_copy(update={"model": self.spec.defaults.model})
        return settings

    def _all_models(self) -> list[ModelSpec]:
        found = [spec for agent in self.agents() if (spec := self.model_of(agent)) is not None]
        routers = [node.spec for node in self.graph.of_kind("router") if isinstance(node.spec, RouterSpec)]
        for settings in (spec.settings or self.spec.defaults.router for spec in routers):
            model = (
                (settings.model or self.spec.defaults.model)
                if settings is not None and settings.kind == "llm"
                else None
            )
            found += [model] if model is not None else []
        for agent in self.agents():
            config = None if agent.memory is None else agent.memory.config
            name = getattr(config, "summary_model", None)
            found += [ModelSpec(name)] if name else []
        compaction = self.compaction_model()
        return found if compaction is None else [*found, compaction]

    def _roots(self) -> Iterable[Root]:
        for agent in self.agents():
            use = agent.strategy
            if use is not None and use.instance is None:
                spec = buildable(use.cls, use.injectable)
                yield Root(label=use.name, dependencies=spec.dependencies)
            for tool in agent.tools:
                yield _tool_root(agent.name, tool.spec)
        for key in READ_SIDE:
            yield Root(label="the App", dependencies=(Dependency(parameter="", key=key, optional=True),))
        for action in self.actions():
            spec = buildable(action.target, action.injectable)
            yield Root(
                label=f"action {action.name}", dependencies=spec.dependencies, scope=spec.scope, problem=spec.problem
            )


def _tool_root(agent: str, tool: ToolSpec) -> Root:
    label = f"tool {tool.name} of agent {agent}"
    if tool.injectable is None:
        return Root(label=label, dependencies=tool.dependencies, scope="tern")
    spec = buildable(tool.target, tool.injectable)
    return Root(label=label, dependencies=spec.dependencies, scope=spec.scope, problem=spec.problem)


def _distinct(violations: Iterable[AgbossError]) -> list[AgbossError]:
    found: dict[tuple[str, str], AgbossError] = {}
    for error in violations:
        found.setdefault((error.code, error.message), error)
    return list(found.values())


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)
