"""From a decorated class to something that runs."""

from typing import TYPE_CHECKING

from agboss_memory.later import later

if TYPE_CHECKING:
    from agboss.app.agent_runtime import AgentRuntime, AgentSession
    from agboss.app.agents import AgentInfo, agent_infos
    from agboss.app.app import App, create_app
    from agboss.app.memory import AppMemory
    from agboss.app.recovery import recover
    from agboss.app.resuming import ResumeArguments, cancel_paused, resume_request
    from agboss.app.streaming import RunStream, direct_agents
    from agboss.app.threads import AppThreads, Thread, ThreadExport
    from agboss.app.working_memory import MemoryRow, WorkingMemory
else:
    __getattr__ = later(
        __name__,
        {
            "agboss.app.agent_runtime": (
                "AgentRuntime",
                "AgentSession",
            ),
            "agboss.app.agents": (
                "AgentInfo",
                "agent_infos",
                "cancel_paused",
            ),
            "agboss.app.app": (
                "App",
                "create_app",
            ),
            "agboss.app.memory": ("AppMemory",),
            "agboss.app.recovery": ("recover",),
            "agboss.app.resuming": ("ResumeArguments", "cancel_paused", "resume_request"),
            "agboss.app.streaming": ("RunStream", "direct_agents"),
            "agboss.app.threads": (
                "AppThreads",
                "Thread",
                "ThreadExport",
            ),
            "agboss.app.working_memory": (
                "MemoryRow",
                "WorkingMemory",
            ),
        },
    )

__all__ = [
    "AgentInfo",
    "AgentRuntime",
    "AgentSession",
    "App",
    "AppMemory",
    "AppThreads",
    "MemoryRow",
    "ResumeArguments",
    "RunStream",
    "Thread",
    "ThreadExport",
    "WorkingMemory",
    "agent_infos",
    "cancel_paused",
    "create_app",
    "direct_agents",
    "recover",
    "resume_request",
]
