"""Agents: a prompt, a model, tools, and what they remember."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, get_args, overload

import agboss_memory as memory  # memoryConfig is loaded when one is named
from agboss.components.injection import injectable_spec
from agboss.components.keys import InjectableSpec
from agboss.components.metadata import (
    ComponentSpec,
    attach_component,
    caller_locals,
    docstring,
    is_count,
    listed,
    settings_error,
    wrong_kind,
)
from agboss.components.model_spec import ModelSpec, Thinking
from agboss.components.naming import component_name, describe
from agboss.components.tool import ToolRef, ToolSpec, tool_spec
from agboss.errors import DeclarationError, InvalidInputError
from agboss_memory.contract import BaseMemoryStrategy
from agboss_memory.records import Record
from agboss_memory.tool_results import FETCH_TOOL_RESULT, fetch_tool_result
from agboss_memory.wording import quoted

if TYPE_CHECKING:
    from pydantic import BaseModel

    from agboss_memory.config import AnyMemoryConfig

C = TypeVar("C", bound=type[Any])


class PromptContext(Record, kw_only=True):
    """What a prompt function may know.

    Attributes:
        thread_id: The thread.
        owner: The thread's owner, None when it has none.
        tern: Number of the Tern.
        task: The task as text.
        now: Aware UTC.
        metadata: JSON text that the caller attached to the Tern, or None.
    """

    thread_id: str = ""
    owner: str | None = None
    tern: int = 0
    task: str = ""
    now: datetime | None = None
    metadata: str | None = None


Prompt: TypeAlias = "str | Callable[[PromptContext], str]"
ModelLike: TypeAlias = "ModelSpec | str | Mapping[str, Any]"
StrategyLike: TypeAlias = "type[BaseMemoryStrategy] | BaseMemoryStrategy"
MemoryConfigLike: TypeAlias = "AnyMemoryConfig | Mapping[str, Any] | str"


class ToolUse(Record, kw_only=True):
    """One tool of one agent: the tool and its cap for this agent (characters; 0 or less = the tool's own)."""

    spec: ToolSpec
    max_result_chars: int = 0


class StrategyUse(Record, kw_only=True):
    """The memory strategy that an agent names: a class that the container builds, or an instance."""

    name: str
    cls: type[BaseMemoryStrategy]
    instance: BaseMemoryStrategy | None = None
    injectable: InjectableSpec = InjectableSpec(dependencies=())


class MemoryUse(Record, kw_only=True):
    """The ``memory_config`` that an agent names: the configuration, or why it is none."""

    config: AnyMemoryConfig | None = None
    problem: InvalidInputError | None = None


class AgentSpec(ComponentSpec, kw_only=True):
    """An agent as declared; None means inherited from the workflow's defaults."""

    target: type[Any]
    prompt: Prompt = ""
    model: ModelSpec | None = None
    thinking: Thinking | None = None
    temperature: float | None = None
    tools: tuple[ToolUse, ...] = ()
    history_limit: int | None = None
    history_summaries: int | None = None
    strategy: StrategyUse | None = None
    memory: MemoryUse | None = None
    shares_thread: bool = False
    fetches: bool = False
    input: type[BaseModel] | None = None
    output: type[BaseModel] | None = None
    max_tool_calls: int = 8
    examples: tuple[str, ...] = ()


_COUNT = "use a whole number, 0 or more"


@overload
def agent(target: C, /) -> C: ...
@overload
def agent(
    *,
    name: str | None = None,
    description: str | None = None,
    prompt: Prompt | None = None,
    model: ModelLike | None = None,
    thinking: Thinking | None = None,
    temperature: float | None = None,
    tools: Sequence[Any] = (),
    history_limit: int | None = None,
    history_summaries: int | None = None,
    memory_strategy: StrategyLike | None = None,
    memory_config: MemoryConfigLike | None = None,
    shares_thread: bool = False,
    input: type[BaseModel] | None = None,
    output: type[BaseModel] | None = None,
    max_tool_calls: int = 8,
    examples: Sequence[str] = (),
) -> Callable[[C], C]: ...
def agent(
    target: Any = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    prompt: Prompt | None = None,
    model: ModelLike | None = None,
    thinking: Thinking | None = None,
    temperature: float | None = None,
    tools: Sequence[Any] = (),
    history_limit: int | None = None,
    history_summaries: int | None = None,
    memory_strategy: StrategyLike | None = None,
    memory_config: MemoryConfigLike | None = None,
    shares_thread: bool = False,
    input: type[BaseModel] | None = None,
    output: type[BaseModel] | None = None,
    max_tool_calls: int = 8,
    examples: Sequence[str] = (),
) -> Any:
    """Declare an agent.

    Args:
        target: The class, when used without parentheses.
        name: Default: the class name in kebab case.
        description: What it is for, shown to routers. Default: the docstring.
        prompt: The system prompt, as text or as a function of a ``PromptContext``. Default: the docstring.
        model: ``ModelSpec``, id or dict. Default: ``defaults.models.model``.
        thinking: Overrides the model's reasoning effort.
        temperature: Overrides the model's temperature.
        tools: Tool classes, functions or ``ToolRef``; ``"fetch_tool_result"`` is allowed, and added by itself when needed.
        history_limit: Last Terns shown raw, in turns; 0 = none. Default: ``defaults.history.limit``.
        history_summaries: Latest summaries shown; 0 = none. Default: ``defaults.history.summaries``.
        memory_strategy: A ``BaseMemoryStrategy`` class or instance. Default: turn memory.
        memory_config: Window memory instead: a configuration as model, dict or JSON text.
        shares_thread: With ``memory_config``: Terns in which only other agents spoke are part of the conversation, as
            question and answer.
        input: Pydantic model of what the node before gives.
        output: Pydantic model of the answer.
        max_tool_calls: Tool calls within one Tern, default 8; past it one last call without tools is made.
        examples: Tasks that the agent should get, shown to routers.
    """
    names = caller_locals()

    def decorate(cls: C) -> C:
        own_doc = docstring(cls)
        label = f"@agent {describe(cls)}"
        _check_counts(label, history_limit, history_summaries, max_tool_calls)
        _check_temperature(label, temperature)
        _check_thinking(label, thinking)
        if not isinstance(shares_thread, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            text = f"{label}: shares_thread={quoted(shares_thread)}"
            raise DeclarationError("declaration.invalid", text, "use True or False")
        if prompt is not None and not isinstance(prompt, str) and not callable(prompt):  # pyright: ignore[reportUnnecessaryIsInstance]
            text = f"{label}: prompt={quoted(prompt)}"
            raise DeclarationError("declaration.invalid", text, "use text, or a function of a PromptContext")
        uses = listed(label, "tools", tools)
        attach_component(
            cls,
            AgentSpec(
                kind="agent",
                name=component_name("agent", cls, name),
                description=own_doc if description is None else description,
                target=cls,
                prompt=own_doc if prompt is None else prompt,
                model=_model(label, model),
                thinking=thinking,
                temperature=temperature,
                tools=tuple(_tool_use(item, names) for item in uses if not _is_fetch(item)),
                history_limit=history_limit,
                history_summaries=history_summaries,
                strategy=None if memory_strategy is None else strategy_use(label, memory_strategy, names),
                memory=None if memory_config is None else _memory_use(memory_config),
                shares_thread=shares_thread,
                fetches=any(map(_is_fetch, uses)),
                input=input,
                output=output,
                max_tool_calls=max_tool_calls,
                examples=_texts(label, examples),
            ),
        )
        return cls

    return decorate if target is None else decorate(target)


def _check_counts(label: str, limit: int | None, summaries: int | None, calls: int) -> None:
    counts = ("history_limit", limit), ("history_summaries", summaries), ("max_tool_calls", calls)
    for field_name, value in counts:
        inherited = value is None and field_name != "max_tool_calls"
        if not inherited and not is_count(value):
            raise DeclarationError("declaration.invalid", f"{label}: {field_name}={quoted(value)}", _COUNT)


def _check_temperature(label: str, value: Any) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (number and 0 <= value < math.inf):
        raise DeclarationError(
            "declaration.invalid", f"{label}: temperature={quoted(value)}", "use a number, 0 or more, such as 0.2"
        )


def _check_thinking(label: str, value: Any) -> None:
    if value is not None and value not in get_args(Thinking):
        hint = "use " + ", ".join(map(repr, get_args(Thinking)))
        raise DeclarationError("declaration.invalid", f"{label}: thinking={quoted(value)}", hint)


def _texts(label: str, given: Any) -> tuple[str, ...]:
    found = listed(label, "examples", given)
    for item in found:
        if not isinstance(item, str):
            text = f"{label}: examples holds {quoted(item)}"
            raise DeclarationError("declaration.invalid", text, "use tasks as text")
    return found


def _model(label: str, model: ModelLike | Mapping[str, Any] | None) -> ModelSpec | None:
    if model is None or isinstance(model, ModelSpec):
        return model
    if isinstance(model, str):
        return ModelSpec(model)  # ids are checked at assembly
    if not isinstance(model, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise wrong_kind(f"{label}: model", model, "use 'provider:model', a ModelSpec, or a dict of its fields")
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(ModelSpec).validate_python(model)
    except ValidationError as error:
        raise settings_error(label, error) from error


def _memory_use(config: MemoryConfigLike) -> MemoryUse:
    try:
        return MemoryUse(config=memory.parse_memory_config(config))
    except InvalidInputError as error:  # told with all other problems of the workflow
        return MemoryUse(problem=error)


def _is_fetch(item: Any) -> bool:
    return item == FETCH_TOOL_RESULT or item is fetch_tool_result


def _tool_use(item: Any, names: Mapping[str, Any]) -> ToolUse:
    if isinstance(item, ToolRef):
        return ToolUse(spec=tool_spec(item.target, names), max_result_chars=item.max_result_chars)
    return ToolUse(spec=tool_spec(item, names))


def strategy_use(label: str, strategy: StrategyLike, names: Mapping[str, Any]) -> StrategyUse:
    """What ``memory_strategy=`` names. Raises DeclarationError when it is no strategy."""
    if isinstance(strategy, BaseMemoryStrategy):
        return StrategyUse(name=type(strategy).__name__, cls=type(strategy), instance=strategy)
    if isinstance(strategy, type) and issubclass(strategy, BaseMemoryStrategy):
        if missing := ", ".join(sorted(getattr(strategy, "__abstractmethods__", ()))):
            text = f"{label}: memory_strategy={strategy.__name__} has no {missing}"
            raise DeclarationError("declaration.bad-strategy", text, f"write {missing} in the class")
        return StrategyUse(name=strategy.__name__, cls=strategy, injectable=injectable_spec(strategy, names))
    raise DeclarationError(
        "declaration.bad-strategy",
        f"{label}: memory_strategy={quoted(strategy)} is no memory strategy",
        "name a class that derives from BaseMemoryStrategy, or an instance of one",
    )
