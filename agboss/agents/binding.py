"""From a declared tool to one that can run: what the model sees of it, and what checks its arguments."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import BaseModel, Field, TypeAdapter, ValidationError, create_model

from agboss.agents.tools import ArgumentsError, BoundTool, field_name
from agboss.components.agent import ToolUse
from agboss.components.tool import ToolParameter, ToolSpec, tool_spec
from agboss.models.chat import ToolSchema
from agboss_memory.contract import ConversationLog
from agboss_memory.records import replace
from agboss_memory.tool_results import fetch_tool_result as stored_result

_ARGS_SECTION = r"(?m)^\s*Args:\s*$"
_ARG_LINE = r"^\s+(\w+)(?:\s*\([^)]*\))?:\s*(.+)$"


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
        read=_reader(TypeAdapter(model)),
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


def _reader(arguments: TypeAdapter[Any]) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return arguments.validate_json(text or "{}", strict=False)
        except ValidationError as error:
            raise ArgumentsError((item["loc"], item["msg"]) for item in error.errors(include_url=False)) from error

    return read


def _arguments_model(spec: ToolSpec) -> type[BaseModel]:
    described = _described_arguments(spec.description)
    fields: dict[str, Any] = {
        field_name(parameter.name): (parameter.annotation, _field(parameter, described.get(parameter.name)))
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
