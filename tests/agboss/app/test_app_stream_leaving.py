"""Leaving a stream: what is cancelled, what is stored, and what goes on."""

import asyncio

import pytest

from agboss import (
    AnswerFinish,
    ModelReply,
    ModelRequest,
    TaskStart,
    TernCancelledError,
    TernStatus,
    agent,
    chain,
    create_app,
    workflow,
)

MODEL = "openai:gpt-5-mini"


class Pieces:
    """A model that says its pieces and then waits to be let go."""

    def __init__(self, *pieces: str) -> None:
        self.pieces = pieces
        self.said = asyncio.Event()
        self.go = asyncio.Event()

    async def generate(self, request: ModelRequest) -> ModelReply:
        assert request.on_text is not None
        for piece in self.pieces:
            request.on_text(piece)
        self.said.set()
        await self.go.wait()
        return ModelReply(text="".join(self.pieces))


@agent(model=MODEL)
class Drafter:
    """Drafts."""


@agent(model=MODEL)
class Writer:
    """Writes."""


@workflow(name="two", flow=[chain(TaskStart, Drafter, Writer, AnswerFinish)])
class Two: ...


async def test_leaving_early_stores_what_was_streamed() -> None:
    model = Pieces("The answer ", "is")
    async with create_app(Writer, store="memory://", models={MODEL: model}) as app:
        async with app.stream("Go", thread="t", create_thread=True) as run:
            assert run.thread == "t"
            async for piece in run.text():
                assert piece == "The answer "
                break
        (tern,) = (await app.threads.get("t")).terns
        assert (tern.status, tern.task, tern.answer) == (TernStatus.CANCELLED, "Go", "The answer is")
        with pytest.raises(TernCancelledError) as caught:
            await run.result()
        assert caught.value.run.answer == "The answer is"


async def test_leaving_early_keeps_no_text_of_another_agent() -> None:
    model = Pieces("draft")
    async with create_app(Two, store="memory://", models={MODEL: model}) as app:
        async with app.stream("Go", thread="t", create_thread=True):
            await model.said.wait()
        assert (await app.threads.get("t")).terns[0].answer == ""


async def test_an_error_inside_the_block_is_not_hidden() -> None:
    model = Pieces("x")
    async with create_app(Writer, store="memory://", models={MODEL: model}) as app:

        async def break_off() -> None:
            async with app.stream("Go", thread="t", create_thread=True):
                await model.said.wait()
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await break_off()
        assert (await app.threads.get("t")).terns[0].status is TernStatus.CANCELLED


async def test_a_detached_tern_finishes() -> None:
    model = Pieces("x")
    async with create_app(Writer, store="memory://", models={MODEL: model}) as app:
        async with app.stream("Go") as run:
            run.detach()
        model.go.set()
        assert (await run.result()).answer == "x"


async def test_closing_the_app_waits_for_a_detached_tern() -> None:
    model = Pieces("x")
    async with create_app(Writer, store="memory://", models={MODEL: model}) as app:
        async with app.stream("Go") as run:
            run.detach()
        model.go.set()
    assert (await run.result()).status is TernStatus.ANSWERED
