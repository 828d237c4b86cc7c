"""Where a Tern enters a workflow and where it leaves: typed starts and finishes."""

from __future__ import annotations

import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from agboss.components.border import is_model_class
from agboss.components.metadata import ComponentSpec, attach_component, docstring
from agboss.components.naming import check_name, describe
from agboss.errors import DeclarationError
from agboss_memory.wording import quoted

if TYPE_CHECKING:
    from pydantic import BaseModel

InT = TypeVar("InT")
OutT = TypeVar("OutT")
C = TypeVar("C", bound=type[Any])


class Start(Generic[InT]):
    """Base of a workflow's entry. Subclass it as ``class Ask(Start[Question])`` and decorate with ``@workflow_start``."""


class Finish(Generic[OutT]):
    """Base of a workflow's exit. Subclass it as ``class Done(Finish[Report])`` and decorate with ``@workflow_finish``."""


class StartSpec(ComponentSpec, kw_only=True):
    """An entry: ``input`` is the pydantic model that callers pass, or None for text."""

    input: type[BaseModel] | None = None


class FinishSpec(ComponentSpec, kw_only=True):
    """An exit: ``output`` is the pydantic model of ``RunResult.output``, or None for text."""

    output: type[BaseModel] | None = None


def workflow_start(
    *, input: type[BaseModel] | None = None, name: str | None = None, description: str | None = None
) -> Callable[[C], C]:
    """Declare an entry with a typed input.

    Args:
        input: Pydantic model of the input; None = the type argument of ``Start[...]``, else text.
        name: Default: the class name in kebab case.
        description: Default: the docstring.
    """

    def decorate(cls: C) -> C:
        model = _model("workflow_start", cls, input, Start)
        text = docstring(cls) if description is None else description
        attach_component(
            cls, StartSpec(kind="start", name=check_name("workflow_start", cls, name), description=text, input=model)
        )
        return cls

    return decorate


def workflow_finish(
    *, output: type[BaseModel] | None = None, name: str | None = None, description: str | None = None
) -> Callable[[C], C]:
    """Declare an exit with a typed output.

    Args:
        output: Pydantic model of the output; None = the type argument of ``Finish[...]``, else text.
        name: Default: the class name in kebab case.
        description: Default: the docstring.
    """

    def decorate(cls: C) -> C:
        model = _model("workflow_finish", cls, output, Finish)
        text = docstring(cls) if description is None else description
        attach_component(
            cls,
            FinishSpec(kind="finish", name=check_name("workflow_finish", cls, name), description=text, output=model),
        )
        return cls

    return decorate


def _model(kind: str, cls: type[Any], given: type[BaseModel] | None, base: type[Any]) -> type[BaseModel] | None:
    argument = next(
        (
            typing.get_args(item)[0]
            for item in getattr(cls, "__orig_bases__", ())
            if typing.get_origin(item) is base and typing.get_args(item)
        ),
        None,
    )
    model: Any = argument if given is None and argument is not str else given
    if model is None or isinstance(model, TypeVar):
        return None
    if not is_model_class(model):
        raise DeclarationError(
            "declaration.bad-model",
            f"@{kind} {describe(cls)}: {quoted(cast('object', model))} is no pydantic model",
            "use a class that derives from pydantic.BaseModel",
        )
    return model


@workflow_start(name="task-start")
class TaskStart(Start[str]):
    """Takes the task as text."""


@workflow_finish(name="answer-finish")
class AnswerFinish(Finish[str]):
    """Gives the last answer as text."""
