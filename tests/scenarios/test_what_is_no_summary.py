"""What a summariser may answer that is no summary, and what is booked of a Tern that never ended."""

from __future__ import annotations

import pytest

from agboss import AssemblyError, CompactionError, ModelError, ModelSpec, agent, create_app
from agboss.testing import MakeApp, MockCompaction, MockLlm
from agboss_memory import DefaultLlmMessageMapper, MapRequest, Message
from agboss_memory.compaction.refused import is_no_summary

SPEC = ModelSpec("ollama:test", context_window=1000)


@agent(name="helper", model=SPEC, prompt="x", memory_config={"kind": "auto_compact"})
class Helper: ...


@pytest.mark.parametrize(
    "text",
    [
        "Error: 429 rate limit exceeded",
        "error (500)",
        '{"error": {"message": "overloaded"}}',
        "Traceback (most recent call last):",
        "429 Too Many Requests",
        "I'm sorry, I can't do that.",
        "I\u2019m unable to help with that",
        "\ud800\0",
        "...",
    ],
)
async def test_an_error_text_is_no_summary(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction, text: str
) -> None:
    mock_llm(Helper).then_return("one " * 40)
    mock_compaction(Helper).then_return(text)
    async with agboss_app(Helper) as app:
        await app.execute("word " * 40, thread="t", create_thread=True)
        with pytest.raises(CompactionError) as raised:
            await app.memory.compact("t")
        assert raised.value.code in ("compaction.no-progress", "compaction.empty")
        assert [row.state for row in (await app.memory.view("t")).messages] == ["live", "live"]


@pytest.mark.parametrize(
    "text", ["The user reported an error: the build fails.", "Errors in module x were mended.", "429 euros were paid."]
)
def test_a_summary_may_tell_of_errors(text: str) -> None:
    assert not is_no_summary(text)


async def test_a_model_error_of_the_summariser_is_a_compaction_error(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    mock_llm(Helper).then_return("one " * 40)
    mock_compaction(Helper).then_fail(ModelError("model.timeout", "no answer", "try later"))
    async with agboss_app(Helper) as app:
        await app.execute("word " * 40, thread="t", create_thread=True)
        with pytest.raises(CompactionError, match="no answer") as raised:
            await app.memory.compact("t")
        assert isinstance(raised.value.__cause__, ModelError)


async def test_the_built_in_summariser_quotes_what_was_said_alone() -> None:
    @agent(model="local:extractive", memory_config={"kind": "auto_compact"})
    class Quiet:
        "Be brief."

    async with create_app(Quiet, store="memory://") as app:
        await app.execute("My name is Ada and I live in Turin.", thread="t", create_thread=True)
        await app.execute("I like tea.", thread="t")
        report = await app.memory.compact("t")
        assert report.summaries[0].text.startswith("My name is Ada and I live in Turin.")
        assert "Summarise" not in report.summaries[0].text


def test_an_unknown_kind_is_named_with_its_place_and_the_nearest() -> None:
    @agent(model=SPEC, prompt="x", memory_config={"kind": "Windowed"})
    class Slip: ...

    with pytest.raises(AssemblyError) as raised:
        create_app(Slip)
    text = str(raised.value.exceptions[0])
    assert "/kind: unknown kind 'Windowed'; did you mean 'windowed'?" in text


class Nothing(DefaultLlmMessageMapper):
    async def map(self, request: MapRequest) -> tuple[Message, ...]:
        return ()


async def test_a_mapper_that_leaves_no_question_is_an_error(agboss_app: MakeApp) -> None:
    from agboss import StrategyError

    async with agboss_app(Helper, llm_message_mapper=Nothing()) as app:
        with pytest.raises(StrategyError, match="left no message of the user"):
            await app.execute("a", thread="t", create_thread=True)


async def test_the_view_counts_what_leads_a_summary(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    mock_llm(Helper).then_return("one " * 60, "two")
    mock_compaction(Helper).then_return("Short.")
    async with agboss_app(Helper) as app:
        await app.execute("word " * 60, thread="t", create_thread=True)
        await app.memory.compact("t")
        view = await app.memory.view("t")
        await app.execute("next", thread="t")
        sent = mock_llm(Helper).requests[-1].messages
        assert view.messages[0].shown == sent[0].content
