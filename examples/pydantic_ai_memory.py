"""Window memory under an agent of pydantic-ai, with its test model: no key, no network.

Run it:  python examples/pydantic_ai_memory.py      (pip install 'agboss[pydantic-ai]')
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from agboss_memory import Memory, SqliteStore
from agboss_memory.adapters.pydantic_ai import MemoryCapability


def fake(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Says how much it was shown."""
    return ModelResponse([TextPart(f"I see {sum(len(message.parts) for message in messages)} parts.")])


async def main() -> None:
    """Two runs; the second sees the first."""
    store = SqliteStore(Path("memory.db"))
    await store.open()
    try:
        memory = Memory(store, {"kind": "auto_compact"}, window=128_000, system="Be brief.")
        agent = Agent(FunctionModel(fake), capabilities=[MemoryCapability(memory, "ada")])
        for task in ("I am Ada.", "Who am I?"):
            print(f"{task} -> {(await agent.run(task)).output}")
    finally:
        await store.close()


if __name__ == "__main__":
    asyncio.run(main())
