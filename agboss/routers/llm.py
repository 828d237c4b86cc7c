"""Routing by asking a chat model for one of the routes by name."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from decimal import Decimal
from typing import Any, TypeAlias, cast

from agboss.components.settings import LlmRouter
from agboss.errors import RouterError
from agboss.routers.contract import RouteOption, RouteRequest, RouteResult
from agboss.routers.deciding import state_text
from agboss_memory.messages import UsageRecord

Ask: TypeAlias = Callable[[str, str, dict[str, Any]], Awaitable[tuple[str, UsageRecord]]]
"""One call of a chat model: ``ask(system, user, schema) -> (text, usage)``. Limits and booking are the caller's."""

_TRIES = 2
"""The call, and one more that names what was wrong with the first answer."""


class RouteByModel:
    """Asks a chat model once, and once more when its answer names no route.

    Args:
        settings: Instructions.
        ask: How the model is called.
    """

    def __init__(self, settings: LlmRouter, *, ask: Ask) -> None:
        self._instructions = settings.instructions
        self._ask = ask

    async def route(self, request: RouteRequest) -> RouteResult:
        """Decide.

        Raises:
            RouterError: ``router.not-an-option`` when the second answer names no route either. Its data holds the
                usage of both calls.
        """
        names = [option.name for option in request.options]
        schema = route_schema(names)
        system = f"{self._instructions}\n\nRoutes:\n{_listed(request.options)}"
        user, answer = state_text(request), ""
        usage: list[UsageRecord] = []
        for _ in range(_TRIES):
            answer, record = await self._ask(system, user, schema)
            usage.append(record)
            choice = chosen(answer, names)
            if choice is not None:
                return RouteResult(next=choice, usage=tuple(usage), cost=_cost(usage), source="llm")
            user = f"{state_text(request)}\n\nYour answer {answer[:200]!r} names no route. Answer with one of: {names}"
        raise RouterError(
            "router.not-an-option",
            f"router {request.router!r} got {answer[:200]!r} from its model, which is not one of its routes",
            f"its routes are {', '.join(names)}; describe them better, or take a stronger model",
            router=request.router,
            choice=answer[:200],
            options=tuple(names),
            usage=tuple(usage),
        )


def route_schema(names: Sequence[str]) -> dict[str, Any]:
    """JSON Schema of the answer: an object whose ``route`` is one of the names."""
    return {
        "type": "object",
        "properties": {"route": {"type": "string", "enum": list(names)}},
        "required": ["route"],
        "additionalProperties": False,
    }


def chosen(answer: str, names: Sequence[str]) -> str | None:
    """The route that an answer names: as JSON, as the bare name, or as the only name within a text."""
    text = answer.strip()
    for found in (_from_json(text), text.strip("`\"'. ")):
        if found in names:
            return found
    inside = [name for name in names if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)]
    return inside[0] if len(inside) == 1 else None


def _from_json(text: str) -> str | None:
    match = re.search(r"\{.*\}", text, re.DOTALL)
    try:
        value: Any = json.loads(match.group() if match else text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict):
        value = cast("dict[str, Any]", value).get("route")
    return value.strip() if isinstance(value, str) else None


def _listed(options: Sequence[RouteOption]) -> str:
    lines: list[str] = []
    for option in options:
        lines.append(f"- {option.name}: {option.description}" if option.description else f"- {option.name}")
        lines.extend(f"    for example: {example}" for example in option.examples)
    return "\n".join(lines)


def _cost(usage: Sequence[UsageRecord]) -> Decimal | None:
    known = [record.usd for record in usage if record.usd is not None]
    return sum(known, Decimal(0)) if len(known) == len(usage) else None
