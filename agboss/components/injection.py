"""Injection tokens and providers: what may stand in ``providers``."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, overload

from agboss.components.keys import Dependency, InjectableSpec, InjectionToken, Key, Scope, key_name
from agboss.components.metadata import attach_injectable, caller_locals, hints_of, listed, metadata_of
from agboss.components.naming import describe
from agboss.errors import DeclarationError
from agboss_memory.records import Record
from agboss_memory.wording import quoted

T = TypeVar("T")
C = TypeVar("C", bound=type[Any])


class Provider(Record, kw_only=True):
    """One entry of ``providers``.

    Attributes:
        key: What it provides.
        kind: ``value``, ``factory`` or ``class``.
        target: The value, the factory or the class.
        dependencies: What the factory or class needs.
        scope: ``app``: one for the App; ``tern``: a new one for each Tern.
    """

    key: Key
    kind: Literal["value", "factory", "class"]
    target: Any
    dependencies: tuple[Dependency, ...] = ()
    scope: Scope = "app"


ProviderLike: TypeAlias = "Provider | type[Any]"


def provide(key: InjectionToken[T] | type[T], value: T) -> Provider:
    """A ready value under ``key``. Raises DeclarationError for a class where an object of it is meant."""
    _check_key(key)
    made: object = value
    if isinstance(key, type) and isinstance(made, type) and not _takes_classes(key):
        raise DeclarationError(
            "declaration.bad-provider",
            f"provide({key.__name__}): {quoted(made)} is a class",
            f"call it, or use provide_class({key.__name__}, {made.__name__})",
        )
    return Provider(key=key, kind="value", target=value)


def provide_factory(
    key: InjectionToken[T] | type[T],
    factory: Callable[..., Any],
    *,
    deps: Sequence[Key] | None = None,
    scope: Scope = "app",
) -> Provider:
    """What ``factory`` makes, under ``key``.

    The factory may be sync, async, or return an async context manager: that one is entered with the App (or the
    Tern) and left in reverse order. Its parameters are injected by annotation, or in the order of ``deps``.
    """
    _check_key(key)
    _check_scope(scope)
    if not callable(factory):
        text = f"provide_factory({key_name(key)}): {quoted(factory)} cannot be called"
        raise DeclarationError("declaration.bad-provider", text, "pass a function or class, or use provide(KEY, value)")
    found = dependencies_of(factory, deps, caller_locals())
    return Provider(key=key, kind="factory", target=factory, dependencies=found, scope=scope)


@overload
def provide_class(key: type[T], cls: None = None, *, scope: Scope | None = None) -> Provider: ...
@overload
def provide_class(key: InjectionToken[T] | type[T], cls: type[T], *, scope: Scope | None = None) -> Provider: ...
def provide_class(key: Any, cls: Any = None, *, scope: Scope | None = None) -> Provider:
    """An instance of ``cls`` (or of ``key`` itself), built by the container."""
    _check_key(key)
    target = key if cls is None else cls
    _check_scope(scope or "app")
    if not isinstance(target, type):
        text = f"provide_class({key_name(key)}): {quoted(target)} is no class"
        raise DeclarationError("declaration.bad-provider", text, "pass a class, or use provide(KEY, value)")
    spec = injectable_spec(target, caller_locals())
    return Provider(key=key, kind="class", target=target, dependencies=spec.dependencies, scope=scope or spec.scope)


@overload
def injectable(target: C, /) -> C: ...
@overload
def injectable(*, deps: Sequence[Key] | None = None, scope: Scope = "app") -> Callable[[C], C]: ...
def injectable(target: Any = None, /, *, deps: Sequence[Key] | None = None, scope: Scope = "app") -> Any:
    """Declare that the container can build a class.

    Args:
        target: The class, when used without parentheses.
        deps: Keys of the constructor's parameters in order; None = read from their annotations.
        scope: ``app`` = one instance for the App (default), ``tern`` = a new one for each Tern.
    """
    _check_scope(scope)
    names = caller_locals()

    def decorate(cls: C) -> C:
        found = dependencies_of(cls, deps, names)
        attach_injectable(cls, InjectableSpec(dependencies=found, scope=scope))
        return cls

    return decorate if target is None else decorate(target)


def injectable_spec(cls: Any, local_names: Mapping[str, Any]) -> InjectableSpec:
    """The class's own record, else one read from its constructor."""
    own = metadata_of(cls).injectable
    return own if own is not None else InjectableSpec(dependencies=dependencies_of(cls, None, local_names))


