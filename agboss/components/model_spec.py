"""Which model, and how it is called. Loads no pydantic: most programs name a model and nothing else about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import agboss.components as parts  # settings are loaded where somebody sets them
from agboss_memory.nearest import close_names

if TYPE_CHECKING:
    from agboss.components.settings import Price

Thinking: TypeAlias = Literal["none", "minimal", "low", "medium", "high"]
FILE_KINDS = ("image", "document", "audio", "video")
IN_PROCESS = ("embedded", "local")
"""Providers whose models run in this process; they take no files."""

PROVIDERS = ("openai", "anthropic", "google", "openrouter", "ollama", "openai-compatible", "embedded", "local")

BLOCK_VARIABLE = "AGBOSS_BLOCK_MODELS"
"""While this environment variable is ``1``, no model and no decision server is reached over the network."""

_NOT_GIVEN: Any = object()
_DEFAULTS: Mapping[str, Any] = {
    "thinking": None,
    "temperature": None,
    "max_tokens": None,
    "context_window": None,
    "accepts": (),
    "price": None,
    "base_url": None,
}


@dataclass(frozen=True, slots=True, init=False)
class ModelSpec:
    """Which model, and how it is called.

    Args:
        model: ``provider:model``, or ``vendor/model`` for OpenRouter.
        thinking: Reasoning effort; None = the provider's default.
        temperature: Sampling temperature; None = ``defaults.models``, then the provider's default.
        max_tokens: Longest answer in tokens; None = the provider's default.
        context_window: Window in tokens; None = the model library's profile, else unknown.
        accepts: Files that the model takes: kinds (``image``, ``document``, ``audio``, ``video``) or media types such
            as ``image/tiff``; empty = the profile that the model library has of OpenAI, Anthropic and Google models,
            none for others.
        price: ``Price``, ``"free"``, or None = the provider's own figure, then the price table.
        base_url: Address of an OpenAI-compatible server (``openai-compatible:`` and ``ollama:`` only).

    Raises:
        pydantic.ValidationError: A value is not acceptable, or a name is unknown.
    """

    model: str
    thinking: Thinking | None
    temperature: float | None
    max_tokens: int | None
    context_window: int | None
    accepts: tuple[str, ...]
    price: Price | Literal["free"] | None
    base_url: str | None

    if TYPE_CHECKING:  # what is accepted is wider than what is kept

        def __init__(
            self,
            model: str,
            *,
            thinking: Thinking | None = None,
            temperature: float | None = None,
            max_tokens: int | None = None,
            context_window: int | None = None,
            accepts: Collection[str] = (),
            price: Price | Mapping[str, Any] | Literal["free"] | None = None,
            base_url: str | None = None,
        ) -> None: ...

    else:

        def __init__(self, model=_NOT_GIVEN, **settings):
            given = settings if model is _NOT_GIVEN else {"model": model, **settings}
            if settings or type(model) is not str:
                given = vars(parts.ModelFields(**given))
            self._keep(given)

    def _keep(self, values: Mapping[str, Any]) -> None:
        for name, value in {**_DEFAULTS, **values}.items():
            object.__setattr__(self, name, value)

    def with_values(self, **values: Any) -> ModelSpec:
        """The same model with other values, which are known to be good."""
        made = object.__new__(ModelSpec)
        made._keep({name: getattr(self, name) for name in self.__dataclass_fields__} | values)
        return made

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Callable[[Any], Any]) -> Any:
        """For pydantic: an instance, or the fields of one."""
        from pydantic_core import core_schema

        def read(value: Any, check: Callable[[Any], parts.ModelFields]) -> ModelSpec:
            if isinstance(value, cls):
                return value
            made = object.__new__(cls)
            made._keep(vars(check(value)))
            return made

        def write(spec: ModelSpec) -> dict[str, Any]:
            return {name: getattr(spec, name) for name in cls.__dataclass_fields__}

        written = core_schema.plain_serializer_function_ser_schema(write)
        return core_schema.no_info_wrap_validator_function(read, handler(parts.ModelFields), serialization=written)

    @property
    def provider(self) -> str:
        """The provider's name: the part before the first colon, or ``openrouter`` for ``vendor/model``."""
        head, colon, _ = self.model.partition(":")
        return head if colon and "/" not in head else "openrouter"

    @property
    def name(self) -> str:
        """The model's name as its provider knows it."""
        head, colon, tail = self.model.partition(":")
        return tail if colon and "/" not in head else self.model


def model_id_problem(spec: ModelSpec, extra_providers: Collection[str] = ()) -> str:
    """What is wrong with a model's id or address, or an empty string. Asked at assembly."""
    head, colon, tail = spec.model.partition(":")
    right = "write 'provider:model' (for example 'openai:gpt-5-mini') or 'vendor/model' for OpenRouter"
    known = (*PROVIDERS, *extra_providers)
    if "/" in head:
        problem = "" if re.fullmatch(r"~?[^\s/]+/\S+", spec.model) else "is malformed"
    elif not colon:
        problem = "names no provider"
    elif head not in known:
        near = close_names(head, known)
        right = f"did you mean {near[0]!r}?" if near else "known providers: " + ", ".join(known)
        problem = f"names the unknown provider {head!r}"
    elif not tail.strip() or tail != tail.strip():
        problem = "names no model"
    elif head == "openai-compatible" and spec.base_url is None:
        problem, right = "has no address", "give ModelSpec(..., base_url=...), the address of its server"
    else:
        problem = ""
    return f"model id {spec.model!r} {problem}; {right}" if problem else ""
