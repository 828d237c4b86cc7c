"""Decorators keep the class's type. Read by type checkers; never run."""

from typing import Annotated, assert_type

from pydantic import BaseModel

from agboss import (
    ActionContext,
    Defaults,
    Finish,
    InjectionToken,
    Limits,
    ModelReply,
    ModelRequest,
    ModelSpec,
    Start,
    TaskStart,
    ToolContext,
    ToolRef,
    WorkflowDefinition,
    WorkflowSettings,
    action,
    agent,
    chain,
    from_,
    injectable,
    model_provider,
    router,
    tool,
    workflow,
    workflow_finish,
    workflow_start,
)
from agboss.flow import Chain, Routes
from agboss_memory import MemoryView, SlidingWindowStrategy


class Question(BaseModel):
    text: str


class Report(BaseModel):
    text: str


NUMBER = InjectionToken[int]("NUMBER")
assert_type(NUMBER, InjectionToken[int])


@agent
class Bare:
    colour: str = "red"


@agent(model="openai:gpt-5-mini", memory_strategy=SlidingWindowStrategy(turns=2), output=Report)
class Configured:
    def size(self) -> int:
        return 1


assert_type(Bare, type[Bare])
assert_type(Bare().colour, str)
assert_type(Configured, type[Configured])
assert_type(Configured().size(), int)


@router
class BareRouter: ...


@router(router={"kind": "llm", "model": "openai:gpt-5-mini"})
class Desk:
    name: str = "desk"


assert_type(BareRouter, type[BareRouter])
assert_type(Desk().name, str)


@action
class BareAction:
    async def run(self, ctx: ActionContext) -> str:
        assert_type(ctx.task, str)
        assert_type(ctx.answers, tuple[tuple[str, str], ...])
        return ctx.task


@action(input=Question, output=Report)
class Write:
    def __init__(self, number: Annotated[int, NUMBER]) -> None:
        self.number = number

    async def run(self, ctx: ActionContext) -> Report:
        return Report(text=ctx.task)


assert_type(BareAction, type[BareAction])
assert_type(Write, type[Write])
assert_type(Write(1).number, int)


@tool
def double(value: int) -> int:
    """Twice the value."""
    return 2 * value


@tool(timeout=5.0)
async def fetch(name: str, *, retries: int = 3) -> str:
    """Fetch something."""
    return name * retries


@tool(name="look_up", max_result_chars=100)
class LookUp:
    async def run(self, args: Question, ctx: ToolContext) -> str:
        ctx.report_cost("0.01")
        return args.text


assert_type(double(2), int)
assert_type(LookUp, type[LookUp])
assert_type(ToolRef(double, max_result_chars=10), ToolRef)


async def call() -> None:
    assert_type(await fetch("a", retries=2), str)


@injectable
class Plain:
    size: int = 1


@injectable(deps=[NUMBER], scope="tern")
class Counted:
    def __init__(self, number: int) -> None:
        self.number = number


assert_type(Plain, type[Plain])
assert_type(Counted(3).number, int)


@workflow_start(input=Question)
class Ask(Start[Question]): ...


@workflow_finish(output=Report)
class Done(Finish[Report]): ...


assert_type(Ask, type[Ask])
assert_type(Done, type[Done])


@model_provider(name="acme")
class Acme:
    def model(self, spec: ModelSpec) -> "Acme":
        return self

    async def generate(self, request: ModelRequest) -> ModelReply:
        return ModelReply(text=request.text)


assert_type(Acme, type[Acme])


@workflow(
    name="desk",
    flow=[chain(Ask, Write, Done), chain(TaskStart, Desk), from_(Desk).routes(Configured, Bare, then=Done)],
    defaults={"history": {"limit": 4}},
    compaction={"every": 2},
)
class Whole(WorkflowDefinition):
    def settings(self) -> WorkflowSettings:
        return WorkflowSettings.builder().prompt_variables(name="Ada").build()


assert_type(Whole, type[Whole])
assert_type(Whole().settings(), WorkflowSettings)
assert_type(chain(Ask, Done), Chain)
assert_type(from_(Desk).routes(Bare, then=Done), Routes)
assert_type(MemoryView().recalled, tuple[str, ...])


@workflow(
    flow=chain(TaskStart, Bare, Done),
    defaults=Defaults(history={"limit": 4}, models={"temperature": 0}, router={"kind": "llm"}),
    limits=Limits(per_run={"steps": 5}, per_day={"usd": "0.5"}),
)
class OfOneEdge: ...


assert_type(OfOneEdge, type[OfOneEdge])
assert_type(Limits(per_run={"steps": 5}).per_run.steps, int | None)
assert_type(Defaults(history={"limit": 4}).history.limit, int)
Limits(per_rum={"steps": 5})  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
workflow(flow=7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
