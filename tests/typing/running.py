"""What a run gives, and what a strategy gets."""

from decimal import Decimal
from typing import Any, assert_type

from pydantic import BaseModel

from agboss import (
    AgbossError,
    App,
    AssemblyError,
    Attachment,
    CompactionReport,
    Decision,
    Pause,
    RunResult,
    Summary,
    Tern,
    TernStatus,
    Thread,
    UsageRecord,
    WorkingMemory,
    agent,
    create_app,
)
from agboss.testing import MakeApp, MockCompaction, MockLlm, MockRouter, call_tool, reply, route_to
from agboss_memory import (
    BaseMemoryStrategy,
    CompressReport,
    MemoryContext,
    MemoryModel,
    MemoryTurn,
    MemoryUpdate,
    MemoryView,
    Message,
)


@agent
class Helper: ...


class Facts(BaseModel):
    facts: list[str]


async def run() -> None:
    async with create_app(Helper) as app:
        assert_type(app, App)
        picture = Attachment.from_path("cat.png")
        assert_type(picture, Attachment)
        result = await app.execute("Hello", idempotency_key="1", attachments=[picture])
        fields(result)
        assert_type(await app.resume(result.thread, Decision(approved=False, reason="no")), RunResult)
        assert_type(await app.threads.pauses(result.thread), tuple[Pause, ...])
        thread = await app.threads.get(result.thread)
        assert_type(thread, Thread)
        assert_type(thread.terns, tuple[Tern, ...])
        assert_type(thread.terns[0].status, TernStatus)
        assert_type(await app.memory.view(result.thread), WorkingMemory)
        assert_type(await app.memory.undo(result.thread), Summary | None)
        assert_type(await app.memory.compact(result.thread), CompressReport)
        async with app.stream("Hello") as stream:
            async for event in stream:
                if event.type == "text_delta":
                    assert_type(event.text, str)
                elif event.type == "tern_started":
                    assert_type(event.tern, int)
            assert_type(await stream.result(), RunResult)
            assert_type([piece async for piece in stream.text()], list[str])


def run_sync() -> None:
    with create_app(Helper, store="memory://") as app:
        assert_type(app, App)
        assert_type(app.execute_sync("Hello"), RunResult)


def fields(result: RunResult) -> None:
    assert_type(result.thread, str)
    assert_type(result.tern, int)
    assert_type(result.status, TernStatus)
    assert_type(result.answer, str)
    assert_type(result.output, Any)
    assert_type(result.finish, str)
    assert_type(result.path, tuple[str, ...])
    assert_type(result.usage, tuple[UsageRecord, ...])
    assert_type(result.spend, Decimal | None)
    assert_type(result.memory, str | None)
    assert_type(result.compaction, CompactionReport | None)
    assert_type(result.pause, Pause | None)
    assert_type(result.pauses, tuple[Pause, ...])
    assert_type(result.warnings, tuple[str, ...])
    result.answer = ""  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


def errors(error: AssemblyError) -> None:
    assert_type(error.codes, tuple[str, ...])
    assert_type(error.exceptions, tuple[AgbossError | ExceptionGroup[AgbossError], ...])


class Learner(BaseMemoryStrategy):
    def __init__(self, model: MemoryModel) -> None:
        self.model = model

    def build_context(self, context: MemoryContext) -> MemoryView:
        assert_type(context.history, tuple[Tern, ...])
        assert_type(context.summaries, tuple[Summary, ...])
        assert_type(context.budget.free, int | None)
        return MemoryView(history=context.history[-1:])

    async def update_memory(self, turn: MemoryTurn) -> MemoryUpdate:
        assert_type(turn.messages, tuple[Message, ...])
        assert_type(await self.model.generate("List the facts."), str)
        found = await self.model.generate("List the facts.", output=Facts)
        assert_type(found, Facts)
        assert_type(found.facts, list[str])
        await self.model.generate("List the facts.", output=int)  # type: ignore[type-var]  # pyright: ignore[reportArgumentType, reportCallIssue]
        return MemoryUpdate()


async def fixtures(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction, mock_router: MockRouter
) -> None:
    mock_llm(Helper).then_return(call_tool("look", item="x"), reply("Hello")).then_fail(ValueError())
    mock_compaction.then_return("A summary.")
    mock_router(Helper).then_return(route_to(Helper))
    assert_type(mock_llm(Helper).requests[0].text, str)
    assert_type(mock_compaction.requests[0].messages, tuple[Message, ...])
    assert_type(mock_router(Helper).requests[0].task, str)
    async with agboss_app(Helper, memory_work="background") as app:
        assert_type(app, App)
