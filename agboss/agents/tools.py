"""Tools as an agent runs them: schema, arguments, time-out, and a result that is always text."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import BaseModel, Field, TypeAdapter, ValidationError, create_model
from pydantic_core import PydanticSerializationError, to_json

from agboss.components.agent import ToolUse
from agboss.components.tool import ToolContext, ToolParameter, ToolSpec, tool_spec
from agboss.models.chat import ToolSchema
from agboss.units import cancelled_from_outside
from agboss_memory.contract import ConversationLog
from agboss_memory.records import Record, replace
from agboss_memory.tool_results import capped
from agboss_memory.tool_results import fetch_tool_result as stored_result
from agboss_memory.wording import told

_ARGS_SECTION = r"(?m)^\s*Args:\s*$"
_ARG_LINE = r"^\s+(\w+)(?:\s*\([^)]*\))?:\s*(.+)$"


class BoundTool(Record, kw_only=True):
    """A tool that can run.

    Attributes:
        spec: The declaration.
        schema: What the model sees.
        limit: Characters of a result that are kept; 0 or less = no limit of its own.
        arguments: Validates the model's arguments.
        target: Gives the function or method to call, with what the container fills already filled.
    """

    spec: ToolSpec
    schema: ToolSchema
    limit: int
    arguments: TypeAdapter[Any]
    target: Callable[[], Callable[..., Any]]

    @property
    def schema_text(self) -> str:
        """The schema as text, for counting."""
        return f"{self.schema.name} {self.schema.description} {self.schema.parameters}"


def bind_tool(use: ToolUse, target: Callable[[], Callable[..., Any]]) -> BoundTool:
    """A tool of an agent; ``target`` gives what is called, anew for each call."""
    spec = use.spec
    model = spec.model if spec.model is not None else _arguments_model(spec)
    parameters = model.model_json_schema()
    parameters.pop("title", None)
    own = use.max_result_chars if use.max_result_chars > 0 else spec.max_result_chars
    return BoundTool(
        spec=spec,
        schema=ToolSchema(name=spec.name, description=_summary(spec.description), parameters=parameters),
        limit=own,
        arguments=TypeAdapter(model),
        target=target,
    )


def _fetcher(log: ConversationLog | None) -> Callable[[str], Awaitable[str]]:
    async def fetch_tool_result(id: str) -> str:
        """The full text of an earlier tool result that is shown shortened.

        Args:
            id: The message id that stands in the shortened result, such as m-7.
        """
        return "Error: there is no conversation to read from." if log is None else await stored_result(log, id)

    return fetch_tool_result


@functools.cache
def _fetching() -> BoundTool:
    """The tool over no conversation: name and schema are the same over each, and made once."""
    read = _fetcher(None)
    return bind_tool(ToolUse(spec=tool_spec(read, {})), lambda: read)


def fetch_tool(log: ConversationLog) -> BoundTool:
    """``fetch_tool_result`` over one conversation."""
    read = _fetcher(log)
    return replace(_fetching(), target=lambda: read)


async def run_tool(tool: BoundTool, arguments: str, context: ToolContext) -> tuple[str, bool]:
    """The result as text, and whether the run succeeded. Never raises for a fault of the tool or the model.

    Cancellation passes through; a sync function runs in a worker thread.
    """
    try:
        model = tool.arguments.validate_json(arguments or "{}", strict=False)
    except ValidationError as error:
        return _error(tool, f"invalid arguments: {_validation_text(error)}"), False
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
        ValidationError: They do not fit the tool.
    """
    model = tool.arguments.validate_json(arguments or "{}", strict=False)
    return model if tool.spec.model is not None else _keywords(tool.spec, model)


def as_text(result: Any) -> str:
    """A tool's result as the model reads it: text as it is, all else as JSON. Never empty: providers refuse that."""
    if isinstance(result, str):
        return result or "(empty)"
    if result is None:
        return "done"
    if isinstance(result, BaseModel):
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
    return {parameter.name: getattr(model, _field_name(parameter.name)) for parameter in spec.parameters}


def _field_name(parameter: str) -> str:
    """A field name that cannot meet a method or setting of BaseModel; the wire name stays the parameter's."""
    return f"p_{parameter}"


def _arguments_model(spec: ToolSpec) -> type[BaseModel]:
    described = _described_arguments(spec.description)
    fields: dict[str, Any] = {
        _field_name(parameter.name): (parameter.annotation, _field(parameter, described.get(parameter.name)))
        for parameter in spec.parameters
    }
    return create_model(spec.name, __config__={"extra": "forbid", "arbitrary_types_allowed": False}, **fields)


def _field(parameter: ToolParameter, description: str | None) -> Any:
    default = ... if parameter.default is inspect.Parameter.empty else parameter.default
    if description is None:  # saying None would hide the description of an Annotated field
        return Field(default, alias=parameter.name)
    return Field(default, alias=parameter.name, description=description)


def _summary(docstring: str) -> str:
    """A docstring without its ``Args:`` section and what follows."""
    found = re.search(_ARGS_SECTION, docstring)
    return (docstring[: found.start()] if found else docstring).strip()


def _described_arguments(docstring: str) -> dict[str, str]:
    found = re.search(_ARGS_SECTION, docstring)
    lines = docstring[found.end() :].splitlines() if found else []
    matches = (re.match(_ARG_LINE, line) for line in lines)
    return {match.group(1): match.group(2).strip() for match in matches if match}


def _validation_text(error: ValidationError) -> str:
    return "; ".join(
        ".".join(str(part) for part in item["loc"]) + ": " + item["msg"] for item in error.errors(include_url=False)
    )


def _error(tool: BoundTool, text: str) -> str:
    return capped(f"Error: tool {tool.spec.name} failed: {text}", tool.limit)
