"""Settings: dicts and models alike, frozen, usable as keys, and which of them wins."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from agboss import (
    AgbossError,
    AnswerFinish,
    AssemblyError,
    Compaction,
    Defaults,
    FunctionRouter,
    History,
    JevRouter,
    Limits,
    LlmRouter,
    ModelDefaults,
    ModelSpec,
    Price,
    RulesRouter,
    RunLimits,
    TaskStart,
    WorkflowDefinition,
    WorkflowSettings,
    agent,
    chain,
    create_app,
    workflow,
)
from agboss.components.settings import Rule, Settings
from agboss.testing import MakeApp, MockLlm, reply

MODEL = "openai:gpt-5-mini"

FORMS: list[tuple[type[Settings] | type[ModelSpec], dict[str, Any], str]] = [
    (Price, {"input": 1, "output": 2}, "inputs"),
    (ModelSpec, {"model": MODEL, "accepts": ["image"], "price": {"input": 1, "output": 2}}, "modell"),
    (History, {"limit": 4, "summaries": 3}, "limits"),
    (ModelDefaults, {"model": MODEL, "temperature": 0}, "temprature"),
    (Compaction, {"every": 2, "keep": 3, "model": {"model": MODEL}}, "kep"),
    (RunLimits, {"steps": 2, "usd": "0.5"}, "step"),
    (Limits, {"per_run": {"steps": 2}}, "per_runs"),
    (Rule, {"to": "a", "words": ["x"]}, "word"),
    (RulesRouter, {"rules": [{"to": "a", "words": ["x"]}]}, "rule"),
    (FunctionRouter, {"function": len}, "functions"),
    (LlmRouter, {"model": MODEL}, "modle"),
    (JevRouter, {"model": "typesafe/jev-1.13"}, "base_ulr"),
    (Defaults, {"history": {"limit": 4}, "router": {"kind": "jev", "model": "typesafe/jev-1.13"}}, "histroy"),
]


@pytest.mark.parametrize(("model", "form", "typo"), FORMS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_dict_is_as_good_as_the_model(model: type[Any], form: dict[str, Any], typo: str) -> None:
    read: Callable[[Any], Any] = TypeAdapter(model).validate_python
    made = read(form)
    assert made == model(**form)
    assert hash(made) == hash(model(**form)), "equal settings are equal keys"
    again = read(form)
    assert len({made, again}) == 1
    with pytest.raises(ValidationError, match=f"{typo}.*did you mean"):
        read({**form, typo: 1})
    field = next(iter(form))
    with pytest.raises((ValidationError, FrozenInstanceError)):
        setattr(made, field, form[field])


def test_a_model_spec_is_a_value_that_can_be_copied_and_stored() -> None:
    spec = ModelSpec(MODEL, temperature=0.5, accepts=["image"], price={"input": 1, "output": 2})
    assert pickle.loads(pickle.dumps(spec)) == spec == copy.deepcopy(spec)
    assert spec.with_values(max_tokens=9) == ModelSpec(
        MODEL, temperature=0.5, accepts=["image"], price=Price(input=Decimal(1), output=Decimal(2)), max_tokens=9
    )
    with pytest.raises(FrozenInstanceError):
        spec.model = "a/b"  # pyright: ignore[reportAttributeAccessIssue]


def test_a_pydantic_model_takes_a_model_spec_as_a_field() -> None:
    class Mine(BaseModel):
        spec: ModelSpec

    spec = ModelSpec(MODEL, price={"input": 1, "output": 2})
    assert Mine(spec=spec).spec is spec
    assert Mine.model_validate_json(Mine(spec=spec).model_dump_json()) == Mine(spec=spec)
    assert Mine.model_validate({"spec": {"model": MODEL}}).spec == ModelSpec(MODEL)
    shape = Mine.model_json_schema()["$defs"]["ModelFields"]
    assert (shape["title"], shape["properties"].keys()) == ("ModelSpec", set(spec.__dataclass_fields__))
    with pytest.raises(ValidationError, match=r"spec\.temperature") as caught:
        Mine.model_validate({"spec": {"model": MODEL, "temperature": -1}})
    assert caught.value.errors()[0]["loc"] == ("spec", "temperature")


def test_a_model_spec_takes_its_id_by_position() -> None:
    assert ModelSpec("a/b").provider == "openrouter"
    assert ModelSpec("openai:x/y").name == "x/y"
    with pytest.raises(ValidationError, match="model"):
        ModelSpec()  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize("model", ["gpt-5-mini", "opnai:gpt-5", "openai:", "openai-compatible:x", " /x"])
def test_a_bad_model_id_is_refused_at_assembly(model: str) -> None:
    @agent(model=model)
    class Worker:
        """Works."""

    with pytest.raises(AssemblyError) as caught:
        create_app(Worker, store="memory://")
    assert caught.value.codes == ("model.bad-id",)


def test_all_violations_come_at_once() -> None:
    @agent(history_summaries=9)
    class Worker:
        """Works."""

    @workflow(name="w", flow=[chain(TaskStart, Worker)], compaction=Compaction(every=2, keep=3))
    class Work: ...

    with pytest.raises(AssemblyError) as caught:
        create_app(Work, store="memory://")
    assert {"model.missing", "history.summaries-above-keep", "flow.no-finish"} <= set(caught.value.codes)
    assert isinstance(caught.value, AgbossError)
    assert isinstance(caught.value, ExceptionGroup)
    assert all(code in str(caught.value) for code in caught.value.codes)


def test_what_is_no_workflow_is_refused() -> None:
    class Plain: ...

    with pytest.raises(AssemblyError) as caught:
        create_app(Plain)
    assert "neither a workflow nor an agent" in str(caught.value)


def test_the_builder_builds_what_the_constructor_would() -> None:
    built = (
        WorkflowSettings.builder()
        .defaults({"history": {"limit": 4}})
        .compaction(Compaction(every=2))
        .limits(per_run={"steps": 3})
        .prompt_variables(name="Pavel")
        .build()
    )
    assert built == WorkflowSettings(
        defaults=Defaults(history=History(limit=4)),
        compaction=Compaction(every=2),
        limits=Limits(per_run=RunLimits(steps=3)),
        prompt_variables={"name": "Pavel"},
    )
    assert WorkflowSettings.builder().build() == WorkflowSettings()
    with pytest.raises(ValidationError, match="did you mean 'per_day'"):
        WorkflowSettings.builder().limits(per_dy={}).build()


@agent(name="worker", prompt="You are {name}. {unknown} {}", temperature=0.25)
class Worker: ...


async def called(agboss_app: MakeApp, mock_llm: MockLlm, work: type[Any], target: type[Any] = Worker) -> Any:
    mock_llm(target).then_return(reply("x"))
    async with agboss_app(work) as app:
        await app.execute("Go")
    return mock_llm(target).requests[-1]


async def test_settings_override_the_decorator(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    @workflow(
        name="w",
        flow=[chain(TaskStart, Worker, AnswerFinish)],
        defaults={"models": {"model": "openai:decorator", "max_tokens": 5}},
        prompt_variables={"name": "Decorator"},
    )
    class Work(WorkflowDefinition):
        def settings(self) -> WorkflowSettings:
            return WorkflowSettings.builder().prompt_variables(name="Settings").build()

    request = await called(agboss_app, mock_llm, Work)
    assert request.system == "You are Settings. {unknown} {}"
    assert (request.model, request.settings.max_tokens) == ("openai:decorator", 5)


async def test_the_component_wins_over_the_defaults(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    @agent(model=ModelSpec("openai:own", thinking="low", temperature=0.5))
    class Own:
        """Has its own."""

    @workflow(
        name="w",
        flow=[chain(TaskStart, Own, Worker, AnswerFinish)],
        defaults={"models": {"model": MODEL, "temperature": 1, "thinking": "high", "max_tokens": 7}},
    )
    class Work: ...

    mock_llm(Own).then_return(reply("x"))
    second = await called(agboss_app, mock_llm, Work)
    first = mock_llm(Own).requests[0]
    assert (first.model, first.settings.temperature, first.settings.thinking) == ("openai:own", 0.5, "low")
    assert first.settings.max_tokens == 7
    assert (second.model, second.settings.temperature, second.settings.thinking) == (MODEL, 0.25, "high")


async def test_the_environment_wins_over_the_component(
    agboss_app: MakeApp, mock_llm: MockLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGBOSS_MODEL", "openai:environment")

    @agent(model=MODEL)
    class Helper:
        """Helps."""

    request = await called(agboss_app, mock_llm, Helper, Helper)
    assert request.model == "openai:environment"


def test_create_app_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGBOSS_STORE", "nosuch://x")

    @agent(model=MODEL)
    class Helper:
        """Helps."""

    assert create_app(Helper, store="memory://").store_url == "memory://"
    monkeypatch.setenv("AGBOSS_STORE", "memory://")
    assert create_app(Helper).store_url == "memory://"


async def test_one_agent_is_a_workflow(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    @agent(name="Billing Agent", model=MODEL)
    class Billing:
        "Be brief."

    mock_llm(Billing).then_return(reply("x"))
    async with agboss_app(Billing) as app:
        result = await app.execute("Hello")
        assert app.name == "billing-agent"
    assert result.path == ("task-start", "Billing Agent", "answer-finish")
    assert mock_llm(Billing).requests[0].system == "Be brief."


@pytest.mark.parametrize("price", ["1e400", "10000000000", "-1", "NaN"])
def test_a_price_that_no_ledger_could_hold_is_refused(price: str) -> None:
    with pytest.raises(ValidationError, match="price"):
        ModelSpec(MODEL, price={"input": price, "output": 0})


def test_what_is_no_settings_model_is_told_with_its_value_and_what_to_write() -> None:
    for name, text in (("limits", "Limits"), ("compaction", "Compaction"), ("defaults", "Defaults")):
        with pytest.raises(AgbossError, match=rf"{name}=5 .*\n.*use {text}\(") as caught:
            workflow(flow=chain(TaskStart, AnswerFinish), **{name: 5})(type("X", (), {}))  # pyright: ignore[reportArgumentType]
        assert caught.value.code == "declaration.invalid"
    with pytest.raises(AgbossError, match=r"model=5 .*\n.*use 'provider:model'"):
        agent(model=5)(type("A", (), {}))  # pyright: ignore[reportArgumentType]
