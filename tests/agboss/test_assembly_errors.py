"""Everything that is wrong with a workflow is told at once, before any model call."""

from __future__ import annotations

import pickle
from decimal import Decimal
from typing import Annotated, Any

import pytest
from desks import MODEL, Helper, Models, sum_up, yes

from agboss import (
    AgbossError,
    AnswerFinish,
    AssemblyError,
    Compaction,
    Defaults,
    FunctionRouter,
    History,
    InjectionToken,
    Limits,
    LlmRouter,
    ModelSpec,
    RunLimits,
    TaskStart,
    agent,
    chain,
    create_app,
    from_,
    injectable,
    provide,
    provide_factory,
    router,
    tool,
    workflow,
)
from agboss_memory import BaseMemoryStrategy, MemoryContext, MemoryView


def violations(workflow_: Any, **arguments: Any) -> AssemblyError:
    with pytest.raises(AssemblyError) as raised:
        create_app(workflow_, store="memory://", models=Models(yes, sum_up), **arguments)
    error = raised.value
    assert isinstance(error, AgbossError)
    assert isinstance(error, ExceptionGroup)
    again = pickle.loads(pickle.dumps(error))
    assert again.codes == error.codes
    assert str(again) == str(error)
    for one in error.exceptions:
        assert isinstance(one, AgbossError)
        assert one.hint, one
        assert one.message.partition("\n")[0] in str(error)
        copy = pickle.loads(pickle.dumps(one))
        assert (copy.code, copy.message) == (one.code, one.message)
    return error


def flow(*edges: Any, **fields: Any) -> Any:
    @workflow(name="broken", flow=edges, **fields)
    class Broken: ...

    return Broken


def pick(context: Any) -> str:
    return "helper"


@router(name="door", router=FunctionRouter(pick))
class Door: ...


@agent(name="lost", model=MODEL)
class Lost: ...


@agent(name="Helper", model=MODEL)
class Double: ...


class Undecorated: ...


FACTS = InjectionToken[list[str]]("FACTS")
FACT = InjectionToken[list[str]]("FACT")


@injectable(deps=[FACTS])
class Store:
    def __init__(self, facts: list[str]) -> None:
        self.facts = facts


@injectable(deps=[Store])
class Needy(BaseMemoryStrategy):
    def __init__(self, store: Store) -> None:
        self.store = store

    def build_context(self, context: MemoryContext) -> MemoryView:
        return MemoryView()


@agent(name="needy-agent", model=MODEL, memory_strategy=Needy)
class NeedyAgent: ...


def test_no_finish_and_a_dead_end() -> None:
    codes = violations(flow(chain(TaskStart, Helper))).codes
    assert "flow.no-finish" in codes
    assert "flow.dead-end" in codes


def test_no_start() -> None:
    assert "flow.no-start" in violations(flow(chain(Helper, AnswerFinish))).codes


def test_an_unreachable_node() -> None:
    error = violations(flow(chain(TaskStart, Helper, AnswerFinish), chain(Lost, AnswerFinish)))
    assert error.codes == ("flow.unreachable",)
    assert "'lost'" in error.exceptions[0].args[0]


def test_a_loop_without_a_way_out() -> None:
    broken = flow(chain(TaskStart, Door), from_(Door).routes(Helper, then=Door), chain(Lost, AnswerFinish))
    assert set(violations(broken).codes) >= {"flow.dead-end", "flow.unreachable"}


def test_a_route_that_leads_nowhere_and_one_that_is_none() -> None:
    broken = flow(
        chain(TaskStart, Door), from_(Door).routes(Helper), from_(Door).routes(Undecorated, then=AnswerFinish)
    )
    assert set(violations(broken).codes) >= {"flow.dead-end", "flow.unknown-route"}


def test_two_names_that_read_the_same() -> None:
    error = violations(flow(chain(TaskStart, Helper, Double, AnswerFinish)))
    assert "assembly.duplicate-name" in error.codes
    assert "'helper'" in str(error)
    assert "'Helper'" in str(error)


