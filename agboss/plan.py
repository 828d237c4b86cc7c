"""An assembled workflow: everything decided, nothing left to look up while a Tern runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from agboss.agents.plan import AgentPlan
from agboss.components.action import ActionSpec
from agboss.components.boundary import FinishSpec, StartSpec
from agboss.components.router import AnyRouter, RouterSpec
from agboss.container import Container
from agboss.flow.graph import Graph
from agboss.models import CallSettings, ModelHandle
from agboss.models.meter import CostOf
from agboss.routers.contract import RouteOption, Router
from agboss_memory.contract import BaseMemoryStrategy, Reach, TokenCounter
from agboss_memory.records import Record
from agboss_memory.stores.contract import WindowSpec

if TYPE_CHECKING:
    from agboss.components.settings import Limits


class RouterPlan(Record, kw_only=True):
    """A resolved router.

    Attributes:
        spec: The declaration.
        settings: Its settings, with the workflow's default filled in.
        router: What decides.
        options: The routes, sorted by name.
        finish: Name of a finish among the routes, None when there is none.
        calls_model: Whether a decision costs a model call.
    """

    spec: RouterSpec
    settings: AnyRouter
    router: Router
    options: tuple[RouteOption, ...]
    finish: str | None
    calls_model: bool

    @property
    def local(self) -> bool:
        """Whether the router sees the task alone and ends by rule."""
        return self.settings.local


class ActionPlan(Record, kw_only=True):
    """A resolved action; ``make`` gives its object, the same one or a new one per Tern."""

    spec: ActionSpec
    make: Callable[[], Any]


class CompactionPlan(Record, kw_only=True):
    """Resolved compaction: block size and kept summaries in turns and summaries, and the model that writes them."""

    every: int
    keep: int
    max_tokens: int
    strict: bool
    model: ModelHandle
    settings: CallSettings
    counter: Callable[[], TokenCounter]


class StrategyPlan(Record, kw_only=True):
    """One strategy of the workflow.

    Attributes:
        name: Its name in errors and in the outbox.
        strategy: The one object.
        agents: Agents that use it.
        updates: Whether it has an ``update_memory`` of its own.
        own: The agent whose conversation it keeps, None for a strategy over Terns.
    """

    name: str
    strategy: BaseMemoryStrategy
    agents: tuple[str, ...]
    updates: bool
    own: str | None = None


class Plan(Record, kw_only=True):
    """A workflow, assembled.

    Attributes:
        name: Name of the workflow.
        version: Its version.
        config_hash: Hash of the resolved configuration and prompts.
        graph: The flow.
        starts: Entries by name.
        finishes: Exits by name.
        agents: Agents by name.
        routers: Routers by name.
        actions: Actions by name.
        strategies: Strategies by name, turn memory not among them.
        compaction: When Terns are summarised, None = never.
        limits: Bounds, None when the workflow sets none.
        history_reach: What routers and actions see of the past.
        history_limit: Last Terns that routers and actions see raw.
        window: What an admission reads: enough for every reader.
        container: Builds what lives for one Tern.
        cost_of: Prices a call.
        updating: Names of strategies with an ``update_memory`` of their own.
        sharing: Names of agents that follow the whole thread.
        counting: Names of agents whose messages are counted when they are stored: those with a memoryConfig.
        offline: Stand-ins that answer instead of configured models, one line each.
    """

    name: str
    version: str
    config_hash: str
    graph: Graph
    starts: Mapping[str, StartSpec]
    finishes: Mapping[str, FinishSpec]
    agents: Mapping[str, AgentPlan]
    routers: Mapping[str, RouterPlan]
    actions: Mapping[str, ActionPlan]
    strategies: Mapping[str, StrategyPlan]
    compaction: CompactionPlan | None
    limits: Limits | None
    history_reach: Reach
    history_limit: int
    window: WindowSpec
    container: Container
    cost_of: CostOf
    updating: tuple[str, ...] = ()
    sharing: tuple[str, ...] = ()
    counting: tuple[str, ...] = ()
    offline: tuple[str, ...] = ()


def total(amounts: tuple[Decimal | None, ...]) -> Decimal | None:
    """The sum of costs, None when one of them is unknown."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known, Decimal(0)) if len(known) == len(amounts) else None
