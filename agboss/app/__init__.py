"""From a decorated class to something that runs."""

from agboss.app.app import App, create_app
from agboss.app.memory import AppMemory
from agboss.app.streaming import RunStream
from agboss.app.threads import AppThreads, Thread, ThreadExport
from agboss.app.working_memory import MemoryRow, WorkingMemory

__all__ = [
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
