"""Actions: nodes of deterministic code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from agboss.components.injection import read_injectable
from agboss.components.keys import InjectableSpec
from agboss.components.metadata import ComponentSpec, attach_component, caller_locals, docstring
from agboss.components.naming import component_name, describe
from agboss.components.tool import ToolContext
from agboss.errors import DeclarationError
from agboss_memory.messages import Tern

if TYPE_CHECKING:
    from pydantic import BaseModel

C = TypeVar("C", bound=type[Any])


class ActionContext(ToolContext, kw_only=True):
    """What an action may know.

    Attributes:
        task: The Tern's task as text.
        input: What the node before gave: a model instance or text; at the first node the start's input.
        answers: Name and answer of the agents and actions that ran before in this Tern, in order.
        history: The last ``defaults.history.limit`` Terns, oldest first.
    """

    task: str = ""
    input: Any = None
    answers: tuple[tuple[str, str], ...] = ()
    history: tuple[Tern, ...] = ()


class ActionSpec(ComponentSpec, kw_only=True):
    """An action: ``input`` and ``output`` are pydantic models, or None for text."""

    target: type[Any]
    injectable: InjectableSpec
    input: type[BaseModel] | None = None
    output: type[BaseModel] | None = None


@overload
def action(target: C, /) -> C: ...
@overload
def action(
    *,
    name: str | None = None,
    description: str | None = None,
    input: type[BaseModel] | None = None,
    output: type[BaseModel] | None = None,
) -> Callable[[C], C]: ...
def action(
    target: Any = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    input: type[BaseModel] | None = None,
    output: type[BaseModel] | None = None,
) -> Any:
    """Declare a node of deterministic code: a class with ``async def run(self, ctx: ActionContext)``.

    Args:
        target: The class, when used without parentheses.
        name: Default: the class name in kebab case.
        description: Default: the docstring.
        input: Pydantic model of ``ctx.input``; None = whatever the node before gave.
        output: Pydantic model of what ``run`` returns; None = text.
    """
    names = caller_locals()

    def decorate(cls: C) -> C:
        if not callable(getattr(cls, "run", None)):
            raise DeclarationError(
                "declaration.bad-action",
                f"@action {describe(cls)} has no run() method",
                "write 'async def run(self, ctx: ActionContext)'",
            )
        text = docstring(cls) if description is None else description
        attach_component(
            cls,
            ActionSpec(
                kind="action",
                name=component_name("action", cls, name),
                description=text,
                target=cls,
                injectable=read_injectable(cls, names),
                input=input,
                output=output,
            ),
        )
        return cls

    return decorate if target is None else decorate(target)
