"""From a decorated class to something that runs."""

from agboss.app.agent_runtime import AgentRuntime, AgentSession
from agboss.app.agents import AgentInfo
from agboss.app.app import App, create_app
from agboss.app.memory import AppMemory
from agboss.app.streaming import RunStream
from agboss.app.threads import AppThreads, Thread, ThreadExport
from agboss.app.working_memory import MemoryRow, WorkingMemory

__all__ = [
    "AgentInfo",
    "AgentRuntime",
    "AgentSession",
    "App",
    "AppMemory",
    "AppThreads",
    "MemoryRow",
    "RunStream",
    "Thread",
    "ThreadExport",
    "WorkingMemory",
    "create_app",
]
