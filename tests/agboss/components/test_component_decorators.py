"""Decorators: what they leave on a class, in any order, and that nothing is inherited."""

from __future__ import annotations

from typing import Any

import pytest

from agboss import (
    ActionContext,
    AnswerFinish,
    DeclarationError,
    Finish,
    ModelSpec,
    RulesRouter,
    Start,
    TaskStart,
    ToolContext,
    action,
    agent,
    chain,
    injectable,
    model_provider,
    router,
    tool,
    workflow,
    workflow_finish,
    workflow_start,
)
from agboss.components.action import ActionSpec
from agboss.components.agent import AgentSpec
from agboss.components.metadata import component_of, metadata_of
from agboss.components.router import RouterSpec
from agboss.components.tool import ToolSpec
from agboss.components.workflow import WorkflowSpec


def spec_of(target: object) -> Any:
    spec = component_of(target)
    assert spec is not None
    return spec


def test_a_bare_agent_takes_all_from_its_class() -> None:
    @agent
    class FactChecker2:
        """Checks facts.

        With care.
        """

    spec = spec_of(FactChecker2)
    assert isinstance(spec, AgentSpec)
    assert (spec.name, spec.description, spec.prompt) == (
        "fact-checker2",
        "Checks facts.\n\nWith care.",
        "Checks facts.\n\nWith care.",
    )
    assert (spec.model, spec.tools, spec.max_tool_calls) == (None, (), 8)


def test_arguments_win_over_the_class() -> None:
    @agent(name="checker", description="d", prompt="p", model={"model": "moonshotai/kimi-k2.6", "thinking": "none"})
    class FactChecker:
        """Doc."""

    spec = spec_of(FactChecker)
    assert (spec.name, spec.description, spec.prompt) == ("checker", "d", "p")
    assert spec.model == ModelSpec("moonshotai/kimi-k2.6", thinking="none")


def test_every_bare_decorator() -> None:
    @router
    class Desk:
        """Chooses."""

    @action
    class Note:
        """Notes."""

        async def run(self, ctx: ActionContext) -> str:
            return ""

    @tool
    def fetch_page(url: str) -> str:
        """Fetch."""
        return url

    @tool
    class FetchAll:
        """Fetches."""

        async def run(self, ctx: ToolContext) -> str:
            return ""

    for target, kind, spec_class, name, text in (
        (Desk, "router", RouterSpec, "desk", "Chooses."),
        (Note, "action", ActionSpec, "note", "Notes."),
        (fetch_page, "tool", ToolSpec, "fetch_page", "Fetch."),
        (FetchAll, "tool", ToolSpec, "fetch_all", "Fetches."),
    ):
        spec = spec_of(target)
        assert isinstance(spec, spec_class)
        assert (spec.kind, spec.name, spec.description) == (kind, name, text)


def test_starts_finishes_and_workflows() -> None:
    @workflow_start()
    class AskIt(Start[str]):
        """Asks."""

    @workflow_finish(name="the-end")
    class Done(Finish[str]):
        """Ends."""

    @workflow(flow=[])
    class MyDesk:
        """Works."""

    assert (spec_of(AskIt).name, spec_of(AskIt).input) == ("ask-it", None)
    assert spec_of(Done).name == "the-end"
    spec = spec_of(MyDesk)
    assert isinstance(spec, WorkflowSpec)
    assert (spec.name, spec.version, spec.description) == ("my-desk", "0.0.0", "Works.")


def test_injectable_stands_before_or_after() -> None:
    class Need:
        pass

    @injectable(scope="tern")
    @action
    class Above:
        def __init__(self, need: Need) -> None: ...

        async def run(self, ctx: ActionContext) -> str:
            return ""

    @action
    @injectable(scope="tern")
    class Below:
        def __init__(self, need: Need) -> None: ...

        async def run(self, ctx: ActionContext) -> str:
            return ""

    for cls in (Above, Below):
        record = metadata_of(cls)
        assert record.component is not None
        assert record.injectable is not None
        assert record.injectable.scope == "tern"
        assert [item.key for item in record.injectable.dependencies] == [Need]


def test_nothing_is_inherited() -> None:
    def look() -> str:
        return ""

    @injectable
    @agent(name="a", tools=[look])
    class Base:
        """Base."""

    @agent(name="b")
    class One(Base): ...

    @agent(name="c", tools=[look])
    class Two(Base): ...

    class Plain(Base): ...

    assert [spec_of(cls).name for cls in (Base, One, Two)] == ["a", "b", "c"]
    assert [len(spec_of(cls).tools) for cls in (Base, One, Two)] == [1, 0, 1]
    assert spec_of(One).prompt == "", "the docstring of a base is not a prompt"
    assert component_of(Plain) is None
    assert metadata_of(One).injectable is None


def test_two_kinds_on_one_class_are_refused() -> None:
    with pytest.raises(DeclarationError) as caught:

        @router
        @agent
        class Both: ...

    assert caught.value.code == "declaration.two-kinds"


def test_the_class_stays_as_it_is() -> None:
    class Helper:
        """Helps."""

    assert agent(Helper) is Helper
    assert agent(name="x")(type("Other", (), {})).__name__ == "Other"


