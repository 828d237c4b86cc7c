"""Settings models: what a decorator's arguments are made of. All frozen; unknown keys are refused with the nearest name."""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from agboss.components.inherited import HISTORY_LIMIT
from agboss.components.model_spec import FILE_KINDS, ModelSpec, Thinking
from agboss_memory.nearest import close_names


class Settings(BaseModel):
    """Base of all settings models: frozen, keyword-only, strict about names."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, arbitrary_types_allowed=True)

    @classmethod
    def plain(cls) -> Self:
        """All defaults: what needs no validation builds no schema."""
        return cls.model_construct()

    @model_validator(mode="before")
    @classmethod
    def _name_unknown_keys(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            for key in cast("Mapping[object, object]", data):
                if key not in cls.model_fields:
                    near = close_names(str(key), cls.model_fields)
                    known = ", ".join(cls.model_fields)
                    hint = f"did you mean {near[0]!r}?" if near else f"known keys: {known}"
                    title = cls.model_config.get("title") or cls.__name__
                    raise ValueError(f"{title} has no key {key!r}; {hint}")
        return cast("object", data)


MOST_PRICE = 10**6


class Price(Settings):
    """Price of a model in US dollars per million tokens, at most a million."""

    input: Decimal = Field(ge=0, le=MOST_PRICE)
    output: Decimal = Field(ge=0, le=MOST_PRICE)
    cache_read: Decimal | None = Field(default=None, ge=0, le=MOST_PRICE)


class ModelFields(Settings):
    """What a ``ModelSpec`` may hold: checked here, so that a bare id needs no pydantic."""

    model_config = ConfigDict(title="ModelSpec")

    model: str
    thinking: Thinking | None = None
    temperature: float | None = Field(default=None, ge=0)
    max_tokens: int | None = Field(default=None, ge=1)
    context_window: int | None = Field(default=None, ge=1)
    accepts: tuple[str, ...] = ()
    price: Price | Literal["free"] | None = None
    base_url: str | None = None

    @field_validator("accepts")
    @classmethod
    def _known_kinds(cls, accepts: tuple[str, ...]) -> tuple[str, ...]:
        for kind in accepts:
            if kind not in FILE_KINDS and "/" not in kind:
                raise ValueError(f"{kind!r} is no kind of file; use {', '.join(FILE_KINDS)} or a media type")
        return accepts


def _as_spec(value: Any) -> Any:
    return ModelSpec(value) if isinstance(value, str) else value


SpecLike = Annotated[ModelSpec, BeforeValidator(_as_spec)]
"""A ``ModelSpec``, a dict of its fields, or a bare id."""


class History(Settings):
    """What routers and agents see of the past, unless they say otherwise.

    Args:
        limit: Last Terns shown raw, in turns; 0 = none. Default 10.
        summaries: Latest summaries shown; None = the workflow's ``compaction.keep``.
    """

    limit: int = Field(default=HISTORY_LIMIT, ge=0)
    summaries: int | None = Field(default=None, ge=0)


class ModelDefaults(Settings):
    """Model settings for every agent that does not set its own.

    Args:
        model: Model of agents that name none.
        temperature: Sampling temperature; None = the provider's default.
        max_tokens: Longest answer in tokens; None = the provider's default.
        thinking: Reasoning effort; None = the provider's default.
    """

    model: SpecLike | None = None
    temperature: float | None = Field(default=None, ge=0)
    max_tokens: int | None = Field(default=None, ge=1)
    thinking: Thinking | None = None

    if TYPE_CHECKING:  # what is accepted is wider than what is kept

        def __init__(
            self,
            *,
            model: ModelSpec | str | Mapping[str, Any] | None = None,
            temperature: float | None = None,
            max_tokens: int | None = None,
            thinking: Thinking | None = None,
        ) -> None: ...


class Compaction(Settings):
    """When and how Terns are summarised.

    Args:
        every: Size of a block in turns; each full block becomes one summary.
        keep: How many summaries readers may see, in summaries. Default 10.
        model: Model that writes summaries; None = ``defaults.models.model``, then the one model that all agents share.
        max_tokens: Longest summary in tokens. Default 512.
        strict: Raise ``CompactionError`` instead of trying again later. Default False.
    """

    every: int = Field(ge=1)
    keep: int = Field(default=10, ge=1)
    model: SpecLike | None = None
    max_tokens: int = Field(default=512, ge=1)
    strict: bool = False

    if TYPE_CHECKING:  # what is accepted is wider than what is kept

        def __init__(
            self,
            *,
            every: int,
            keep: int = 10,
            model: ModelSpec | str | Mapping[str, Any] | None = None,
            max_tokens: int = 512,
            strict: bool = False,
        ) -> None: ...


class RunLimits(Settings):
    """Upper bounds, checked before each call. None = no bound.

    Args:
        steps: Nodes of the flow that may run.
        model_calls: Calls of any model, memory work included.
        tool_calls: Tool runs.
        tokens: Input plus output tokens.
        usd: US dollars.
    """

    steps: int | None = Field(default=None, ge=1)
    model_calls: int | None = Field(default=None, ge=0)
    tool_calls: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    usd: Decimal | None = Field(default=None, ge=0)


class Limits(Settings):
    """Bounds of one Tern and of one UTC day (all Terns of the workflow in this store).

    ``per_run.steps`` is 100 when not set, so that no loop is endless.
    """

    per_run: RunLimits = Field(default_factory=lambda: RunLimits.plain())
    per_day: RunLimits = Field(default_factory=lambda: RunLimits.plain())

    @property
    def bounds_days(self) -> bool:
        """Whether anything bounds a day."""
        return self.per_day != RunLimits.plain()

    if TYPE_CHECKING:  # what is accepted is wider than what is kept

        def __init__(
            self,
            *,
            per_run: RunLimits | Mapping[str, Any] = ...,
            per_day: RunLimits | Mapping[str, Any] = ...,
        ) -> None: ...


RouteFunction: TypeAlias = Callable[..., Any]


class _RouterSettings(Settings):
    min_confidence: float | None = Field(default=None, ge=0, le=1)
    fallback: Any = None
    """Component (class or name) taken below ``min_confidence``; None = the run fails with a typed error."""


class Rule(Settings):
    """One rule of a ``RulesRouter``.

    Args:
        to: The route: a component class or its name.
        words: The rule matches when one of these words or phrases is in the task, whole and in any case.
        pattern: Or when this regular expression is found in the task (case-insensitive).
    """

    to: Any
    words: tuple[str, ...] = ()
    pattern: str | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.words and self.pattern is None:
            raise ValueError("a rule needs words= or pattern=")
        if self.pattern is not None:
            try:
                re.compile(self.pattern)
            except re.error as error:
                raise ValueError(f"pattern {self.pattern!r} is no regular expression: {error}") from None
        return self


class RulesRouter(_RouterSettings):
    """Routes by words and patterns in the task, first match wins. Local: it sees the task alone.

    Args:
        rules: Rules in order.
        otherwise: Route when no rule matches; None = then the run fails with a typed error.
    """

    kind: Literal["rules"] = "rules"
    local: ClassVar[bool] = True
    rules: tuple[Rule, ...] = Field(min_length=1)
    otherwise: Any = None


class FunctionRouter(_RouterSettings):
    """Routes by a function of the route context: ``def pick(ctx) -> component | name`` (sync or async)."""

    kind: Literal["function"] = "function"
    local: ClassVar[bool] = False
    function: RouteFunction

    @field_validator("function")
    @classmethod
    def _no_class(cls, function: RouteFunction) -> RouteFunction:
        if isinstance(function, type):
            raise ValueError(
                f"{function.__name__} is a class; pass a function, or an object of it: {function.__name__}()"
            )
        return function

    def __init__(self, function: RouteFunction | None = None, **settings: Any) -> None:
        super().__init__(**({"function": function} if function is not None else {}), **settings)


class LlmRouter(_RouterSettings):
    """Routes by asking a chat model for one of the routes by name.

    Args:
        model: The model; None = ``defaults.models.model``.
        instructions: Text put before the list of routes.
    """

    kind: Literal["llm"] = "llm"
    local: ClassVar[bool] = False
    model: SpecLike | None = None
    instructions: str = "Choose the one route that should handle the task."

    if TYPE_CHECKING:  # what is accepted is wider than what is kept

        def __init__(
            self,
            *,
            model: ModelSpec | str | Mapping[str, Any] | None = None,
            instructions: str = "Choose the one route that should handle the task.",
            min_confidence: float | None = None,
            fallback: Any = None,
        ) -> None: ...


class JevRouter(_RouterSettings):
    """Routes by a decision model: typed answers with probabilities.

    Args:
        model: Decision model id, for example ``typesafe/jev-1.13``.
        base_url: Server; None = OpenRouter's decisions API, or TypeSafe's for a bare id such as ``jev-latest``.
        path: Path below ``base_url``; None = the server's usual path.
        api_key_env: Environment variable with the key; None = the server's usual one. Loopback servers need none.
        instructions: The question that is put to the model.
        timeout: Seconds for one attempt. Default 30.
        attempts: Attempts in all for retryable errors. Default 3.
    """

    kind: Literal["jev"] = "jev"
    local: ClassVar[bool] = False
    model: str
    base_url: str | None = None
    path: str | None = None
    api_key_env: str | None = None
    instructions: str = "Which route should handle the task?"
    timeout: float = Field(default=30.0, gt=0, strict=True, allow_inf_nan=False)
    attempts: int = Field(default=3, ge=1)

    @model_validator(mode="after")
    def _check_model(self) -> Self:
        if self.model.split(":")[0].endswith("jev-router"):
            raise ValueError(f"{self.model!r} is a chat model; name a decision model such as 'typesafe/jev-1.13'")
        return self


RouterSettings: TypeAlias = Annotated[RulesRouter | FunctionRouter | LlmRouter | JevRouter, Field(discriminator="kind")]


class Defaults(Settings):
    """Workflow-wide defaults.

    Args:
        models: Model settings of agents.
        router: Router of ``@router`` components that name none.
        history: What routers and agents see of the past.
    """

    models: ModelDefaults = Field(default_factory=lambda: ModelDefaults.plain())
    router: RouterSettings | None = None
    history: History = Field(default_factory=lambda: History.plain())

    if TYPE_CHECKING:  # what is accepted is wider than what is kept

        def __init__(
            self,
            *,
            models: ModelDefaults | Mapping[str, Any] = ...,
            router: RouterSettings | Mapping[str, Any] | None = None,
            history: History | Mapping[str, Any] = ...,
        ) -> None: ...


class WorkflowSettings(Settings):
    """What ``WorkflowDefinition.settings()`` may add to the decorator: it overrides the decorator's values where set."""

    defaults: Defaults | None = None
    compaction: Compaction | None = None
    limits: Limits | None = None
    prompt_variables: Mapping[str, str] | None = None

    @classmethod
    def builder(cls) -> "SettingsBuilder":
        """A builder with one method per field."""
        return SettingsBuilder()


class SettingsBuilder:
    """Collects workflow settings; every method returns the builder."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    def defaults(self, defaults: Defaults | Mapping[str, Any]) -> Self:
        """Set the workflow-wide defaults."""
        self._values["defaults"] = defaults
        return self

    def compaction(self, compaction: Compaction | Mapping[str, Any]) -> Self:
        """Set when and how Terns are summarised."""
        self._values["compaction"] = compaction
        return self

    def limits(self, limits: Limits | Mapping[str, Any] | None = None, **bounds: Any) -> Self:
        """Set bounds, as a ``Limits``, a dict, or keywords ``per_run=`` and ``per_day=``."""
        self._values["limits"] = limits if limits is not None else bounds
        return self

    def prompt_variables(self, **variables: str) -> Self:
        """Set values of ``{name}`` placeholders in prompts."""
        self._values["prompt_variables"] = variables
        return self

    def build(self) -> WorkflowSettings:
        """The frozen settings. Raises pydantic's ValidationError on a bad value."""
        return WorkflowSettings(**self._values)
