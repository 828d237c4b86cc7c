"""What a minimal program loads."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import asyncio, sys
from agboss import ModelReply, agent, create_app

class Model:
    async def generate(self, request): return ModelReply(text="hi")

@agent(model="ollama:stub", prompt="x")
class Helper: ...

async def main():
    async with create_app(Helper, store="memory://", models={"ollama:stub": Model()}) as app:
        await app.execute("hello")

asyncio.run(main())
print([name for name in sys.argv[1:] if name in sys.modules])
"""


UNUSED = (
    "agboss.agents.binding",
    "agboss.agents.memory_model",
    "agboss.app.resuming",
    "agboss.components.settings",
    "agboss.routers.deciding",
    "agboss_memory.compaction.writing",
    "agboss_memory.config",
    "agboss_memory.fit.window",
    "agboss_memory.stores.jsonl",
    "agboss_memory.stores.sqlite",
    "agboss_memory.strategies.reading",
    "agboss_memory.tool_results.stubs",
    "anyio",
    "difflib",
    "injector",
    "pydantic",
    "pydantic_ai",
    "pydantic_core",
    "requests",
    "sqlite3",
    "tiktoken",
    "toktok",
)


def test_a_program_loads_only_what_it_uses() -> None:
    told = subprocess.run([sys.executable, "-c", PROGRAM, *UNUSED], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"
