"""Builds the plan of a checked workflow: objects from the container, models and routers behind their seams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import agboss.agents as agents
import agboss.routers as routers  # kinds of routers and of memory are loaded when they are used
import agboss_memory.strategies as strategies
from agboss.agents import AgentPlan, BoundTool
from agboss.agents.plan import fill
from agboss.app.assembly import OFFLINE_MODEL, Assembly
from agboss.app.fingerprint import fingerprint
from agboss.components.action import ActionSpec
from agboss.components.agent import AgentSpec, StrategyUse
from agboss.components.boundary import FinishSpec, StartSpec
from agboss.components.injection import buildable
from agboss.components.model_spec import ModelSpec
from agboss.components.router import RouterSpec
from agboss.container import CURRENT, Container
from agboss.errors import RouterError
from agboss.models import Caller, CallSettings, ModelCatalog, ModelHandle, ModelRequest, ModelSource, cost_of
from agboss.models.meter import record_of
from agboss.plan import ActionPlan, CompactionPlan, Plan, RouterPlan, StrategyPlan
from agboss.routers import RouteOption
from agboss_memory.attachments import PartContentReader
from agboss_memory.contract import BaseMemoryStrategy, MemoryModel, Reach
from agboss_memory.mapper import DefaultLlmMessageMapper, LlmMessageMapper
from agboss_memory.messages import Message, UsageRecord
from agboss_memory.records import Struct
from agboss_memory.stores.contract import WindowSpec
from agboss_memory.strategies.turns import TurnMemory
from agboss_memory.tokens import counter_for, load_counter
from agboss_memory.wording import quoted

if TYPE_CHECKING:
    from agboss_memory.config import AnyMemoryConfig


class Built(Struct, kw_only=True):
    """A plan with what it opened.

    Attributes:
        plan: The plan.
        handles: Every component's model; opened before the first Tern, so that a missing key shows in time.
        decisions: The same for routers that ask a decision server of their own.
    """

    plan: Plan
    handles: list[ModelHandle]
    decisions: list[Callable[[], object]]

    def open_models(self) -> None:
        """Find every model of the flow, decision models too. Raises ModelKeyError, ModelError and MissingExtraError."""
        for handle in self.handles:
            handle.open()
        for check in self.decisions:
            check()

    async def load_counters(self) -> None:
        """Load the vocabularies of agents that count every message: here no Tern and no time-out waits for them."""
        for name in self.plan.counting:
            await load_counter(self.plan.agents[name].counter())


class Builder:
    """Builds one plan.

    Args:
        assembly: The checked workflow.
        catalog: Gives configured models.
        source: Answers for components instead, None = there is none.
        stack: Leaves what is opened, in reverse.
    """

    def __init__(
        self, assembly: Assembly, catalog: ModelCatalog, source: ModelSource | None, stack: AsyncExitStack
    ) -> None:
        self._assembly = assembly
        self._catalog = catalog
        self._source = source
        self._stack = stack
        self._handles: list[ModelHandle] = []
        self._decisions: list[Callable[[], object]] = []
        self._notes: list[str] = []
        self._memory_models: dict[tuple[str, Any], MemoryModel] = {}
        self._container = Container(assembly.providers, self._memory_model)
        self._strategies: dict[str, tuple[BaseMemoryStrategy, list[str]]] = {}
        self._mapper: LlmMessageMapper = DefaultLlmMessageMapper()
        self._reader: PartContentReader | None = None

    async def build(self) -> Built:
        """Open what providers open, build every object once, and decide everything that can be decided."""
        assembly, spec, graph = self._assembly, self._assembly.spec, self._assembly.graph
        await self._container.open(self._stack)
        for provider, component in assembly.model_providers():
            made = self._container.get(provider.key)
            self._catalog.add_provider(component.name, made.model)
        if LlmMessageMapper in assembly.providers:
            self._mapper = self._container.get(LlmMessageMapper)
        if PartContentReader in assembly.providers:
            self._reader = self._container.get(PartContentReader)
        plans = {agent.name: self._agent(agent) for agent in assembly.agents()}
        strategies = {
            name: StrategyPlan(
                name=name,
                strategy=made,
                agents=tuple(users),
                updates=_updates(made),
                own=next((user for user in users if plans[user].config is not None), None),
            )
            for name, (made, users) in self._strategies.items()
        }
        reach = self._history_reach()
        plan = Plan(
            name=spec.name,
            version=spec.version,
            config_hash=fingerprint(spec, graph),
            graph=graph,
            starts={n.spec.name: n.spec for n in graph.of_kind("start") if isinstance(n.spec, StartSpec)},
            finishes={n.spec.name: n.spec for n in graph.of_kind("finish") if isinstance(n.spec, FinishSpec)},
            agents=plans,
            routers={
                n.spec.name: self._router(n.spec, n.routes)
                for n in graph.of_kind("router")
                if isinstance(n.spec, RouterSpec)
            },
            actions={action.name: self._action(action) for action in assembly.actions()},
            strategies=strategies,
            compaction=self._compaction(),
            limits=spec.limits,
            history_reach=reach,
            history_limit=spec.defaults.history_limit,
            window=self._window([reach, *(agent.reach for agent in plans.values())]),
            container=self._container,
            cost_of=cost_of,
            updating=tuple(one.name for one in strategies.values() if one.updates),
            sharing=tuple(one.name for one in plans.values() if one.shares_thread),
            counting=tuple(one.name for one in plans.values() if one.config is not None),
            offline=tuple(self._notes),
        )
        return Built(plan=plan, handles=self._handles, decisions=self._decisions)

    def _handle(self, caller: Caller, spec: ModelSpec) -> ModelHandle:
        if self._assembly.offline and spec.model != OFFLINE_MODEL:
            who = caller.kind if caller.kind == "compaction" else f"{caller.kind} {caller.name!r}"
            self._notes.append(f"offline: {who} uses {OFFLINE_MODEL} instead of {spec.model}")
            spec = ModelSpec(OFFLINE_MODEL, temperature=spec.temperature, max_tokens=spec.max_tokens)
        handle = ModelHandle(self._catalog, self._source, caller, spec)
        self._handles.append(handle)
        return handle

    def _agent(self, spec: AgentSpec) -> AgentPlan:
        model = self._assembly.model_of(spec)
        if model is None:
            raise LookupError(spec.name)  # the assembly has checked this
        handle = self._handle(Caller(kind="agent", name=spec.name, target=spec.target), model)
        limit = spec.history_limit if spec.history_limit is not None else self._assembly.spec.defaults.history_limit
        summaries = self._summaries(spec.history_summaries)
        config = None if spec.memory is None else spec.memory.config
        writer: ModelHandle | None = None
        if config is None:
            name, strategy = self._strategy(spec, limit, summaries)
        else:
            writer = self._writer(spec, model, config)
            name, strategy = config.kind, self._window_memory(spec, config, writer)
        reach, tools, variables = strategy.reach, self._tools(spec), self._assembly.spec.prompt_variables
        return AgentPlan(
            name=spec.name,
            spec=spec,
            prompt=fill(spec.prompt, variables) if isinstance(spec.prompt, str) else None,
            schema_texts=tuple(tool.schema_text for tool in tools.values()),
            model=handle,
            tools=tools,
            strategy=strategy,
            strategy_name=name,
            reach=Reach(
                terns=limit if reach.terns is None else reach.terns,
                messages=reach.messages,
                summaries=summaries if reach.summaries is None else reach.summaries,
            ),
            counter=cache(lambda: counter_for(model.name)),
            variables=variables,
            config=config,
            shares_thread=spec.shares_thread,
            summary_model="" if writer is None else writer.spec.model,
            mapper=self._mapper,
            reader=self._reader,
        )

    def _writer(self, spec: AgentSpec, model: ModelSpec, config: AnyMemoryConfig) -> ModelHandle | None:
        """The model that writes an agent's summaries; None for a kind without summaries."""
        if config.kind not in ("auto_compact", "summarizing_window"):
            return None
        own = ModelSpec(named) if (named := getattr(config, "summary_model", None)) else model
        caller = Caller(kind="compaction", name=spec.name, target=spec.target)
        return self._handle(caller, own.with_values(max_tokens=None))  # that is for answers

    def _window_memory(
        self, spec: AgentSpec, config: AnyMemoryConfig, writer: ModelHandle | None
    ) -> strategies.WindowStrategy:
        """The strategy of a memoryConfig, one object per agent."""
        model = None if writer is None else agents.MeteredMemoryModel(spec.name, writer, purpose="compaction")
        own = writer is not None and getattr(config, "summary_model", None)
        strategy = strategies.strategy_for(
            config, model, summary_window=writer.window if writer is not None and own else None
        )
        self._strategies[f"{config.kind} of {spec.name}"] = (strategy, [spec.name])
        return strategy

    def _strategy(self, spec: AgentSpec, limit: int, summaries: int) -> tuple[str, BaseMemoryStrategy]:
        use = spec.strategy
        if use is None:
            return TurnMemory.kind, TurnMemory(turns=limit, summaries=summaries, every=self._every)
        name, made = self._strategy_object(use)
        self._strategies[name][1].append(spec.name)
        return name, made

    def _strategy_object(self, use: StrategyUse) -> tuple[str, BaseMemoryStrategy]:
        """One object per class, and every given instance as it is, under a name of its own."""
        if use.instance is not None:
            for name, (known, _) in self._strategies.items():
                if known is use.instance:
                    return name, known
            name = use.name
            while name in self._strategies:
                name += "+"
            self._strategies[name] = (use.instance, [])
            return name, use.instance
        if use.name not in self._strategies:
            made = self._container.build(use.cls, buildable(use.cls, use.injectable), use.name)
            self._strategies[use.name] = (made, [])
        return use.name, self._strategies[use.name][0]

    def _tools(self, spec: AgentSpec) -> Mapping[str, BoundTool]:
        bound: dict[str, BoundTool] = {}
        for use in spec.tools:
            tool = use.spec
            if tool.injectable is not None:
                injectable = buildable(tool.target, tool.injectable)
                make = self._maker(tool.target, injectable, tool.name)
                bound[tool.name] = agents.bind_tool(use, lambda make=make: make().run)
            else:
                fill = self._filler(tool.dependencies, tool.name)
                bound[tool.name] = agents.bind_tool(use, lambda target=tool.target, fill=fill: fill(target))
        return bound

    def _filler(self, dependencies: Any, label: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        container = self._container

        def fill(target: Callable[..., Any]) -> Callable[..., Any]:
            if not dependencies:
                return target
            return partial(target, **container.arguments(dependencies, label, target))

        return fill

    def _maker(self, cls: type[Any], injectable: Any, label: str) -> Callable[[], Any]:
        """Gives the one object of App scope, or the Tern's own."""
        container = self._container
        if injectable.scope == "app":
            made = container.build(cls, injectable, label)
            return lambda: made

        def per_tern() -> Any:
            scope = CURRENT.get()
            if scope is None:
                return container.build(cls, injectable, label)
            if cls not in scope.instances:
                scope.instances[cls] = container.build(cls, injectable, label)
            return scope.instances[cls]

        return per_tern

    def _action(self, spec: ActionSpec) -> ActionPlan:
        injectable = buildable(spec.target, spec.injectable)
        return ActionPlan(spec=spec, make=self._maker(spec.target, injectable, spec.name))

    def _router(self, spec: RouterSpec, routes: tuple[str, ...]) -> RouterPlan:
        nodes = self._assembly.graph.nodes
        settings = self._assembly.router_settings(spec)
        finish = next((name for name in routes if nodes[name].spec.kind == "finish"), None)
        target = next(cls for cls, name in self._assembly.graph.names.items() if name == spec.name)
        caller = Caller(kind="router", name=spec.name, target=target)
        options = tuple(
            RouteOption(
                name=name,
                description=nodes[name].spec.description,
                examples=tuple(getattr(nodes[name].spec, "examples", ())),
            )
            for name in routes
        )
        calls_model = settings.kind in ("llm", "jev")
        if self._assembly.offline:
            router = routers.RouteOffline(finish=finish)
            if calls_model:
                self._notes.append(f"offline: router {spec.name!r} compares words instead of kind {settings.kind!r}")
                calls_model = False
        else:
            ask = self._ask(caller, settings.model) if settings.kind == "llm" and settings.model else None
            name_of = self._assembly.graph.names.__getitem__
            router = routers.build_router(settings, ask=ask, name=spec.name, name_of=_named(name_of), finish=finish)
            close = getattr(router, "aclose", None)
            if close is not None:
                self._stack.push_async_callback(close)
            if self._source is None and isinstance(router, routers.RouteByDecision):
                self._decisions.append(router.open)
            if self._source is not None:
                router = self._source.wrap_router(caller, settings.kind, router)
        return RouterPlan(
            spec=spec, settings=settings, router=router, options=options, finish=finish, calls_model=calls_model
        )

    def _ask(self, caller: Caller, model: ModelSpec) -> Callable[[str, str, dict[str, Any]], Any]:
        """How an LLM router calls its model; its calls are booked by the choose stage."""
        handle = self._handle(caller, model)

        async def ask(system: str, user: str, schema: dict[str, Any]) -> tuple[str, UsageRecord]:
            request = ModelRequest(
                caller=caller.name,
                model=model.model,
                system=system,
                messages=(Message(role="user", content=user),),
                settings=handle.settings,
                output_schema=schema,
                output_name="route",
                purpose="route",
            )
            reply = await handle.generate(request)
            return reply.text, record_of(model, request, reply.usage, cost_of)

        return ask

    def _compaction(self) -> CompactionPlan | None:
        compaction, model = self._assembly.spec.compaction, self._assembly.compaction_model()
        if compaction is None or model is None:
            return None
        handle = self._handle(Caller(kind="compaction", name="compaction"), model)
        most = max(model.max_tokens or 2 * compaction.max_tokens, compaction.max_tokens)
        return CompactionPlan(
            every=compaction.every,
            keep=compaction.keep,
            max_tokens=compaction.max_tokens,
            strict=compaction.strict,
            model=handle,
            settings=CallSettings(temperature=model.temperature, max_tokens=most, thinking=model.thinking),
            counter=cache(lambda: counter_for(model.name)),
        )

    def _memory_model(self, name: str, target: Any) -> MemoryModel:
        """A component's model: that of compaction, else the default one, else that of the agent it serves."""
        if (name, target) in self._memory_models:
            return self._memory_models[name, target]
        assembly = self._assembly
        spec = assembly.compaction_model() or assembly.spec.defaults.model
        for agent in assembly.agents():
            if spec is None and agent.strategy is not None and agent.strategy.name == name:
                spec = assembly.model_of(agent)
        if spec is None:
            spec = next(found for agent in assembly.agents() if (found := assembly.model_of(agent)) is not None)
        handle = self._handle(Caller(kind="strategy", name=name, target=target), spec)
        made = self._memory_models[name, target] = agents.MeteredMemoryModel(name, handle)
        return made

    @property
    def _every(self) -> int:
        compaction = self._assembly.spec.compaction
        return 0 if compaction is None else compaction.every

    def _summaries(self, own: int | None) -> int:
        compaction = self._assembly.spec.compaction
        default = self._assembly.spec.defaults.history_summaries
        if own is not None:
            return own
        if default is not None:
            return default
        return 0 if compaction is None else compaction.keep

    def _history_reach(self) -> Reach:
        limit, every = self._assembly.spec.defaults.history_limit, self._every
        return Reach(terns=limit + 2 * every if limit else 0, summaries=self._summaries(None))

    def _window(self, reaches: list[Reach]) -> WindowSpec:
        compaction = self._assembly.spec.compaction
        keep = 0 if compaction is None else compaction.keep
        return WindowSpec(
            terns=max(max(reach.terns or 0 for reach in reaches), 1),
            summaries=max(keep, *(reach.summaries or 0 for reach in reaches)),
        )


def _updates(strategy: BaseMemoryStrategy) -> bool:
    config = getattr(strategy, "config", None)
    if getattr(config, "kind", "") == "summarizing_window":
        return bool(getattr(config, "auto_summarize", True))
    return type(strategy).update_memory is not BaseMemoryStrategy.update_memory


def _named(name_of: Callable[[Any], str]) -> Callable[[Any], str]:
    """Names of route targets: text as it is, components of the flow by their class."""

    def named(target: Any) -> str:
        if isinstance(target, str):
            return target
        try:
            return name_of(target)
        except (KeyError, TypeError):
            raise RouterError(
                "router.not-a-component",
                f"a router gave {quoted(target)}, which is neither the name nor the class of a component of the flow",
                "give one of the router's routes",
            ) from None

    return named