class NoRun: ...


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (lambda: agent(name=" x")(type("A", (), {})), "' x'"),
        (lambda: agent(name="a\nb")(type("A", (), {})), "not allowed"),
        (lambda: agent(max_tool_calls=-1)(type("A", (), {})), "max_tool_calls=-1"),
        (lambda: agent(history_limit=-1)(type("A", (), {})), "history_limit=-1"),
        (lambda: agent(thinking="hard")(type("A", (), {})), "thinking"),  # pyright: ignore[reportArgumentType]
        (lambda: agent(model={"modle": "x:y"})(type("A", (), {})), "did you mean 'model'"),
        (lambda: agent(model={"model": "x:y", "temprature": 1})(type("A", (), {})), "did you mean 'temperature'"),
        (lambda: agent(memory_strategy=NoRun)(type("A", (), {})), "NoRun"),  # pyright: ignore[reportArgumentType]
        (lambda: agent(tools=[7])(type("A", (), {})), "7 is no tool"),
        (lambda: workflow(name="My Desk", flow=[])(type("A", (), {})), "'My Desk'"),
        (lambda: workflow(version="1 0", flow=[])(type("A", (), {})), "version='1 0'"),
        (lambda: workflow(flow=[], compaction={"every": 0})(type("A", (), {})), "every"),
        (lambda: workflow(flow=[], compaction={"evry": 2})(type("A", (), {})), "did you mean 'every'"),
        (lambda: workflow(flow=[], limits={"per_run": {"step": 2}})(type("A", (), {})), "did you mean 'steps'"),
        (lambda: workflow(flow=[], defaults={"history": {"limt": 4}})(type("A", (), {})), "did you mean 'limit'"),
        (lambda: router(max_visits=0)(type("A", (), {})), "max_visits=0"),
        (lambda: router(router={"kind": "rulez"})(type("A", (), {})), "rulez"),
        (lambda: router(router={"kind": "llm", "instruction": "x"})(type("A", (), {})), "did you mean 'instructions'"),
        (lambda: action(NoRun), "has no run"),
        (lambda: tool(NoRun), "has no run"),
        (lambda: tool(timeout=0)(lambda: ""), "<lambda>"),
        (lambda: model_provider(name="openai")(NoRun), "built-in provider"),
    ],
)
def test_wrong_arguments_show_at_decoration(declare: Any, words: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        declare()
    assert words in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_local_classes_resolve_in_string_annotations() -> None:
    class Size:
        pass

    @injectable
    class Uses:
        def __init__(self, size: Size) -> None: ...

    record = metadata_of(Uses).injectable
    assert record is not None
    assert [item.key for item in record.dependencies] == [Size]


def test_a_name_that_cannot_be_resolved_is_named() -> None:
    with pytest.raises(DeclarationError, match="Nowhere"):

        @injectable
        class Uses:
            def __init__(self, it: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore


def test_rules_router_from_a_dict() -> None:
    @router(router={"kind": "rules", "rules": [{"to": "billing", "words": ["bill"]}], "otherwise": "billing"})
    class Desk: ...

    assert isinstance(spec_of(Desk).settings, RulesRouter)


@pytest.mark.parametrize(
    ("decorator", "argument", "value"),
    [
        *((agent, "temperature", value) for value in ("hot", True, -0.1, float("nan"), float("inf"))),
        *((agent, name, value) for name in ("history_limit", "history_summaries") for value in (True, "3", 1.5, -1)),
        *((agent, "max_tool_calls", value) for value in (True, "3", None)),
        *((router, "max_visits", value) for value in (True, "3", 0, None)),
    ],
)
def test_a_number_that_is_none_is_refused(decorator: Any, argument: str, value: Any) -> None:
    with pytest.raises(DeclarationError) as caught:
        decorator(**{argument: value})(type("Odd", (), {}))
    assert caught.value.code == "declaration.invalid"
    assert caught.value.message == f"@{decorator.__name__} Odd: {argument}={value!r}"
    assert caught.value.hint.startswith("use a ")


@pytest.mark.parametrize(
    ("kind", "text"), [("rule", "did you mean 'rules'?"), ("x", "known kinds: rules, function, llm, jev")]
)
def test_an_unknown_kind_of_router_names_the_nearest(kind: str, text: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        router(router={"kind": kind})(type("Odd", (), {}))
    assert caught.value.message == f"@router Odd: kind: {kind!r} is no kind; {text}"
    with pytest.raises(DeclarationError) as caught:
        workflow(flow=[], defaults={"router": {"kind": kind}})(type("Odd", (), {}))
    assert f"router.kind: {kind!r} is no kind; {text}" in caught.value.message


def test_a_single_edge_is_a_flow() -> None:
    edge = chain(TaskStart, AnswerFinish)
    assert spec_of(workflow(flow=edge)(type("One", (), {}))).flow == (edge,)
    assert spec_of(workflow(flow=(edge,))(type("Two", (), {}))).flow == (edge,)
    odd: Any = "edge"
    assert spec_of(workflow(flow=odd)(type("Three", (), {}))).flow == ("edge",)
