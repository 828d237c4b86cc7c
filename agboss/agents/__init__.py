"""Agents at work: their plan, their tools and their loop."""

from typing import TYPE_CHECKING

from agboss.agents.loop import AgentJob, AgentView, Listener, NodeAnswer, ViewBuilder, run_agent, schemas
from agboss.agents.plan import AgentPlan, fill
from agboss.agents.tools import BoundTool, as_text, run_tool
from agboss_memory.later import later

if TYPE_CHECKING:
    from agboss.agents.binding import bind_tool, fetch_tool
    from agboss.agents.memory_model import MeteredMemoryModel
else:
    __getattr__ = later(
        __name__,
        {
            "agboss.agents.binding": ("bind_tool", "fetch_tool"),
            "agboss.agents.memory_model": ("MeteredMemoryModel",),
        },
    )

__all__ = [
    "AgentJob",
    "AgentPlan",
    "AgentView",
    "BoundTool",
    "Listener",
    "MeteredMemoryModel",
    "NodeAnswer",
    "ViewBuilder",
    "as_text",
    "bind_tool",
    "fetch_tool",
    "fill",
    "run_agent",
    "run_tool",
    "schemas",
]
