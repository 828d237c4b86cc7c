"""A vocabulary is loaded where a count can matter, and before a Tern is admitted that cannot do without."""

from __future__ import annotations

from typing import Any

import pytest

from agboss import ModelReply, ModelRequest, ModelSpec, ModelUsage, agent, create_app
from agboss_memory import MemoryStore
from agboss_memory.stores.contract import Admission, Admitted
from agboss_memory.tokens import counter_for, is_loaded, vocabulary

MODEL = "openai:gpt-5-mini"


@pytest.fixture(autouse=True)
def _nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "_loaded", {})


class Measured:
    """Reports twice the tokens of a plain text."""

    async def generate(self, request: ModelRequest) -> ModelReply:
        words = sum(len(message.content.split()) for message in request.messages)
        return ModelReply(text="done", usage=ModelUsage(input_tokens=2 * words, output_tokens=1))


@agent(model=ModelSpec(MODEL, context_window=8000, max_tokens=100), prompt="Answer.")
class Plain: ...


@agent(model=ModelSpec(MODEL), prompt="Answer.", memory_config={"kind": "full"})
class Counting: ...


MODELS: Any = {MODEL: Measured()}


@pytest.mark.parametrize(("words", "loads"), [(10, False), (380, False), (2000, True)])
async def test_a_vocabulary_is_loaded_when_a_request_comes_near_the_window(words: int, loads: bool):
    async with create_app(Plain, store="memory://", models=MODELS) as app:
        await app.execute("word " * words)
        assert is_loaded(counter_for(MODEL)) is loads


@pytest.mark.parametrize(("words", "learns"), [(50, False), (380, True)])
async def test_with_a_vocabulary_at_hand_every_request_above_200_tokens_teaches(words: int, learns: bool):
    counter_for(MODEL).count([""])
    async with create_app(Plain, store="memory://", models=MODELS) as app:
        await app.execute("word " * words)
        runtime = await app._lifecycle.runtime()  # pyright: ignore[reportPrivateUsage]
        factor = runtime.plan.agents["plain"].model.calibration.factor
        assert (factor > 1.2) is learns


async def test_an_agent_that_counts_every_message_has_its_vocabulary_before_its_first_turn_begins():
    class Watching(MemoryStore):
        async def admit(self, request: Admission) -> Admitted:
            assert is_loaded(counter_for(MODEL))
            return await super().admit(request)

    async with create_app(Counting, store=Watching(), models=MODELS) as app:
        assert not is_loaded(counter_for(MODEL))  # opening an App to look at threads costs nothing
        assert (await app.execute("Go.")).answer == "done"
