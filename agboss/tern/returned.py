"""What a memory strategy gave back: taken when it is what the contract asks for, else an error that names the strategy."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, NoReturn, cast

from agboss.agents import AgentPlan
from agboss.errors import AgbossError, StrategyError
from agboss.models.meter import countable
from agboss_memory.contract import CompressReport, LeftOut, MemoryContext, MemoryUpdate, MemoryView
from agboss_memory.messages import Message, Summary, Tern, UsageRecord
from agboss_memory.strategies.turns import TurnMemory
from agboss_memory.wording import told

_VIEW: dict[str, type[Any]] = {
    "history": Tern,
    "summaries": Summary,
    "messages": Message,
    "recalled": str,
    "left_out": LeftOut,
    "warnings": str,
}


def viewed(agent: AgentPlan, given: object) -> MemoryView:
    """What ``build_context`` gave. Raises StrategyError unless it is a MemoryView."""
    if not isinstance(given, MemoryView):
        _refuse(_who(agent), "build_context", given, MemoryView)
    if type(agent.strategy) is not TurnMemory and not _usual(given):  # ours is right, and is what most agents have
        checked_again(agent, given)
    return given


def _usual(view: MemoryView) -> bool:
    """Whether the fields are of the kinds that they should be: cheap, and all that is asked of most views."""
    shown = type(view.history) is type(view.summaries) is type(view.recalled) is tuple
    return shown and type(view.left_out) is type(view.warnings) is tuple and type(view.system_addendum) is str


def checked_again(agent: AgentPlan, view: MemoryView) -> None:
    """Called when a view cannot be shown: raises StrategyError if that is the fault of the strategy."""
    if problem := _view_problem(view):
        text = f"{_who(agent)} gave a MemoryView that cannot be shown: {problem}"
        raise StrategyError(
            "memory.no-view", text, "mend what build_context returns; the fields are those of MemoryView"
        )


def _who(agent: AgentPlan) -> str:
    return f"strategy {agent.strategy_name!r} of agent {agent.name!r}"


def _view_problem(view: MemoryView) -> str:
    """Why a view cannot be shown, empty when it can. Asked once something went wrong: it costs time."""
    for name, kind in _VIEW.items():
        value: object = getattr(view, name)
        if name == "messages" and value is None:
            continue
        if not isinstance(value, Sequence) or isinstance(value, str):
            return f"{name} is a {type(value).__name__}, not a tuple"
        for item in cast("Sequence[object]", value):
            if not isinstance(item, kind):
                return f"{name} holds a {type(item).__name__}, not a {kind.__name__}"
    text: object = view.system_addendum
    return "" if isinstance(text, str) else f"system_addendum is a {type(text).__name__}, not text"


async def updated(name: str, made: object) -> MemoryUpdate:
    """What ``update_memory`` gave, waited for. Raises StrategyError unless it is a MemoryUpdate that can be booked."""
    given = await made if inspect.isawaitable(made) else made
    if not isinstance(given, MemoryUpdate):
        _refuse(f"strategy {name!r}", "update_memory", given, MemoryUpdate)
    problem = ""
    if not _bookable(given.usage):
        problem = "usage is no tuple of UsageRecord(...) with whole tokens and a cost as Decimal"
    elif not isinstance(given.report, CompressReport | None):  # pyright: ignore[reportUnnecessaryIsInstance]
        problem = f"report is a {type(given.report).__name__}, not a CompressReport"
    if problem:
        text = f"strategy {name!r} gave an update that cannot be taken: {problem}"
        raise StrategyError("memory.no-update", text, "mend what update_memory returns")
    return given


async def compressed(agent: AgentPlan, context: MemoryContext) -> CompressReport:
    """What ``compress`` gave. Raises StrategyError when it raised, or gave something else than a CompressReport."""
    who = _who(agent)
    try:
        made: object = agent.strategy.compress(context)
        given: object = await made if inspect.isawaitable(made) else made
    except AgbossError:
        raise
    except Exception as error:
        text = f"{who} failed in compress: {told(error)}"
        raise StrategyError("memory.compress", text, "mend the strategy; nothing else was changed") from error
    if not isinstance(given, CompressReport):
        _refuse(who, "compress", given, CompressReport)
    return given


def _bookable(usage: object) -> bool:
    return isinstance(usage, Sequence) and all(
        isinstance(one, UsageRecord) and countable(one) for one in cast("Sequence[object]", usage)
    )


def _refuse(who: str, method: str, given: object, kind: type[Any]) -> NoReturn:
    code = {"build_context": "memory.no-view", "update_memory": "memory.no-update"}.get(method, "memory.no-report")
    hint = f"return {kind.__name__}(...) from {method}"
    if inspect.iscoroutine(given):
        given.close()  # nobody waits for it any more
        hint = f"await what {method} returns"
    elif isinstance(given, type):
        hint = f"return {kind.__name__}(...), an object, from {method}"
    raise StrategyError(code, f"{who} gave {type(given).__name__} from {method}, not a {kind.__name__}", hint)