def test_a_missing_provider_shows_its_path_and_near_misses() -> None:
    error = violations(flow(chain(TaskStart, NeedyAgent, AnswerFinish), providers=[provide(FACT, ["x"])]))
    (one,) = error.exceptions
    assert isinstance(one, AgbossError)
    assert one.code == "di.missing-provider"
    assert one.data["path"] == ("Needy", "Store", "FACTS")
    assert "└ Store" in one.message
    assert "└ FACTS" in one.message
    assert "FACT" in one.hint.partition("similar name:")[2]


def test_create_app_may_give_what_is_missing() -> None:
    create_app(flow(chain(TaskStart, NeedyAgent, AnswerFinish)), store="memory://", providers=[provide(FACTS, ["x"])])


def test_b126_an_app_wide_object_may_not_capture_one_of_a_tern() -> None:
    """A singleton strategy with a dependency that lives for one Tern is refused when the App is made."""
    per_tern = provide_factory(FACTS, list, deps=[], scope="tern")
    error = violations(flow(chain(TaskStart, NeedyAgent, AnswerFinish), providers=[per_tern]))
    assert set(error.codes) == {"di.captive"}


def test_bad_models_prices_and_numbers_all_at_once() -> None:
    @tool
    def lookup(text: str, facts: Annotated[list[str], FACTS]) -> str:
        """Looks something up."""
        return text

    @agent(name="bad-model", model="gpt-5-mini", history_summaries=7, tools=[lookup, lookup])
    class BadModel: ...

    @agent(name="no-model")
    class NoModel: ...

    @agent(name="pricey", model="openai-compatible:mystery-1")
    class Pricey: ...

    error = violations(
        flow(
            chain(TaskStart, BadModel, NoModel, Pricey, AnswerFinish),
            chain(Lost, AnswerFinish),
            defaults=Defaults(history=History(summaries=5)),
            compaction=Compaction(every=2, keep=3, model=ModelSpec("nonsense:model")),
            limits=Limits(per_run=RunLimits(usd=Decimal(1))),
            providers=[provide(FACT, []), provide(FACT, [])],
        )
    )
    assert set(error.codes) >= {
        "flow.unreachable",
        "di.missing-provider",
        "di.duplicate-provider",
        "model.bad-id",
        "model.missing",
        "assembly.duplicate-tool",
        "history.summaries-above-keep",
        "limits.no-price",
    }
    text = str(error)
    for named in ("'gpt-5-mini'", "provider:model", "nonsense", "'no-model'", "history_summaries=7", "base_url"):
        assert named in text
    assert [str(number) + "." in text for number in range(1, len(error.exceptions) + 1)].count(False) == 0


def test_a_money_limit_also_needs_the_price_of_a_routers_model() -> None:
    @router(name="asking", router=LlmRouter(model=ModelSpec("openai:mystery-2")))
    class Asking: ...

    @agent(name="priced", model=ModelSpec("openai:mystery-3", price="free"))
    class Priced: ...

    broken = flow(
        chain(TaskStart, Asking),
        from_(Asking).routes(Priced, then=AnswerFinish),
        limits=Limits(per_run=RunLimits(usd=Decimal(1))),
    )
    error = violations(broken)
    assert error.codes == ("limits.no-price",)
    assert "mystery-2" in str(error)


def test_something_that_is_no_workflow() -> None:
    for what in (Undecorated, TaskStart, "text", None, 7):
        assert violations(what).codes == ("assembly.not-a-workflow",)


def test_a_prompt_variable_with_a_slip_in_its_name() -> None:
    @agent(name="greeter", model=MODEL, prompt="Greet {custmer} by {tone}. {json} {customer} {custmer}")
    class Greeter: ...

    edge = chain(TaskStart, Greeter, AnswerFinish)
    error = violations(flow(edge, prompt_variables={"customer": "Ada", "name": "x"}))
    assert error.codes == ("prompt.unknown-variable",)
    assert "'greeter'" in str(error)
    assert "did you mean {customer}?" in str(error)
    create_app(flow(edge), store="memory://")
    create_app(flow(edge, prompt_variables={"weather": "fine"}), store="memory://")
