"""What a decorator leaves on a class: one frozen record, in the class's own namespace, never inherited."""

from __future__ import annotations

import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from agboss.components.border import is_model_class
from agboss.components.keys import InjectableSpec
from agboss.components.naming import describe
from agboss.errors import DeclarationError
from agboss_memory.nearest import close_names
from agboss_memory.records import Record, replace
from agboss_memory.wording import quoted

if TYPE_CHECKING:
    from pydantic import ValidationError

ATTRIBUTE = "__agboss__"
Kind: TypeAlias = Literal["workflow", "agent", "router", "action", "tool", "start", "finish", "model_provider"]


class ComponentSpec(Record, kw_only=True):
    """What every component has: its kind, a name unique within the workflow, and a description."""

    kind: Kind
    name: str
    description: str = ""


class Metadata(Record, kw_only=True):
    """The one record on a decorated class or function."""

    component: ComponentSpec | None = None
    injectable: InjectableSpec | None = None


def metadata_of(target: object) -> Metadata:
    """The record on ``target`` itself; an empty one when it was not decorated, whatever its base classes are."""
    own: Mapping[str, Any] = getattr(target, "__dict__", {})
    found = own.get(ATTRIBUTE)
    return found if isinstance(found, Metadata) else Metadata()


def component_of(target: object) -> ComponentSpec | None:
    """The component record on ``target`` itself, None when it is no component."""
    return metadata_of(target).component


def attach_component(target: Any, spec: ComponentSpec) -> None:
    """Put a component record on ``target``. A second kind on the same target is an error."""
    label = f"@{spec.kind} {describe(target)}"
    if not isinstance(spec.description, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        text = f"{label}: description={quoted(spec.description)}"
        raise DeclarationError("declaration.invalid", text, "use text")
    for field in ("input", "output"):
        model: object = getattr(spec, field, None)
        if model is not None and not is_model_class(model):
            text = f"{label}: {field}={quoted(getattr(spec, field))} is no pydantic model"
            raise DeclarationError("declaration.bad-model", text, "use a class that derives from pydantic.BaseModel")
    present = metadata_of(target)
    if present.component is not None:
        raise DeclarationError(
            "declaration.two-kinds",
            f"{describe(target)} is already declared as {present.component.kind} {present.component.name!r}",
            f"remove @{present.component.kind} or @{spec.kind}",
        )
    try:
        setattr(target, ATTRIBUTE, replace(present, component=spec))
    except (AttributeError, TypeError) as error:
        text = f"{quoted(target)} cannot be declared as {spec.kind}"
        raise DeclarationError("declaration.bad-target", text, f"put @{spec.kind} on a class of your own") from error


def attach_injectable(target: Any, spec: InjectableSpec) -> None:
    """Put an injectable record on ``target``."""
    setattr(target, ATTRIBUTE, replace(metadata_of(target), injectable=spec))


def docstring(target: object) -> str:
    """The target's own docstring, dedented; empty when it has none of its own."""
    own: Mapping[str, Any] = getattr(target, "__dict__", {})
    text = own.get("__doc__") if isinstance(target, type) else getattr(target, "__doc__", None)
    return inspect.cleandoc(text) if isinstance(text, str) else ""


def caller_locals(depth: int = 2) -> Mapping[str, Any]:
    """Local names at the place of the decoration, so that annotations can name classes defined there."""
    frame = sys._getframe(depth)  # pyright: ignore[reportPrivateUsage]
    found: dict[str, Any] = {}
    current: types.FrameType | None = frame
    while current is not None and current.f_code.co_name != "<module>":
        for name, value in current.f_locals.items():
            found.setdefault(name, value)
        current = current.f_back
        if len(found) > 10_000:
            break
    return found


def hints_of(function: Callable[..., Any], local_names: Mapping[str, Any]) -> dict[str, Any]:
    """Resolved annotations, ``Annotated`` kept. Raises DeclarationError that names what cannot be resolved."""
    try:
        return typing.get_type_hints(function, localns=dict(local_names), include_extras=True)
    except NameError as error:
        raise DeclarationError(
            "declaration.unknown-annotation",
            f"{describe(function)} has an annotation that cannot be resolved: {error}",
            "import the name at run time (not under TYPE_CHECKING), or pass deps=[...]",
        ) from error


MOST = 10**15
"""The largest count that is taken: sums and products of some still fit a store's columns."""


def is_count(value: Any, *, least: int = 0) -> bool:
    """Whether a value is a whole number from ``least`` to ``MOST``; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= MOST


def is_seconds(value: Any, *, zero: bool = False) -> bool:
    """Whether a value is a number above 0, or 0 too, that a clock can be set to; True and False are none."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        seconds = float(value)
    except OverflowError:  # a whole number of more than 308 digits
        return False
    return seconds > 0 or (zero and seconds == 0)


def listed(label: str, name: str, given: Any) -> tuple[Any, ...]:
    """What an argument lists. Raises DeclarationError when it is no list: one text, one class, None."""
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping):
        return tuple(cast("Iterable[Any]", given))
    text = f"{label}: {name}={quoted(cast('object', given))} is no list"
    raise DeclarationError("declaration.invalid", text, f"write {name}=[...]")


def wrong_kind(owner: str, value: Any, remedy: str) -> DeclarationError:
    """An argument that is neither what is asked for nor its fields."""
    hint = f"call it: {value.__name__}(...)" if isinstance(value, type) else remedy
    return DeclarationError("declaration.invalid", f"{owner}={quoted(cast('object', value))}", hint)


def settings_error(owner: str, error: ValidationError) -> DeclarationError:
    """A pydantic error as one that names the component, the field, the value and what is wrong."""
    lines: list[str] = []
    hint = "correct the argument"
    for item in error.errors():
        if isinstance(item["input"], type):
            hint = f"call it: {item['input'].__name__}(...)"
        where = ".".join(str(part) for part in item["loc"])
        if item["type"] == "union_tag_invalid":
            lines.append(_unknown_kind(where, item.get("ctx", {})))
            continue
        text = item["msg"].removeprefix("Value error, ")
        lines.append(f"{where}: {text} (got {quoted(item['input'])})" if where else text)
    return DeclarationError("declaration.invalid", f"{owner}: " + "; ".join(lines), hint)


def _unknown_kind(where: str, context: Mapping[str, Any]) -> str:
    kind, known = str(context.get("tag")), re.findall(r"\w+", str(context.get("expected_tags")))
    near = close_names(kind, known)
    hint = f"did you mean {near[0]!r}?" if near else "known kinds: " + ", ".join(known)
    return f"{where}{'.' if where else ''}kind: {kind!r} is no kind; {hint}"
