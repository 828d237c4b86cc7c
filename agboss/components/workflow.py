"""Workflows: a flow of components, and defaults for all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import agboss.components as parts  # settings are loaded where somebody sets them
from agboss.components.inherited import Inherited, inherited
from agboss.components.injection import Provider, ProviderLike, provide_class
from agboss.components.metadata import ComponentSpec, attach_component, docstring, listed, settings_error, wrong_kind
from agboss.components.naming import check_name, describe
from agboss.errors import DeclarationError
from agboss_memory.wording import quoted

if TYPE_CHECKING:
    from agboss.components.settings import Compaction, Defaults, Limits, WorkflowSettings
    from agboss.flow.edges import Edge

C = TypeVar("C", bound=type[Any])


class WorkflowDefinition:
    """Optional base of a workflow class; gives editors the signature of ``settings``."""

    def settings(self) -> WorkflowSettings:
        """Settings computed in code; what is set here overrides the decorator."""
        return parts.WorkflowSettings()


class WorkflowSpec(ComponentSpec, kw_only=True):
    """A workflow as declared. ``flow`` holds edges made by ``chain`` and ``from_``; ``limits`` None = no bound."""

    target: type[Any]
    version: str
    flow: tuple[Any, ...]
    defaults: Inherited = Inherited()
    compaction: Compaction | None = None
    limits: Limits | None = None
    providers: tuple[Provider, ...] = ()
    prompt_variables: Mapping[str, str]


def workflow(
    *,
    name: str | None = None,
    version: str = "0.0.0",
    flow: Sequence[Edge] | Edge,
    description: str | None = None,
    defaults: Defaults | Mapping[str, Any] | None = None,
    compaction: Compaction | Mapping[str, Any] | None = None,
    limits: Limits | Mapping[str, Any] | None = None,
    providers: Sequence[ProviderLike] = (),
    prompt_variables: Mapping[str, str] | None = None,
) -> Callable[[C], C]:
    """Declare a workflow.

    Args:
        name: Lowercase letters, digits and dashes. Default: the class name in kebab case.
        version: Stored with every Tern. Default "0.0.0".
        flow: Edges made by ``chain(...)`` and ``from_(...)``, or a single one.
        description: Default: the docstring.
        defaults: Model settings, router and history for all components.
        compaction: When Terns are summarised; None = never.
        limits: Upper bounds of one Tern and of one day.
        providers: What the container provides to strategies, tools and actions.
        prompt_variables: Values of ``{name}`` placeholders in prompts.
    """

    def decorate(cls: C) -> C:
        label = f"@workflow {describe(cls)}"
        if not isinstance(version, str) or not version or re.search(r"\s", version):
            raise DeclarationError(
                "declaration.invalid", f"{label}: version={quoted(version)}", "use text such as '1.0.0'"
            )
        if prompt_variables is not None and not isinstance(prompt_variables, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            text = f"{label}: prompt_variables={quoted(prompt_variables)}"
            raise DeclarationError("declaration.invalid", text, "use a dict of texts")
        attach_component(
            cls,
            WorkflowSpec(
                kind="workflow",
                name=check_name("workflow", cls, name),
                description=docstring(cls) if description is None else description,
                target=cls,
                version=version,
                flow=_edges(flow),
                defaults=Inherited() if defaults is None else inherited(_settings(label, "Defaults", defaults)),
                compaction=None if compaction is None else _settings(label, "Compaction", compaction),
                limits=None if limits is None else _settings(label, "Limits", limits),
                providers=as_providers(label, providers),
                prompt_variables=dict(prompt_variables or {}),
            ),
        )
        return cls

    return decorate


def _edges(flow: Any) -> tuple[Any, ...]:
    """The edges as given; what is no collection stands alone. Whether they are edges is asked at assembly."""
    if isinstance(flow, Iterable) and not isinstance(flow, str):
        return tuple(cast("Iterable[Any]", flow))
    return (flow,)


def _settings(label: str, kind: str, value: Any) -> Any:
    """A settings model from itself or a dict. Raises DeclarationError."""
    from pydantic import ValidationError

    model: type[parts.Settings] = getattr(parts, kind)
    if isinstance(value, model):
        return value
    if not isinstance(value, Mapping):
        raise wrong_kind(f"{label}: {kind.lower()}", value, f"use {kind}(...), or a dict of its fields")
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise settings_error(label, error) from error


def as_providers(label: str, providers: Sequence[ProviderLike]) -> tuple[Provider, ...]:
    """Providers, bare classes among them standing for ``provide_class``. Raises DeclarationError."""
    found: list[Provider] = []
    for item in listed(label, "providers", providers):
        if isinstance(item, Provider):
            found.append(item)
        elif isinstance(item, type):
            found.append(provide_class(item))
        else:
            raise DeclarationError(
                "declaration.bad-provider",
                f"{label}: {quoted(item)} is no provider",
                "use provide(TOKEN, value), provide_factory(...), provide_class(...) or a class",
            )
    return tuple(found)
