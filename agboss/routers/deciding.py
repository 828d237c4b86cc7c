"""What holds for every router: how options are asked for, and when an answer counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from agboss.components.settings import RouterSettings
from agboss.errors import RouterError
from agboss.routers.contract import Router, RouteRequest, RouteResult
from agboss_memory.messages import TernStatus
from agboss_memory.notices import NoticeContext, notice
from agboss_memory.records import replace
from agboss_memory.wording import quoted, text_of

NameOf: TypeAlias = Callable[[Any], str]
"""Gives the name of a route target: of a component class, or of a name itself."""


def component_name(target: Any) -> str:
    """The name of a route target: a name as it is, of a component class the name in its ``__agboss__`` record."""
    if isinstance(target, str):
        return target
    own: Mapping[str, Any] = getattr(target, "__dict__", {})
    name = getattr(own.get("__agboss__"), "name", None)
    if isinstance(name, str):
        return name
    raise RouterError(
        "router.not-a-component",
        f"{quoted(target)} is neither the name of a component nor a decorated class",
        "name a class that carries @agent, @action, @router or @workflow_finish, or its name as text",
        target=quoted(target),
    )


async def decide(
    router: Router, request: RouteRequest, settings: RouterSettings, *, name_of: NameOf = component_name
) -> RouteResult:
    """Ask a router and check its answer.

    Options are sorted by name. One option is taken without a call (source ``single``). An answer below
    ``min_confidence``, or without a confidence where one is demanded, goes to the fallback (source ``fallback``). The
    offline stand-in is not held to it: the figure was set for the router that it stands for.

    Raises:
        RouterError: ``router.no-options``, ``router.not-an-option``, or ``router.unsure`` without a fallback.
    """
    options = tuple(sorted(request.options, key=lambda option: option.name))
    if not options:
        raise RouterError("router.no-options", f"router {request.router!r} has no routes", router=request.router)
    if len(options) == 1:
        return RouteResult(next=options[0].name, probabilities={options[0].name: 1.0}, confidence=1.0, source="single")
    asked = replace(request, options=options)
    result = await router.route(asked)
    check_option(asked, result.next)
    least = settings.min_confidence
    if least is None or result.source == "offline" or (result.confidence is not None and result.confidence >= least):
        return result
    return _fall_back(asked, result, least, settings.fallback, name_of)


def check_option(request: RouteRequest, choice: str) -> None:
    """Raise ``router.not-an-option`` unless the choice is one of the request's options."""
    names = [option.name for option in request.options]
    if choice not in names:
        raise RouterError(
            "router.not-an-option",
            f"router {request.router!r} chose {quoted(choice, 200)}, which is not one of its routes",
            f"its routes are {', '.join(names)}",
            router=request.router,
            choice=text_of(choice)[:200],
            options=tuple(names),
        )


def state_text(request: RouteRequest) -> str:
    """What a router that is not local sees: past, files, task, and the last step's answer. The task alone if no more."""
    files = [notice(NoticeContext(attachment=item)) for item in request.attachments]
    task = "\n".join((*files, request.task))
    if not request.past and request.last_status is None:
        return task
    parts = [request.past, f"Task:\n{task}"]
    if request.last_status is not None:
        parts.append(f"The last step ended as {request.last_status.value}. Its answer:\n{request.last_answer}")
    return "\n\n".join(part for part in parts if part)


def ends_here(request: RouteRequest, finish: str | None) -> bool:
    """Whether a local router ends its loop: an agent has answered, and the finish is among the options."""
    return request.last_status is TernStatus.ANSWERED and any(option.name == finish for option in request.options)


def confidence_of(top: float, options: int) -> float:
    """(m - 1/n) / (1 - 1/n) for top probability m of n options, within 0..1; 1 for a single option."""
    if options < 2:
        return 1.0
    return min(1.0, max(0.0, (top - 1 / options) / (1 - 1 / options)))


def _fall_back(request: RouteRequest, result: RouteResult, least: float, fallback: Any, name_of: NameOf) -> RouteResult:
    if fallback is None:
        sure = "gave no confidence" if result.confidence is None else f"was only {result.confidence:.2f} sure"
        raise RouterError(
            "router.unsure",
            f"router {request.router!r} {sure} of {result.next!r}; min_confidence is {least}",
            "give the router a fallback=, lower min_confidence, or describe its routes better",
            router=request.router,
            choice=result.next,
            confidence=result.confidence,
        )
    name = name_of(fallback)
    check_option(request, name)
    return replace(result, next=name, source="fallback")
