"""Cancellation, from wherever it comes: the Tern is stored as cancelled, and the caller gets what it asked for."""

import asyncio
from pathlib import Path

import anyio
import pytest

from agboss import (
    ChatModel,
    ModelReply,
    ModelRequest,
    TernCancelledError,
    TernStatus,
    TernTimeoutError,
    agent,
    create_app,
)


class Hanging:
    """A model that answers only when it is told to."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.answer = asyncio.Event()

    async def generate(self, request: ModelRequest) -> ModelReply:
        self.asked.set()
        await self.answer.wait()
        return ModelReply(text="late")


@agent(model="openai:gpt-5-mini")
class Waiter:
    """Waits."""


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/a.db"


def models(model: ChatModel) -> dict[str, ChatModel]:
    return {"openai:gpt-5-mini": model}


async def test_a_cancelled_task_stores_its_tern_and_raises_cancelled_error(store: str) -> None:
    model = Hanging()
    async with create_app(Waiter, store=store, models=models(model)) as app:
        task = asyncio.create_task(app.execute("Go", thread="t", create_thread=True))
        await model.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        (tern,) = (await app.threads.get("t")).terns
        assert (tern.status, tern.task, tern.error_code) == (TernStatus.CANCELLED, "Go", "run.cancelled")
        model.answer.set()
        assert (await app.execute("Again", thread="t")).tern == 2


async def test_an_anyio_scope_around_execute_stores_the_tern(store: str) -> None:
    model = Hanging()
    async with create_app(Waiter, store=store, models=models(model)) as app:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:

                async def stop() -> None:
                    await model.asked.wait()
                    scope.cancel()

                group.start_soon(stop)
                await app.execute("Go", thread="t", create_thread=True)
        assert scope.cancelled_caught
        assert (await app.threads.get("t")).terns[0].status is TernStatus.CANCELLED
        model.answer.set()
        assert (await app.execute("Again", thread="t")).answer == "late"


async def test_move_on_after_around_execute(store: str) -> None:
    async with create_app(Waiter, store=store, models=models(Hanging())) as app:
        with anyio.move_on_after(0.05) as scope:
            await app.execute("Go", thread="t", create_thread=True)
        assert scope.cancelled_caught
        assert (await app.threads.get("t")).terns[0].status is TernStatus.CANCELLED


async def test_a_task_cancelled_at_any_step_leaves_no_running_tern(store: str) -> None:
    """Whatever await the cancellation meets, the Tern is not there at all, or it has ended."""
    model = Hanging()
    async with create_app(Waiter, store=store, models=models(model)) as app:
        for steps in range(12):
            task = asyncio.create_task(app.execute("Go", thread=f"t{steps}", create_thread=True))
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        for info in await app.threads.list():
            assert not info.running
            assert [tern.status for tern in (await app.threads.get(info.id)).terns] == [TernStatus.CANCELLED]


async def test_app_cancel_raises_a_typed_error_with_the_run(store: str) -> None:
    model = Hanging()
    async with create_app(Waiter, store=store, models=models(model)) as app:
        task = asyncio.create_task(app.execute("Go", thread="t", create_thread=True))
        await model.asked.wait()
        assert await app.cancel("t") is True
        assert await app.cancel("t") is True, "asking twice is no fault"
        with pytest.raises(TernCancelledError) as caught:
            await task
        assert caught.value.run.status is TernStatus.CANCELLED
        assert caught.value.run.tern == 1
        assert await app.cancel("t") is False
        assert await app.cancel("nobody") is False


async def test_app_cancel_twice_while_a_tern_is_cleaning_up() -> None:
    class Slow(Hanging):
        async def generate(self, request: ModelRequest) -> ModelReply:
            try:
                return await super().generate(request)
            finally:
                cleaning.set()
                await let_go.wait()

    cleaning, let_go = asyncio.Event(), asyncio.Event()
    model = Slow()
    async with create_app(Waiter, store="memory://", models=models(model)) as app:
        task = asyncio.create_task(app.execute("Go", thread="t", create_thread=True))
        await model.asked.wait()
        await app.cancel("t")
        await cleaning.wait()
        await app.cancel("t")
        let_go.set()
        with pytest.raises(TernCancelledError):
            await task


async def test_a_timeout_raises_a_typed_error_and_stores_the_tern(store: str) -> None:
    async with create_app(Waiter, store=store, models=models(Hanging())) as app:
        with pytest.raises(TernTimeoutError) as caught:
            await app.execute("Go", thread="t", create_thread=True, timeout=0.05)
        assert caught.value.code == "run.timeout"
        assert caught.value.run.status is TernStatus.CANCELLED
        assert (await app.threads.get("t")).terns[0].error_code == "run.timeout"


async def test_a_timeout_of_the_caller_is_not_taken_for_the_terns_own() -> None:
    async with create_app(Waiter, store="memory://", models=models(Hanging())) as app:
        with pytest.raises(TimeoutError) as caught:
            async with asyncio.timeout(0.05):
                await app.execute("Go", thread="t", create_thread=True, timeout=60)
        assert not isinstance(caught.value, TernTimeoutError)
        assert (await app.threads.get("t")).terns[0].error_code == "run.cancelled"


async def test_a_waiting_caller_that_gives_up_leaves_no_tern(store: str) -> None:
    model = Hanging()
    async with create_app(Waiter, store=store, models=models(model)) as app:
        first = asyncio.create_task(app.execute("Go", thread="t", create_thread=True))
        await model.asked.wait()
        second = asyncio.create_task(app.execute("Second", thread="t"))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        model.answer.set()
        await first
        assert [tern.task for tern in (await app.threads.get("t")).terns] == ["Go"]
