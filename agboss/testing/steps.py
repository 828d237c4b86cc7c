"""What a scripted model or router does next."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, TypeAlias, cast

from pydantic import BaseModel
from pydantic_core import to_json

from agboss.components.metadata import caller_locals, component_of
from agboss.components.naming import describe
from agboss.components.tool import ToolRef, tool_spec
from agboss.errors import DeclarationError
from agboss_memory.records import Record
from agboss_memory.wording import quoted


class Reply(Record, kw_only=True):
    """The model answers with text."""

    text: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    usd: Decimal | None = None


class Call(Record, kw_only=True):
    """The model calls a tool. Build one by hand for a call that a confused model makes.

    Attributes:
        tool: Name of the tool.
        arguments: The arguments object as JSON text.
        strict: The test fails when the request does not offer the tool.
    """

    tool: str
    arguments: str
    strict: bool = False


class Route(Record, kw_only=True):
    """The router chooses a component."""

    target: Any


Step: TypeAlias = "Reply | Call | Route | tuple[Call, ...] | BaseException"


def reply(
    text: str | BaseModel,
    *,
    input_tokens: int | None = None,
    output_tokens: int | None = None,
    usd: Decimal | float | str | None = None,
) -> Reply:
    """The model answers with ``text``, or with the JSON of a pydantic model.

    Args:
        text: The answer.
        input_tokens: Reported usage in tokens. Default: a quarter of the request's characters.
        output_tokens: Reported usage in tokens. Default: a quarter of the answer's characters.
        usd: Reported cost in US dollars. Default: the call is free.
    """
    content = text.model_dump_json() if isinstance(text, BaseModel) else text
    cost = None if usd is None else Decimal(str(usd))
    return Reply(text=content, input_tokens=input_tokens, output_tokens=output_tokens, usd=cost)


def call_tool(tool: Any, /, **arguments: Any) -> Call:
    """The model calls ``tool`` (its class, function, ``ToolRef`` or name), which the request must offer.

    Put several in one list to call them at once.
    """
    if isinstance(tool, str):
        name = tool
    else:
        name = tool_spec(tool.target if isinstance(tool, ToolRef) else tool, caller_locals()).name
    return Call(tool=name, arguments=to_json(arguments).decode(), strict=True)


def route_to(component: Any) -> Route:
    """The router chooses ``component`` (its class or name)."""
    if not isinstance(component, str) and component_of(component) is None:
        raise DeclarationError(
            "testing.no-component", f"route_to({describe(component)}): that is no component", "pass a decorated class"
        )
    return Route(target=component)


def as_step(item: Any) -> Step:
    """A step from what ``then_return`` got: plain text and models are replies, a list of calls is one reply."""
    if isinstance(item, Reply | Call | Route):
        return item
    if isinstance(item, str | BaseModel):
        return reply(item)
    if isinstance(item, list | tuple):
        calls: list[Any] = list(item)  # pyright: ignore[reportUnknownArgumentType]
        if calls and all(isinstance(call, Call) for call in calls):
            return tuple(calls)
    raise DeclarationError(
        "testing.bad-step",
        f"{quoted(cast('object', item))} is no step",
        "use reply('...'), call_tool(Tool, ...), a list of call_tool(...), route_to(Component), or plain text",
    )


def shown(step: Step) -> str:
    """A step in messages."""
    if isinstance(step, Reply):
        return f"reply({step.text[:60]!r})"
    if isinstance(step, Call):
        return f"call_tool({step.tool}, {json.loads(step.arguments)})"
    if isinstance(step, Route):
        return f"route_to({step.target if isinstance(step.target, str) else describe(step.target)})"
    return quoted(step)
