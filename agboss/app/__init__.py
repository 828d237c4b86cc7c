"""From a decorated class to something that runs."""

from agboss.app.app import App, create_app
from agboss.app.memory import AppMemory, MemoryRow, WorkingMemory
from agboss.app.streaming import RunStream
from agboss.app.threads import AppThreads, Thread, ThreadExport

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
