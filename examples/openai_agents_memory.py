"""Window memory as the session of openai-agents, with a scripted model: no key, no network.

Run it:  python examples/openai_agents_memory.py      (pip install 'agboss[openai-agents]')
"""

from __future__ import annotations

import asyncio
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from agboss_memory import Memory, MemoryStore
from agboss_memory.adapters.openai_agents import MemorySession


class Fake(Model):
    """Says how much it was shown."""

    async def get_response(self, system_instructions: str | None, input: Any, *_: Any, **__: Any) -> ModelResponse:
        """One answer."""
        text = ResponseOutputText(text=f"I see {len(input)} items.", type="output_text", annotations=[])
        said = ResponseOutputMessage(id="msg", role="assistant", status="completed", type="message", content=[text])
        return ModelResponse(output=[said], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        """Not used here."""
        raise NotImplementedError


async def main() -> None:
    """Two runs; the second sees the first."""
    memory = Memory(MemoryStore(), {"kind": "auto_compact"}, window=128_000, system="Be brief.")
    session = MemorySession(memory, "ada")
    agent = Agent(name="guide", instructions="Be brief.", model=Fake(), tools=[session.fetch_tool()])
    for task in ("I am Ada.", "Who am I?"):
        config = session.run_config(tracing_disabled=True)
        print(f"{task} -> {(await Runner.run(agent, task, session=session, run_config=config)).final_output}")


if __name__ == "__main__":
    asyncio.run(main())
