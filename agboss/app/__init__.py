"""From a decorated class to something that runs."""

from typing import TYPE_CHECKING

from agboss_memory.later import later

if TYPE_CHECKING:
    from agboss.app.agent_runtime import AgentRuntime, AgentSession
    from agboss.app.agents import AgentInfo, agent_infos
    from agboss.app.app import App, create_app
    from agboss.app.memory import AppMemory
    from agboss.app.past import past_tern
    from agboss.app.portal import ScriptLoop
    from agboss.app.progress import CompactProgress
    from agboss.app.recovery import catch_up, left_behind, recover
    from agboss.app.resuming import ResumeArguments, cancel_paused, open_pauses_of, resume_request
    from agboss.app.spending import Spend, spend_of
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
            ),
            "agboss.app.app": (
                "App",
                "create_app",
            ),
            "agboss.app.memory": ("AppMemory",),
            "agboss.app.past": ("past_tern",),
            "agboss.app.portal": ("ScriptLoop",),
            "agboss.app.progress": ("CompactProgress",),
            "agboss.app.recovery": ("catch_up", "left_behind", "recover"),
            "agboss.app.resuming": ("ResumeArguments", "cancel_paused", "open_pauses_of", "resume_request"),
            "agboss.app.spending": ("Spend", "spend_of"),
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
    "CompactProgress",
    "MemoryRow",
    "ResumeArguments",
    "RunStream",
    "ScriptLoop",
    "Spend",
    "Thread",
    "ThreadExport",
    "WorkingMemory",
    "agent_infos",
    "cancel_paused",
    "catch_up",
    "create_app",
    "direct_agents",
    "left_behind",
    "open_pauses_of",
    "past_tern",
    "recover",
    "resume_request",
    "spend_of",
]
