"""``app.agents()``: who works in a flow, as a list of agents shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agboss.plan import Plan
from agboss_memory.records import Record


class AgentInfo(Record, kw_only=True):
    """An agent with everything inherited filled in.

    Attributes:
        name: Its name.
        description: What it is for.
        model: Id of its model.
        context_window_tokens: The model's window in tokens, None when unknown.
        tools: Names of its tools.
        kind: The memoryConfig kind, ``turns`` for turn memory, else the class name of the strategy.
        memory_config: The memoryConfig that counts, in wire spelling; None for turn memory and custom strategies.
    """

    name: str
    description: str = ""
    model: str = ""
    context_window_tokens: int | None = None
    tools: tuple[str, ...] = ()
    kind: str = "turns"
    memory_config: Mapping[str, Any] | None = None


def agent_infos(plan: Plan) -> tuple[AgentInfo, ...]:
    """The agents of an assembled workflow."""
    return tuple(
        AgentInfo(
            name=agent.name,
            description=agent.spec.description,
            model=agent.model.spec.model,
            context_window_tokens=agent.model.window,
            tools=tuple(agent.tools),
            kind=agent.strategy_name,
            memory_config=None if agent.config is None else agent.config.model_dump(mode="json", by_alias=True),
        )
        for agent in plan.agents.values()
    )
