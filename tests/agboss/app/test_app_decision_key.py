"""A decision server's key is asked for before anything is stored, and tests do not reach one over the network."""

import pytest

from agboss import (
    AnswerFinish,
    JevRouter,
    ModelKeyError,
    ModelReply,
    ModelRequest,
    RouterError,
    TaskStart,
    agent,
    chain,
    create_app,
    from_,
    router,
    workflow,
)

MODEL = "openai:gpt-5-mini"


class Parrot:
    async def generate(self, request: ModelRequest) -> ModelReply:
        return ModelReply(text="Yes.")


@agent(model=MODEL)
class One:
    """Does one thing."""


@agent(model=MODEL)
class Two:
    """Does another."""


@router(router=JevRouter(model="typesafe/jev-1.13"))
class Pick: ...


@workflow(flow=[chain(TaskStart, Pick), from_(Pick).routes(One, Two, then=AnswerFinish)])
class Picking: ...


async def test_a_network_decision_is_blocked_in_tests() -> None:
    async with create_app(Picking, store="memory://", models={MODEL: Parrot()}) as app:
        with pytest.raises(RouterError, match="mock_router"):
            await app.execute("Go", thread="t", create_thread=True)
        assert await app.threads.list() == ()


@pytest.mark.agboss_models
async def test_a_missing_key_shows_before_anything_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    async with create_app(Picking, store="memory://", models={MODEL: Parrot()}) as app:
        with pytest.raises(ModelKeyError, match="OPENROUTER_API_KEY"):
            await app.execute("Go", thread="t", create_thread=True)
        assert await app.threads.list() == ()
