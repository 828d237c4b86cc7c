"""Tools as an agent runs them: schema, arguments, time-out, and a result that is always text."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
from collections.abc import Callable, Iterable
from typing import Any

from agboss.components.border import is_model
from agboss.components.tool import ToolContext, ToolSpec
from agboss.models.chat import ToolSchema
from agboss.units import cancelled_from_outside
from agboss_memory.records import Record
from agboss_memory.tool_results import capped
from agboss_memory.wording import told


class ArgumentsError(ValueError):
    """Arguments do not fit the tool; the text says why.

    Attributes:
        places: Where in the arguments, as keys from the outside, and what is wrong there.
    """

    def __init__(self, places: Iterable[tuple[tuple[str | int, ...], str]]) -> None:
        self.places = tuple(places)
        super().__init__("; ".join(".".join(map(str, where)) + ": " + text for where, text in self.places))


class BoundTool(Record, kw_only=True):
    """A tool that can run.

    Attributes:
        spec: The declaration.
        schema: What the model sees.
        limit: Characters of a result that are kept; 0 or less = no limit of its own.
        read: From JSON text to the model of the tool's arguments. Raises ArgumentsError.
        target: Gives the function or method to call, with what the container fills already filled.
    """

    spec: ToolSpec
    schema: ToolSchema
    limit: int
    read: Callable[[str], Any]
    target: Callable[[], Callable[..., Any]]

    @property
    def schema_text(self) -> str:
        """The schema as text, for counting."""
        return f"{self.schema.name} {self.schema.description} {self.schema.parameters}"


async def run_tool(tool: BoundTool, arguments: str, context: ToolContext) -> tuple[str, bool]:
    """The result as text, and whether the run succeeded. Never raises for a fault of the tool or the model.

    Cancellation passes through; a sync function runs in a worker thread.
    """
    try:
        model = tool.read(arguments)
    except ArgumentsError as error:
        return _error(tool, f"invalid arguments: {error}"), False
    keywords = _keywords(tool.spec, model)
    if tool.spec.context is not None:
        keywords[tool.spec.context] = context
    result: Any = None
    import anyio  # needed where a tool runs, and slow to load

    try:
        with anyio.move_on_after(tool.spec.timeout) as scope:
            result = await _call(tool.target(), keywords)
        text = as_text(result)
    except asyncio.CancelledError:
        if cancelled_from_outside():
            raise
        return _error(tool, "it cancelled itself"), False  # something that the tool waited for was cancelled
    except (Exception, SystemExit) as error:  # whatever a tool raises is told to the model, never to the caller
        return _error(tool, told(error)), False
    if scope.cancelled_caught:
        return _error(tool, f"no result within {tool.spec.timeout:g} s"), False
    return capped(text, tool.limit), True


def read_arguments(tool: BoundTool, arguments: str) -> Any:
    """Arguments as a rule about them gets them: the model of a class tool, a dict for a function.

    Raises:
        ArgumentsError: They do not fit the tool.
    """
    model = tool.read(arguments)
    return model if tool.spec.model is not None else _keywords(tool.spec, model)


def as_text(result: Any) -> str:
    """A tool's result as the model reads it: text as it is, all else as JSON. Never empty: providers refuse that."""
    if isinstance(result, str):
        return result or "(empty)"
    if result is None:
        return "done"
    from pydantic_core import PydanticSerializationError, to_json

    if is_model(result):
        result = result.model_dump()
    try:
        return to_json(result, fallback=str).decode()
    except PydanticSerializationError:  # lone surrogates have no UTF-8; as escapes they are kept
        return json.dumps(result, default=str)


async def _call(function: Callable[..., Any], keywords: dict[str, Any]) -> Any:
    if inspect.iscoroutinefunction(_plain(function)):
        return await function(**keywords)
    from anyio import to_thread

    result = await to_thread.run_sync(functools.partial(function, **keywords), abandon_on_cancel=True)
    return await result if inspect.isawaitable(result) else result


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _keywords(spec: ToolSpec, model: Any) -> dict[str, Any]:
    if spec.model is not None:
        return {spec.parameters[0].name: model}
    return {parameter.name: getattr(model, field_name(parameter.name)) for parameter in spec.parameters}


def field_name(parameter: str) -> str:
    """A field name that cannot meet a method or setting of BaseModel; the wire name stays the parameter's."""
    return f"p_{parameter}"


def _error(tool: BoundTool, text: str) -> str:
    return capped(f"Error: tool {tool.spec.name} failed: {text}", tool.limit)