def buildable(cls: Any, declared: InjectableSpec) -> InjectableSpec:
    """The class's own record if it has one by now (decorators stand in any order), else what was read at declaration."""
    return metadata_of(cls).injectable or declared


def read_injectable(cls: Any, local_names: Mapping[str, Any]) -> InjectableSpec:
    """Like ``injectable_spec``, but a constructor that cannot be filled becomes a problem to report at assembly."""
    try:
        return injectable_spec(cls, local_names)
    except DeclarationError as error:
        return InjectableSpec(dependencies=(), problem=error)


def dependencies_of(
    target: Callable[..., Any], deps: Sequence[Key] | None, local_names: Mapping[str, Any]
) -> tuple[Dependency, ...]:
    """What the parameters of a class's constructor or of a function ask for."""
    function: Any = target
    if isinstance(target, type):
        function = typing.cast("Any", target).__init__
        if function is object.__init__:
            return ()
    parameters = [
        parameter
        for parameter in inspect.signature(target).parameters.values()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if deps is not None:
        return _positional(target, parameters, deps)
    hints = hints_of(function, local_names) if parameters else {}
    found = (_from_annotation(target, parameter, hints.get(parameter.name)) for parameter in parameters)
    return tuple(item for item in found if item is not None)


def _positional(target: object, parameters: list[inspect.Parameter], deps: Sequence[Key]) -> tuple[Dependency, ...]:
    deps = listed(describe(target), "deps", deps)
    required = sum(parameter.default is inspect.Parameter.empty for parameter in parameters)
    if not required <= len(deps) <= len(parameters):
        raise DeclarationError(
            "declaration.deps",
            f"{describe(target)} takes {len(parameters)} parameters, deps names {len(deps)}",
            "name one key per constructor parameter, in order",
        )
    for key in deps:
        _check_key(key)
    return tuple(
        Dependency(parameter=parameter.name, key=key) for parameter, key in zip(parameters, deps, strict=False)
    )


def _from_annotation(target: object, parameter: inspect.Parameter, hint: Any) -> Dependency | None:
    optional = parameter.default is not inspect.Parameter.empty
    key = key_in(hint)
    if key is None:
        if optional:
            return None
        raise DeclarationError(
            "declaration.not-injectable",
            f"{describe(target)}: the container cannot fill the parameter {parameter.name!r}"
            + ("" if hint is None else f" of type {quoted(hint)}"),
            "annotate it with a class or Annotated[T, TOKEN], give it a default, or pass deps=[...]",
        )
    return Dependency(parameter=parameter.name, key=key, optional=optional)


def key_in(hint: Any) -> Key | None:
    """The key that an annotation names: a token in ``Annotated``, else a class that is no plain value type."""
    if typing.get_origin(hint) is Annotated:
        for item in hint.__metadata__:
            if isinstance(item, InjectionToken):
                return typing.cast("InjectionToken[Any]", item)
        hint = typing.get_args(hint)[0]
    plain = (str, int, float, bool, bytes, list, dict, tuple, set, frozenset, object, type(None))
    return typing.cast("type[Any]", hint) if isinstance(hint, type) and hint not in plain else None


def _takes_classes(key: type[Any]) -> bool:
    """Whether a class may be a value of the key: of a metaclass, of ``object``, and of a protocol it may."""
    return key is object or issubclass(key, type) or bool(getattr(key, "_is_protocol", False))


def _check_scope(scope: object) -> None:
    if scope not in ("app", "tern"):
        raise DeclarationError("declaration.invalid", f"scope={quoted(scope)}", "use 'app' or 'tern'")


def _check_key(key: object) -> None:
    if not isinstance(key, InjectionToken | type):
        raise DeclarationError(
            "declaration.bad-key",
            f"{quoted(key)} is no injection key",
            "use a class or InjectionToken[T]('NAME')",
        )
