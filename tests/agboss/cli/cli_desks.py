"""Workflows that the command line is tried with."""

import asyncio
import sys

from pydantic import BaseModel

from agboss import (
    ActionContext,
    AnswerFinish,
    Compaction,
    Defaults,
    History,
    ModelDefaults,
    ModelReply,
    ModelRequest,
    ModelSpec,
    Start,
    TaskStart,
    action,
    agent,
    chain,
    from_,
    model_provider,
    router,
    tool,
    workflow,
    workflow_start,
)
from agboss.components.settings import LlmRouter
from agboss_memory import ToolCall


@agent(prompt="Answer the task from the previous turns.", model="moonshotai/kimi-k2.6")
class Recaller: ...


@workflow(
    version="1.0.0",
    flow=[chain(TaskStart, Recaller, AnswerFinish)],
    defaults=Defaults(history=History(limit=4, summaries=3)),
    compaction=Compaction(every=2, keep=3),
)
class Desk: ...


@action
class Breaks:
    """Fails whenever it is asked to."""

    async def run(self, ctx: ActionContext) -> str:
        print("printed by the workflow")
        if "fail" in ctx.task:
            raise ZeroDivisionError("nothing to divide by")
        return f"done: {ctx.task}"


@workflow(flow=[chain(TaskStart, Breaks, AnswerFinish)])
class BreakingDesk: ...


@action
class Waits:
    """Never ends by itself."""

    async def run(self, ctx: ActionContext) -> str:
        print("waiting", file=sys.stderr, flush=True)
        await asyncio.Event().wait()
        return ""


@workflow(flow=[chain(TaskStart, Waits, AnswerFinish)])
class WaitingDesk: ...


class Question(BaseModel):
    text: str


@workflow_start()
class Ask(Start[Question]): ...


@workflow(flow=[chain(Ask, Recaller, AnswerFinish)])
class TypedDesk: ...


@agent(description="Knows orders", model="openai:gpt-5-mini")
class Orders: ...


@router(router=LlmRouter())
class Reception: ...


@workflow(
    flow=[chain(TaskStart, Reception), from_(Reception).routes(Orders, Recaller, then=AnswerFinish)],
    defaults=Defaults(models=ModelDefaults(model=ModelSpec("openai:gpt-5-mini"))),
)
class RoutedDesk: ...


@agent(model="gpt")
class Lost: ...


@workflow(
    flow=[chain(TaskStart, Lost, AnswerFinish)],
    defaults=Defaults(history=History(summaries=9)),
    compaction=Compaction(every=2, keep=1),
)
class WrongDesk: ...


class Nothing: ...


ORDER = '{"order": "A1"}'


class Refunder:
    """A model that refunds once, then says what came of it."""

    async def generate(self, request: ModelRequest) -> ModelReply:
        results = [message.content for message in request.messages if message.role == "tool"]
        if results:
            return ModelReply(text=f"Result: {results[-1]}")
        call = ToolCall(id="c1", name="refund", arguments=ORDER)
        return ModelReply(tool_calls=(call,))


@model_provider(name="refunder")
class Refunders:
    """Gives it."""

    def model(self, spec: ModelSpec) -> Refunder:
        return Refunder()


@tool(needs_approval=True)
def refund(order: str) -> str:
    """Pay money back."""
    return f"refunded {order}"


@agent(name="clerk", prompt="Help.", model="refunder:one", tools=[refund])
class Clerk: ...


@workflow(flow=[chain(TaskStart, Clerk, AnswerFinish)], providers=[Refunders])
class RefundDesk: ...
