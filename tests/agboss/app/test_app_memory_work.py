"""Memory work after the answer: a cancelled caller stops it, a stream that is left does not, and nothing is lost."""

import asyncio

import pytest

from agboss import (
    AnswerFinish,
    Compaction,
    ModelReply,
    ModelRequest,
    TaskStart,
    TernStatus,
    agent,
    chain,
    create_app,
    workflow,
)

MODEL = "openai:gpt-5-mini"


@agent(model=MODEL)
class Writer:
    """Writes."""


@workflow(name="c", flow=[chain(TaskStart, Writer, AnswerFinish)], compaction=Compaction(every=1, keep=2))
class Compacting: ...


class SlowSummaries:
    """Answers at once; a summary waits to be let go."""

    def __init__(self) -> None:
        self.summarising = asyncio.Event()
        self.go = asyncio.Event()
        self.cancelled = False

    async def generate(self, request: ModelRequest) -> ModelReply:
        if request.purpose == "compaction":
            self.summarising.set()
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.cancelled = True
                raise
            return ModelReply(text="The summary.")
        return ModelReply(text="The answer.")


async def test_b071_a_cancelled_caller_stops_it_and_the_next_turn_catches_up() -> None:
    model = SlowSummaries()
    async with create_app(Compacting, store="memory://", models={MODEL: model}) as app:
        task = asyncio.create_task(app.execute("Go", thread="t", create_thread=True))
        await model.summarising.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert model.cancelled
        model.go.set()
        following = await app.execute("On", thread="t")
        assert following.memory == "turns 1–1 → summary 1/2; turns 2–2 → summary 2/2"
        assert [tern.status for tern in (await app.threads.get("t")).terns] == [TernStatus.ANSWERED] * 2


async def test_it_goes_on_when_a_stream_is_left_after_the_answer() -> None:
    model = SlowSummaries()
    async with create_app(Compacting, store="memory://", models={MODEL: model}) as app:
        async with app.stream("Go", thread="t", create_thread=True) as run:
            async for event in run:
                if event.type == "answered":
                    break
        model.go.set()
        assert (await run.result()).memory == "turns 1–1 → summary 1/2"


async def test_in_the_background_the_answer_comes_first_and_the_thread_waits() -> None:
    model = SlowSummaries()
    app = create_app(Compacting, store="memory://", models={MODEL: model}, memory_work="background")
    async with app:
        first = await app.execute("Go", thread="t", create_thread=True)
        assert (first.answer, first.memory) == ("The answer.", None)
        following = asyncio.create_task(app.execute("On", thread="t"))
        await model.summarising.wait()
        assert not following.done()
        model.go.set()
        await following
    async with create_app(Compacting, store="memory://", models={MODEL: model}) as other:
        assert await other.threads.list() == ()


async def test_closing_finishes_it() -> None:
    model = SlowSummaries()
    app = create_app(Compacting, store="memory://", models={MODEL: model}, memory_work="background")
    await app.execute("Go", thread="t", create_thread=True)
    closing = asyncio.create_task(app.aclose())
    await model.summarising.wait()
    assert not closing.done()
    model.go.set()
    await closing
