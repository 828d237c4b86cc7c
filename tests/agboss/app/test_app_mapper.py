"""The last step before every model: a mapper of one's own, in requests and in views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from agboss import (
    AnswerFinish,
    AssemblyError,
    InvalidInputError,
    LlmMessageMapper,
    MapRequest,
    Message,
    ModelSpec,
    StrategyError,
    TaskStart,
    agent,
    chain,
    create_app,
    provide,
    provide_class,
    provide_factory,
    workflow,
)
from agboss.testing import MakeApp, MockLlm, reply
from agboss_memory.records import replace


@agent(description="Sees", prompt="Look.", model="openai:gpt-5-mini")
class Seer: ...


class Shouting(LlmMessageMapper):
    async def map(self, request: MapRequest) -> Sequence[Message]:
        return [replace(message, content=message.content.upper()) for message in request.messages]


class Signing(LlmMessageMapper):
    async def map(self, request: MapRequest) -> Sequence[Message]:
        first, *rest = request.messages
        return [replace(first, content=f"For {request.agent}:\n{first.content}"), *rest]


@pytest.mark.parametrize(
    "arguments",
    [
        {"llm_message_mapper": Shouting()},
        {"llm_message_mapper": Shouting},
        {"providers": [provide(LlmMessageMapper, Shouting())]},
        {"providers": [provide_class(LlmMessageMapper, Shouting)]},
        {"providers": [provide_factory(LlmMessageMapper, Shouting)]},
    ],
    ids=["object", "class", "value", "provided-class", "factory"],
)
async def test_m131_a_custom_mapper_is_used_for_requests_and_views(
    agboss_app: MakeApp, mock_llm: MockLlm, arguments: dict[str, Any]
) -> None:
    mock_llm(Seer).then_return(reply("hello"), reply("yes"))
    async with agboss_app(Seer, **arguments) as app:
        run = await app.execute("hi")
        await app.execute("sure?", thread=run.thread)
        view = await app.memory.view(run.thread)
    assert [request.messages[0].content for request in mock_llm(Seer).requests] == [
        "HI",
        "PREVIOUS TURNS:\nQ: HI\nA: HELLO\n\nTASK:\nSURE?",
    ]
    assert [row.shown for row in view.messages] == ["PREVIOUS TURNS:\nQ: HI\nA: HELLO\nQ: SURE?\nA: YES\n\n"]
    assert view.total_tokens == view.system_prompt_tokens + view.messages[0].tokens


async def test_m131_rows_that_a_mapper_leaves_alone_stay_rows(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Seer).then_return(reply("hello"))
    async with agboss_app(Seer, llm_message_mapper=Signing()) as app:
        run = await app.execute("hi")
        view = await app.memory.view(run.thread)
    assert mock_llm(Seer).requests[0].text == "Look.\nFor seer:\nhi"
    assert [row.shown for row in view.messages] == ["For seer:\n", "Previous turns:\n", "Q: hi\nA: hello\n", "\n"]


async def test_m131_the_mapper_of_create_app_replaces_that_of_the_workflow(
    agboss_app: MakeApp, mock_llm: MockLlm
) -> None:
    @workflow(flow=[chain(TaskStart, Seer, AnswerFinish)], providers=[provide(LlmMessageMapper, Signing())])
    class Bound: ...

    mock_llm(Seer).then_return(reply("hello"), reply("hello"))
    async with agboss_app(Bound) as app:
        await app.execute("hi")
    async with agboss_app(Bound, llm_message_mapper=Shouting()) as app:
        await app.execute("hi")
    assert [request.messages[0].content for request in mock_llm(Seer).requests] == ["For seer:\nhi", "HI"]


async def test_a_mapper_that_fails_fails_the_tern_and_is_named(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    class Failing(LlmMessageMapper):
        async def map(self, request: MapRequest) -> Sequence[Message]:
            raise RuntimeError("no")

    async with agboss_app(Seer, llm_message_mapper=Failing()) as app:
        with pytest.raises(StrategyError, match="Failing") as failed:
            await app.execute("hi")
        assert failed.value.run.status == "failed"


def test_what_cannot_be_a_mapper_is_refused_at_the_start() -> None:
    wrong: Any = object()
    with pytest.raises(InvalidInputError) as refused:
        create_app(Seer, llm_message_mapper=wrong)
    assert refused.value.code == "app.invalid"
    with pytest.raises(AssemblyError) as failed:
        create_app(Seer, llm_message_mapper=Shouting(), providers=[provide(LlmMessageMapper, Shouting())])
    assert failed.value.codes == ("di.duplicate-provider",)
    with pytest.raises(AssemblyError) as failed:
        create_app(Seer, providers=[provide_factory(LlmMessageMapper, Shouting, scope="tern")])
    assert failed.value.codes == ("di.captive",)


@pytest.mark.parametrize("kind", ["summarizing_window", "auto_compact", "windowed", "full", "none"])
async def test_m131_every_kind_of_window_memory_goes_through_the_mapper(
    agboss_app: MakeApp, mock_llm: MockLlm, kind: str
) -> None:
    @agent(
        description="x",
        prompt="Look.",
        model=ModelSpec("openai:gpt-5-mini", context_window=50_000),
        memory_config={"kind": kind},
    )
    class Own: ...

    mock_llm(Own).then_return(reply("hello"), reply("yes"))
    async with agboss_app(Own, llm_message_mapper=Shouting) as app:
        run = await app.execute("hi")
        view = await app.memory.view(run.thread)
        await app.execute("sure?", thread=run.thread)
    sent = [message.content for message in mock_llm(Own).requests[-1].messages]
    assert sent == ([] if kind == "none" else ["HI", "HELLO"]) + ["SURE?"]
    assert [row.shown for row in view.messages] == sent[:-1]
