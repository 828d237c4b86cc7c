from agboss import (
    AnswerFinish,
    Compaction,
    Defaults,
    History,
    JevRouter,
    ModelDefaults,
    ModelSpec,
    TaskStart,
    WorkflowDefinition,
    WorkflowSettings,
    agent,
    chain,
    workflow,
)
from agboss.testing import MakeApp, MockCompaction, MockLlm, reply


@agent(
    name="recaller",
    description="Answers from what was said",
    prompt="Answer the task from the previous turns.",
    model="moonshotai/kimi-k2.6",
)
class Recaller: ...


@workflow(
    name="compacting-desk",
    version="1.0.0",
    flow=[chain(TaskStart, Recaller, AnswerFinish)],
    defaults=Defaults(
        models=ModelDefaults(temperature=0),
        router=JevRouter(model="typesafe/jev-1.13"),
        history=History(limit=4, summaries=3),
    ),
    compaction=Compaction(every=2, keep=3, model=ModelSpec("moonshotai/kimi-k2.6", thinking="none")),
)
class CompactingDesk(WorkflowDefinition):
    def settings(self) -> WorkflowSettings:
        return WorkflowSettings.builder().build()


async def test_recall(agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction) -> None:
    mock_llm(Recaller).then_return(reply("Nice to meet you, Pavel."), reply("Pavel."), reply("Yes."))
    mock_compaction.then_return("The user is called Pavel.")
    async with agboss_app(CompactingDesk) as app:
        a = await app.execute(TaskStart, "My name is Pavel.")
        b = await app.execute(TaskStart, "What is my name?", thread=a.thread)
        assert b.memory == "turns 1–2 → summary 1/3"
        await app.execute(TaskStart, "Sure?", thread=a.thread)
    assert "The user is called Pavel." in mock_llm(Recaller).requests[-1].text
    assert "My name is Pavel." in mock_compaction.requests[0].text
