"""What can be wrong with agents, routers, types and limits; each function gives its violations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agboss.agents.plan import placeholders
from agboss.components.action import ActionSpec
from agboss.components.agent import AgentSpec
from agboss.components.boundary import FinishSpec, StartSpec
from agboss.components.metadata import ComponentSpec
from agboss.components.model_spec import IN_PROCESS, ModelSpec, model_id_problem
from agboss.components.naming import describe
from agboss.components.router import RouterSpec
from agboss.components.workflow import WorkflowSpec
from agboss.errors import AgbossError, DeclarationError
from agboss.flow import Graph, Node
from agboss.models import has_price
from agboss_memory.nearest import close_names
from agboss_memory.tool_results import FETCH_TOOL_RESULT

if TYPE_CHECKING:
    from pydantic import BaseModel

ModelOf = Callable[[AgentSpec], ModelSpec | None]


def check_agents(
    spec: WorkflowSpec, agents: Sequence[AgentSpec], model_of: ModelOf, prefixes: tuple[str, ...]
) -> list[AgbossError]:
    """Models, tools and history of every agent, and of compaction."""
    found: list[AgbossError] = []
    for agent in agents:
        found += _check_model(f"agent {agent.name!r}", model_of(agent), prefixes)
        found += _check_tools(agent)
        found += _check_memory(agent)
        found += _check_summary_model(agent, prefixes)
        found += _check_prompt(agent, spec.prompt_variables)
        found += _check_summaries(spec, f"agent {agent.name!r}: history_summaries", agent.history_summaries)
    found += _check_strategies(agents)
    found += _check_summaries(spec, "defaults.history.summaries", spec.defaults.history_summaries)
    return found


def check_compaction(spec: WorkflowSpec, model: ModelSpec | None, prefixes: tuple[str, ...]) -> list[AgbossError]:
    """The model that writes summaries."""
    if spec.compaction is None:
        return []
    if model is None:
        hint = "set Compaction(model=...), or defaults.models.model"
        return [DeclarationError("model.missing", "compaction has no model: the agents do not share one", hint)]
    return _check_model("compaction", model, prefixes)


def _check_model(owner: str, spec: ModelSpec | None, prefixes: tuple[str, ...]) -> list[AgbossError]:
    if spec is None:
        hint = "set model= on the component, or defaults.models.model"
        return [DeclarationError("model.missing", f"{owner} has no model", hint)]
    problem = model_id_problem(spec, prefixes)
    if not problem and spec.accepts and spec.provider in IN_PROCESS:
        text = f"{owner}: accepts={spec.accepts!r}, and model {spec.model!r} takes no files"
        return [DeclarationError("model.no-files", text, "leave accepts= out, or use a provider's model")]
    if not problem:
        return []
    text, _, hint = problem.partition("; ")
    return [DeclarationError("model.bad-id", f"{owner}: {text}", hint, model=spec.model)]


def _check_prompt(agent: AgentSpec, variables: Mapping[str, str]) -> list[AgbossError]:
    """Placeholders that are a slip of the pen: braces that resemble no variable are plain text."""
    if not isinstance(agent.prompt, str):
        return []
    found: list[AgbossError] = []
    for name in dict.fromkeys(placeholders(agent.prompt)):
        near = close_names(name, variables)
        if near and name not in variables:
            text = f"agent {agent.name!r}: prompt has {{{name}}}, and prompt_variables has no {name!r}"
            hint = f"did you mean {{{near[0]}}}? Else add {name!r} to prompt_variables"
            found.append(DeclarationError("prompt.unknown-variable", text, hint))
    return found


def _check_tools(agent: AgentSpec) -> list[AgbossError]:
    seen: dict[str, Any] = {}
    found: list[AgbossError] = []
    for use in agent.tools:
        name = use.spec.name
        if name == FETCH_TOOL_RESULT:
            text = f"agent {agent.name!r} has a tool named {name!r}: {describe(use.spec.target)}"
            hint = "the framework offers a tool of this name; give yours another name="
            found.append(DeclarationError("assembly.reserved-tool", text, hint))
        if name in seen:
            text = f"agent {agent.name!r} has two tools named {name!r}: {seen[name]} and {describe(use.spec.target)}"
            found.append(DeclarationError("assembly.duplicate-tool", text, "give one of them another name="))
        seen[name] = describe(use.spec.target)
    return found


def _check_memory(agent: AgentSpec) -> list[AgbossError]:
    """A memoryConfig that is none, and settings beside it that would have no effect."""
    label, memory = f"agent {agent.name!r}", agent.memory
    if memory is None:
        if not agent.shares_thread:
            return []
        hint = "name a memory_config; without one the agent sees all Terns of the thread anyway"
        return [DeclarationError("memory.no-config", f"{label}: shares_thread=True without a memory_config", hint)]
    found: list[AgbossError] = []
    if memory.problem is not None:
        problem = memory.problem
        error = DeclarationError("memory.bad-config", f"{label}: {problem.message}", problem.hint, **problem.data)
        error.__cause__ = problem.__cause__
        found.append(error)
    if agent.strategy is not None:
        text = f"{label} names both memory_strategy={agent.strategy.name} and memory_config"
        found.append(DeclarationError("memory.two-kinds", text, "name one of them"))
    for setting in ("history_limit", "history_summaries"):
        value = getattr(agent, setting)
        if value is not None:
            text = f"{label}: {setting}={value} has no effect beside memory_config"
            hint = f"remove {setting}; memory_config says what the agent sees"
            found.append(DeclarationError("memory.no-effect", text, hint))
    return found


def _check_summary_model(agent: AgentSpec, prefixes: tuple[str, ...]) -> list[AgbossError]:
    """The model that a memoryConfig names for its summaries."""
    name: str | None = getattr(None if agent.memory is None else agent.memory.config, "summary_model", None)
    return [] if name is None else _check_model(f"agent {agent.name!r}: summaryModel", ModelSpec(name), prefixes)


def _check_strategies(agents: Sequence[AgentSpec]) -> list[AgbossError]:
    classes: dict[str, Any] = {}
    found: list[AgbossError] = []
    for agent in agents:
        if agent.strategy is None:
            continue
        known = classes.setdefault(agent.strategy.name, agent.strategy.cls)
        if known is not agent.strategy.cls:
            text = f"two strategy classes are named {agent.strategy.name!r}"
            found.append(DeclarationError("assembly.duplicate-name", text, "rename one of the classes"))
    return found


def _check_summaries(spec: WorkflowSpec, owner: str, summaries: int | None) -> list[AgbossError]:
    keep = spec.compaction.keep if spec.compaction is not None else None
    if summaries is None or keep is None or summaries <= keep:
        return []
    text = f"{owner}={summaries} is more than compaction.keep={keep}"
    return [DeclarationError("history.summaries-above-keep", text, "raise keep or lower summaries")]


def check_routers(
    spec: WorkflowSpec, graph: Graph, name_of: Callable[[Any], str | None], prefixes: tuple[str, ...]
) -> list[AgbossError]:
    """Settings of every router, and the routes that they name."""
    found: list[AgbossError] = []
    for node in graph.of_kind("router"):
        router = node.spec
        settings = (router.settings if isinstance(router, RouterSpec) else None) or spec.defaults.router
        if settings is None:
            hint = "set @router(router=...), or defaults.router"
            found.append(DeclarationError("router.missing", f"router {router.name!r} has no settings", hint))
            continue
        named: list[Any] = [settings.fallback]
        if settings.kind == "rules":
            named += [settings.otherwise, *(rule.to for rule in settings.rules)]
        found += _check_named(node, named, name_of)
        if settings.kind == "llm" and settings.min_confidence is not None:
            text = f"router {router.name!r} of kind 'llm' has min_confidence, but a chat model gives no confidence"
            found.append(DeclarationError("router.no-confidence", text, "remove min_confidence, or use kind 'jev'"))
        if settings.kind == "llm":
            found += _check_model(f"router {router.name!r}", settings.model or spec.defaults.model, prefixes)
        if settings.kind == "jev" and len(node.routes) > 255:
            text = f"router {router.name!r} has {len(node.routes)} routes; a decision model takes at most 255"
            found.append(DeclarationError("router.too-many-routes", text, "split it into two routers"))
    return found


def _check_named(node: Node, targets: Iterable[Any], name_of: Callable[[Any], str | None]) -> list[AgbossError]:
    found: list[AgbossError] = []
    for target in targets:
        if target is None:
            continue
        name = target if isinstance(target, str) else name_of(target)
        if name not in node.routes:
            label = repr(target) if isinstance(target, str) else describe(target)
            text = f"router {node.spec.name!r} names {label}, which is not one of its routes"
            hint = "its routes are " + ", ".join(node.routes) if node.routes else "write from_(Router).routes(...)"
            found.append(DeclarationError("flow.unknown-route", text, hint))
    return found


def check_types(graph: Graph) -> list[AgbossError]:
    """Along plain edges, what a node gives must be what the next one wants, where both say it."""
    found: list[AgbossError] = []
    for node in graph.nodes.values():
        if node.next is None:
            continue
        gives, wants = _gives(node.spec), _wants(graph.nodes[node.next].spec)
        if gives is not None and wants is not None and not issubclass(gives, wants):
            text = f"{node.spec.name!r} gives {gives.__name__}, but {node.next!r} wants {wants.__name__}"
            found.append(
                DeclarationError("flow.type-mismatch", text, "make the models match, or put an action between")
            )
    return found


def _gives(spec: ComponentSpec) -> type[BaseModel] | None:
    if isinstance(spec, StartSpec):
        return spec.input
    return spec.output if isinstance(spec, AgentSpec | ActionSpec) else None


def _wants(spec: ComponentSpec) -> type[BaseModel] | None:
    if isinstance(spec, FinishSpec):
        return spec.output
    return spec.input if isinstance(spec, AgentSpec | ActionSpec) else None


def check_limits(spec: WorkflowSpec, models: Iterable[ModelSpec]) -> list[AgbossError]:
    """A limit in US dollars holds only when every model has a price."""
    if spec.limits is None or (spec.limits.per_run.usd is None and spec.limits.per_day.usd is None):
        return []
    return [
        DeclarationError(
            "limits.no-price",
            f"a limit in USD is set, but the price of model {name!r} is unknown",
            "set ModelSpec(price=...)",
            model=name,
        )
        for name in sorted({model.model for model in models if not has_price(model)})
    ]
