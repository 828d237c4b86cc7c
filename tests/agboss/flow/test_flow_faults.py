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
