"""Flows that cannot run: each fault has its code and says what to do."""

from collections.abc import Callable
from typing import Any

import pytest

from agboss import (
    AgbossError,
    AnswerFinish,
    AssemblyError,
    JevRouter,
    Start,
    TaskStart,
    agent,
    chain,
    create_app,
    from_,
    router,
    workflow,
    workflow_start,
)

MODEL = "openai:gpt-5-mini"


@agent(model=MODEL)
class Alpha:
    """First."""


@agent(model=MODEL)
class Beta:
    """Second."""


@router(router=JevRouter(model="typesafe/jev-1.13"), max_visits=3)
class Desk:
    """Chooses."""


def flow(*edges: Any, **settings: Any) -> type[Any]:
    @workflow(name="w", flow=edges, **settings)
    class Work: ...

    return Work


@workflow_start(input=None)
class Ask(Start[str]):
    """Asks."""


@router(router=JevRouter(model="typesafe/jev-1.13"))
class Other:
    """Chooses too."""


class Plain: ...


BAD: list[tuple[str, Callable[[], type[Any]]]] = [
    ("flow.no-finish", lambda: flow(chain(TaskStart, Alpha))),
    ("flow.no-start", lambda: flow(chain(Alpha, AnswerFinish))),
    ("flow.dead-end", lambda: flow(chain(TaskStart, Desk), from_(Desk).routes(Alpha))),
    ("flow.unreachable", lambda: flow(chain(TaskStart, Alpha, AnswerFinish), chain(Beta, AnswerFinish))),
    ("flow.dead-end", lambda: flow(chain(TaskStart, Alpha, Beta, Alpha), chain(Ask, AnswerFinish))),
    ("flow.two-edges", lambda: flow(chain(TaskStart, Alpha, AnswerFinish), chain(Alpha, Beta, AnswerFinish))),
    ("flow.not-a-component", lambda: flow(chain(TaskStart, Plain, AnswerFinish))),
    ("flow.unknown-route", lambda: flow(chain(TaskStart, Desk), from_(Desk).routes(Plain, then=AnswerFinish))),
    ("flow.after-finish", lambda: flow(chain(TaskStart, AnswerFinish, Alpha))),
    ("flow.into-start", lambda: flow(chain(TaskStart, Desk), from_(Desk).routes(Alpha, AnswerFinish, then=TaskStart))),
    ("flow.not-a-router", lambda: flow(chain(TaskStart, Alpha), from_(Alpha).routes(Beta, then=AnswerFinish))),
    (
        "flow.two-edges",
        lambda: flow(
            chain(TaskStart, Desk),
            chain(Ask, Other),
            from_(Desk).routes(Alpha, AnswerFinish, then=AnswerFinish),
            from_(Other).routes(Alpha, AnswerFinish, then=Other),
        ),
    ),
]


@pytest.mark.parametrize(("code", "make"), BAD)
def test_a_bad_flow_is_refused(code: str, make: Callable[[], type[Any]]) -> None:
    with pytest.raises(AssemblyError) as caught:
        create_app(make(), store="memory://")
    assert code in caught.value.codes
    assert all(isinstance(error, AgbossError) and error.hint for error in caught.value.exceptions)


def told(*edges: Any) -> dict[str, set[str]]:
    """The violations of a flow: the nodes that each code names."""
    with pytest.raises(AssemblyError) as caught:
        create_app(flow(*edges), store="memory://")
    found: dict[str, set[str]] = {}
    for error in caught.value.exceptions:
        assert isinstance(error, AgbossError)
        found.setdefault(error.code, set()).add(" ".join(error.message.split("'")[1::2]))
    assert sum(map(len, found.values())) == len(caught.value.exceptions), "none is told twice"
    return found


@agent(model=MODEL)
class Gamma:
    """Third."""


@agent(model=MODEL)
class Delta:
    """Fourth."""


def test_a_dead_end_does_not_hide_what_is_never_reached() -> None:
    assert told(chain(TaskStart, Alpha, AnswerFinish), chain(Beta, AnswerFinish), chain(Gamma, Desk)) == {
        "flow.dead-end": {"desk"},
        "flow.unreachable": {"beta", "gamma", "desk"},
    }


def test_a_refused_edge_hides_nothing_and_is_told_once() -> None:
    assert told(chain(TaskStart, Desk, Alpha, Beta), from_(Gamma).next(Delta)) == {
        "flow.router-edge": {"desk alpha"},
        "flow.no-finish": {""},
        "flow.unreachable": {"gamma", "delta"},
        "flow.dead-end": {"beta", "delta"},
    }


def test_what_is_no_component_makes_no_further_noise() -> None:
    assert told(chain(TaskStart, Plain, Alpha, AnswerFinish)) == {"flow.not-a-component": {""}}
    assert set(told(chain(TaskStart, [Plain], Alpha, AnswerFinish))) == {"flow.not-a-component"}
    assert told(chain(TaskStart, Desk), from_(Desk).routes(Alpha, AnswerFinish, then=Plain)) == {
        "flow.not-a-component": {""}
    }
    assert told(chain(TaskStart, Desk), from_(Desk).routes(Plain, then=AnswerFinish)) == {"flow.unknown-route": {""}}


def test_a_dead_end_is_not_also_a_round() -> None:
    assert told(chain(TaskStart, Desk), from_(Desk).routes(Alpha), chain(Ask, AnswerFinish)) == {
        "flow.dead-end": {"desk alpha"}
    }


def test_a_route_may_get_its_way_on_from_a_later_router() -> None:
    edges = from_(Desk).routes(Alpha), from_(Other).routes(Alpha, then=AnswerFinish)
    create_app(flow(chain(TaskStart, Desk), chain(Ask, Other), *edges), store="memory://")


def test_a_then_that_no_route_follows_is_refused() -> None:
    edges = chain(TaskStart, Desk), chain(Alpha, AnswerFinish), chain(Beta, AnswerFinish)
    assert told(*edges, from_(Desk).routes(Alpha, Beta, then=Desk)) == {"flow.unused-then": {"desk desk"}}
    assert told(
        *edges,
        from_(Desk).routes(
            Alpha,
            Beta,
            AnswerFinish,
            then=Gamma,
        ),
        chain(Gamma, AnswerFinish),
    ) == {"flow.unused-then": {"desk gamma"}}
    create_app(flow(*edges[:2], from_(Desk).routes(Alpha, Beta, then=Desk)), store="memory://")


def test_a_rule_of_a_router_without_routes_gets_a_remedy() -> None:
    @router(router={"kind": "rules", "rules": [{"to": "alpha", "words": ["a"]}]})
    class Ruled: ...

    with pytest.raises(AssemblyError) as caught:
        create_app(flow(chain(TaskStart, Ruled)), store="memory://")
    hints = [error.hint for error in caught.value.exceptions if isinstance(error, AgbossError)]
    assert "its routes are " not in hints


def test_two_names_that_read_the_same_name_both_classes() -> None:
    @agent(name="ALPHA", model=MODEL)
    class Copy: ...

    twin = agent(model=MODEL)(type("Alpha", (), {"__module__": "elsewhere"}))
    for other, text in (
        (Copy, "agent Copy and agent Alpha"),
        (twin, f"agent elsewhere.Alpha and agent {__name__}.Alpha"),
    ):
        with pytest.raises(AssemblyError) as caught:
            create_app(flow(chain(TaskStart, Alpha, other, AnswerFinish)), store="memory://")
        assert f"{text} have names that read the same" in str(caught.value)
