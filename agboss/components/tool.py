"""Tools: functions or classes that a model may call, and what they get to know about the call."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar, overload

from agboss.components.border import is_model_class
from agboss.components.injection import read_injectable
from agboss.components.keys import Dependency, InjectableSpec, InjectionToken
from agboss.components.metadata import (
    ComponentSpec,
    attach_component,
    caller_locals,
    component_of,
    docstring,
    hints_of,
    is_seconds,
)
from agboss.components.naming import describe, kebab
from agboss.errors import DeclarationError, InvalidInputError
from agboss_memory.messages import MOST_USD
from agboss_memory.records import Record
from agboss_memory.wording import quoted, text_of

if TYPE_CHECKING:
    from pydantic import BaseModel

F = TypeVar("F", bound=Callable[..., Any])
_TOOL_NAME = r"[a-zA-Z0-9_-]{1,64}"
ReportCost = Callable[[Decimal, str], None]


class ToolContext(Record, kw_only=True):
    """What a tool may know about its call.

    Attributes:
        thread_id: The thread.
        owner: The thread's owner, None when it has none.
        tern: Number of the Tern.
        agent: Name of the agent that calls.
        call_id: The provider's id of the call; the same if the call is ever repeated.
        metadata: JSON text that the caller attached to the Tern, or None.
    """

    thread_id: str = ""
    owner: str | None = None
    tern: int = 0
    agent: str = ""
    call_id: str = ""
    metadata: str | None = None
    report: ReportCost | None = None

    def report_cost(self, usd: Decimal | float | str, what: str = "") -> None:
        """Book money that the tool spent. ``usd`` is in US dollars, ``what`` names the service.

        Raises:
            InvalidInputError: ``tool.bad-cost``: it is no number from 0 to ``MOST_USD``; nothing is booked.
        """
        try:
            amount = Decimal(text_of(usd))
        except ArithmeticError:
            amount = Decimal("nan")
        if not amount.is_finite() or not 0 <= amount <= MOST_USD:
            raise InvalidInputError(
                "tool.bad-cost", f"report_cost({quoted(usd)})", f"report US dollars from 0 to {MOST_USD}, as a number"
            )
        if self.report is not None:
            self.report(amount, what)


NeedsApproval: TypeAlias = bool | Callable[[Any, ToolContext], bool | Awaitable[bool]]
"""Whether a person has to approve a call: always, never, or a function of the arguments and the context."""


class ToolParameter(Record, kw_only=True):
    """One parameter that the model fills."""

    name: str
    annotation: Any
    default: Any = inspect.Parameter.empty


class ToolSpec(ComponentSpec, kw_only=True):
    """A tool as declared.

    Attributes:
        target: The function or class.
        timeout: Seconds a run may take.
        max_result_chars: Characters of a result that are kept; 0 or less = only the limit of every tool.
        needs_approval: Whether a person has to approve a call.
        parameters: What the model fills (function tools).
        model: Pydantic model of the arguments (class tools).
        context: Name of the parameter that takes the ``ToolContext``, or None.
        dependencies: What the container fills (function tools).
        injectable: How the container builds the class (class tools), None for functions.
    """

    target: Any
    timeout: float
    max_result_chars: int
    needs_approval: NeedsApproval = False
    parameters: tuple[ToolParameter, ...] = ()
    model: type[BaseModel] | None = None
    context: str | None = None
    dependencies: tuple[Dependency, ...] = ()
    injectable: InjectableSpec | None = None


class ToolRef(Record, kw_only=False):
    """A tool as one agent uses it.

    Args:
        target: The tool's class or function.
        max_result_chars: Characters of a result that are kept for this agent; 0 or less = the tool's own setting.
    """

    target: Any
    max_result_chars: int = 0


@overload
def tool(target: F, /) -> F: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float = 60.0,
    max_result_chars: int = 0,
    needs_approval: NeedsApproval = False,
) -> Callable[[F], F]: ...
def tool(
    target: Any = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float = 60.0,
    max_result_chars: int = 0,
    needs_approval: NeedsApproval = False,
) -> Any:
    """Declare a tool: a function, or a class with ``async def run(self, args: Model, ctx: ToolContext)``.

    Args:
        target: The function or class, when used without parentheses.
        name: Default: the function's name; a class name in snake case.
        description: Default: the docstring.
        timeout: Seconds a run may take. Default 60, longer than any interactive request should last.
        max_result_chars: Characters of a result that are kept; 0 or less = only the 100,000 of every tool.
        needs_approval: True, or ``(args, ctx) -> bool``, sync or async: before such a call the Tern is stored as
            ``paused``, until ``app.resume`` brings a decision. ``args`` is the model of a class tool, a dict of the
            arguments of a function; ``ctx`` the ToolContext. A function that raises counts as True. Default False.
    """
    names = caller_locals()

    def decorate(item: F) -> F:
        attach_component(item, tool_spec(item, names, name, description, timeout, max_result_chars, needs_approval))
        return item

    return decorate if target is None else decorate(target)


def tool_spec(
    target: Any,
    local_names: Mapping[str, Any],
    name: str | None = None,
    description: str | None = None,
    timeout: float = 60.0,
    max_result_chars: int = 0,
    needs_approval: NeedsApproval = False,
) -> ToolSpec:
    """The spec of a decorated or plain function or class. Raises DeclarationError."""
    present = component_of(target)
    if isinstance(present, ToolSpec):
        return present
    if not callable(target):
        raise DeclarationError(
            "declaration.bad-tool", f"{quoted(target)} is no tool", "pass a function, a class with run(), or a ToolRef"
        )
    label = describe(target)
    chosen = name or (kebab(label).replace("-", "_") if isinstance(target, type) else label)
    if not isinstance(chosen, str) or not re.fullmatch(_TOOL_NAME, chosen):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DeclarationError(
            "declaration.bad-name",
            f"@tool {label}: the name {quoted(chosen)} is not allowed",
            "use up to 64 letters, digits, dashes and underscores",
        )
    if not is_seconds(timeout):
        text = f"@tool {label}: timeout={quoted(timeout)}"
        raise DeclarationError("declaration.bad-timeout", text, "use a number of seconds above 0")
    if not isinstance(max_result_chars, int) or isinstance(max_result_chars, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        text = f"@tool {label}: max_result_chars={quoted(max_result_chars)}"
        raise DeclarationError("declaration.invalid", text, "use a whole number; 0 or less = no limit of its own")
    if not isinstance(needs_approval, bool) and not callable(needs_approval):
        raise DeclarationError(
            "declaration.bad-approval",
            f"@tool {label}: needs_approval={quoted(needs_approval)}",
            "use True, False or a function (args, ctx) -> bool",
        )
    text = docstring(target) if description is None else description
    fields = _class_tool(target, local_names) if isinstance(target, type) else _function_tool(target, local_names)
    return ToolSpec(
        kind="tool",
        name=chosen,
        description=text,
        target=target,
        timeout=timeout,
        max_result_chars=max_result_chars,
        needs_approval=needs_approval,
        **fields,
    )


def _function_tool(function: Callable[..., Any], local_names: Mapping[str, Any]) -> dict[str, Any]:
    hints = hints_of(function, local_names)
    filled: list[ToolParameter] = []
    context: str | None = None
    injected: list[Dependency] = []
    for parameter in inspect.signature(function).parameters.values():
        hint = hints.get(parameter.name, Any)
        token = _token_in(hint)
        if hint is ToolContext:
            context = parameter.name
        elif token is not None:
            optional = parameter.default is not inspect.Parameter.empty
            injected.append(Dependency(parameter=parameter.name, key=token, optional=optional))
        elif parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise DeclarationError(
                "declaration.bad-tool",
                f"tool {describe(function)}: a model cannot fill the parameter {str(parameter)!r}",
                "use named parameters only",
            )
        else:
            filled.append(ToolParameter(name=parameter.name, annotation=hint, default=parameter.default))
    return {"parameters": tuple(filled), "context": context, "dependencies": tuple(injected)}


def _token_in(hint: Any) -> InjectionToken[Any] | None:
    if typing.get_origin(hint) is not Annotated:
        return None
    found: list[Any] = [item for item in hint.__metadata__ if isinstance(item, InjectionToken)]
    return found[0] if found else None


def _class_tool(cls: type[Any], local_names: Mapping[str, Any]) -> dict[str, Any]:
    run: Any = getattr(cls, "run", None)
    if run is None:
        raise DeclarationError(
            "declaration.bad-tool",
            f"tool {describe(cls)} has no run() method",
            "write 'async def run(self, args: Model, ctx: ToolContext)'",
        )
    hints = hints_of(run, local_names)
    parameters = list(inspect.signature(run).parameters)[1:]
    models = [name for name in parameters if is_model_class(hints.get(name))]
    contexts = [name for name in parameters if hints.get(name) is ToolContext]
    if len(models) > 1 or len(parameters) != len(models) + len(contexts):
        raise DeclarationError(
            "declaration.bad-tool",
            f"tool {describe(cls)}: run() takes {parameters}",
            "write 'async def run(self, args: Model, ctx: ToolContext)' with Model a pydantic model",
        )
    return {
        "model": hints[models[0]] if models else None,
        "parameters": tuple(ToolParameter(name=name, annotation=hints[name]) for name in models),
        "context": contexts[0] if contexts else None,
        "injectable": read_injectable(cls, local_names),
    }
