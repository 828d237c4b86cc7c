"""``memoryConfig``: five kinds of window memory, as JSON or as Python.

On the wire names are camelCase, in Python snake_case; both are accepted. Ratios are decimals of their literals, so that
``0.29`` of 100 is 29. Unknown keys and wrong values are refused with the JSON pointer, the value and the nearest name.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    ValidationError,
    model_serializer,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import InitErrorDetails, PydanticCustomError

from agboss_memory.errors import InvalidInputError
from agboss_memory.nearest import close_names
from agboss_memory.wording import quoted


def _as_decimal(value: object) -> object:
    """The decimal of a number's literal; everything else is left to be refused."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Decimal(str(value))
    if isinstance(value, Decimal):
        return value
    raise ValueError("a ratio is a number")


Count: TypeAlias = Annotated[int, Field(strict=True)]
Switch: TypeAlias = Annotated[bool, Field(strict=True)]

Ratio: TypeAlias = Annotated[
    Decimal,
    BeforeValidator(_as_decimal),
    Field(gt=0, le=1, allow_inf_nan=False),
    PlainSerializer(float, return_type=float, when_used="json-unless-none"),
]
"""A share of the context window, above 0 and at most 1."""


MOST_MESSAGES = 1_000_000
"""The greatest number of messages or turns that a setting takes."""

MOST_TOKENS = 10_000_000_000
"""The greatest number of tokens that a setting takes; above every window there is."""


class SummaryPlacement(StrEnum):
    """Where summaries stand in a request."""

    SYSTEM_PROMPT = "SYSTEM_PROMPT"
    USER_MESSAGE = "USER_MESSAGE"


class WireModel(BaseModel):
    """Frozen; camelCase on the wire, snake_case in Python; an unknown key is told with the nearest known one."""

    # Built when first used: a program without window memory does not pay for it at its start.
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        serialize_by_alias=True,
        defer_build=True,
    )

    @model_validator(mode="wrap")
    @classmethod
    def _name_unknown_keys(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(data, Mapping):
            return handler(data)
        given = cast("Mapping[object, object]", data)
        names = {name for field, info in cls.model_fields.items() for name in (field, info.alias or field)}
        unknown = [_unknown(key, given[key], cls) for key in given if key not in names]
        if not unknown:
            return handler(data)
        try:
            handler({key: value for key, value in given.items() if key in names})
        except ValidationError as error:
            unknown.extend(_again(cast("Mapping[str, Any]", item)) for item in error.errors(include_url=False))
        raise ValidationError.from_exception_data(cls.__name__, unknown)


def _again(item: Mapping[str, Any]) -> InitErrorDetails:
    """A problem as it was told, also one of a kind that only we know."""
    text = str(item["msg"]).replace("{", "{{").replace("}", "}}")
    kind = PydanticCustomError(item["type"], cast("Any", text))
    return InitErrorDetails(type=kind, loc=item["loc"], input=item["input"])


def _unknown(key: object, value: object, cls: type[BaseModel]) -> InitErrorDetails:
    text = f"unknown key {key!r}; {_nearest(str(key), cls)}".replace("{", "{{").replace("}", "}}")
    return InitErrorDetails(type=PydanticCustomError("unknown_key", cast("Any", text)), loc=(str(key),), input=value)


def _nearest(key: str, cls: type[BaseModel]) -> str:
    wire = [info.alias or name for name, info in cls.model_fields.items()]
    near = close_names(to_camel(key), wire)
    return f"did you mean {near[0]!r}?" if near else "known keys: " + ", ".join(wire)


class ToolResultEviction(WireModel):
    """When old tool results are replaced by a pointer at render time; nothing is written.

    Attributes:
        after_turns: User turns that must have begun since the result's own, at most a million. Default 1.
        above_tokens: Smallest result that is evicted, in tokens, at most 10^10. Default 500.
        exempt_tools: Names of tools whose results always stay.
    """

    after_turns: Count = Field(default=1, ge=1, le=MOST_MESSAGES)
    above_tokens: Count = Field(default=500, ge=0, le=MOST_TOKENS)
    exempt_tools: tuple[str, ...] = ()


class SummarizingWindowConfig(WireModel):
    """A suffix of the conversation that fits a share of the window; older parts are summarised.

    Attributes:
        max_conversation_ratio: Share of the window for the conversation. Default 0.80.
        max_message_ratio: Share of the window for one message; what is longer is cut in the view. Default 0.20.
        compress_tool_results: Replace old, read tool results by stubs. Default true.
        min_tool_result_compress_tokens: Smallest result that is compressed, in tokens, at most 10^10. Default 500.
        tool_result_threshold_ratio: The same as a share of the window; the larger of the two counts. Default 0.02.
        compress_when_window_above_ratio: Compress only while live tokens exceed this share. Default 0.50.
        auto_summarize: Summarise after a Tern by itself. Default false.
        auto_summarize_ratio: Live tokens above this share of the window trigger it. Default 0.75.
        summary_placement: Where summaries stand. Default SYSTEM_PROMPT.
        max_history_fetch: Messages read at once (a page, not a bound), at most a million. Default 500.
        summary_model: Model that writes summaries; null = the agent's own.
    """

    kind: Literal["summarizing_window"] = "summarizing_window"
    max_conversation_ratio: Ratio = Decimal("0.80")
    max_message_ratio: Ratio = Decimal("0.20")
    compress_tool_results: Switch = True
    min_tool_result_compress_tokens: Count = Field(default=500, ge=0, le=MOST_TOKENS)
    tool_result_threshold_ratio: Ratio = Decimal("0.02")
    compress_when_window_above_ratio: Ratio = Decimal("0.50")
    auto_summarize: Switch = False
    auto_summarize_ratio: Ratio = Decimal("0.75")
    summary_placement: SummaryPlacement = SummaryPlacement.SYSTEM_PROMPT
    max_history_fetch: Count = Field(default=500, ge=1, le=MOST_MESSAGES)
    summary_model: str | None = None


class AutoCompactConfig(WireModel):
    """The whole live conversation, folded into one summary when it grows above a share of the window.

    Attributes:
        compact_at_ratio: Rendered live tokens above this share of the window trigger a compaction. Default 0.80.
        summary_placement: Where the summary stands. Default USER_MESSAGE.
        tool_result_eviction: Evict old tool results at render time; null = never. Default null.
        summary_model: Model that writes the summary; null = the agent's own.
    """

    kind: Literal["auto_compact"] = "auto_compact"
    compact_at_ratio: Ratio = Decimal("0.80")
    summary_placement: SummaryPlacement = SummaryPlacement.USER_MESSAGE
    tool_result_eviction: ToolResultEviction | None = None
    summary_model: str | None = None

    @model_serializer(mode="wrap")
    def _leave_out_no_eviction(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        dumped: dict[str, Any] = handler(self)
        if self.tool_result_eviction is None:
            for name in ("toolResultEviction", "tool_result_eviction"):
                dumped.pop(name, None)
        return dumped


class WindowedConfig(WireModel):
    """The last stored messages; no summaries.

    Attributes:
        window_size: Messages shown, at most a million. Default 20.
    """

    kind: Literal["windowed"] = "windowed"
    window_size: Count = Field(default=20, ge=1, le=MOST_MESSAGES)


class FullConfig(WireModel):
    """Everything that is loaded, verbatim.

    Attributes:
        max_history_fetch: Newest messages that are loaded, at most a million. Default 500.
    """

    kind: Literal["full"] = "full"
    max_history_fetch: Count = Field(default=500, ge=1, le=MOST_MESSAGES)


class NoneConfig(WireModel):
    """Nothing but the system prompt and the current Tern."""

    kind: Literal["none"] = "none"


MemoryConfig: TypeAlias = Annotated[
    SummarizingWindowConfig | AutoCompactConfig | WindowedConfig | FullConfig | NoneConfig,
    Field(discriminator="kind"),
]
"""Any kind, for ``TypeAdapter(MemoryConfig)``."""

AnyMemoryConfig: TypeAlias = SummarizingWindowConfig | AutoCompactConfig | WindowedConfig | FullConfig | NoneConfig


KINDS = ("auto_compact", "summarizing_window", "windowed", "full", "none")


class _Adapter:
    adapter: ClassVar[TypeAdapter[AnyMemoryConfig] | None] = None

    @classmethod
    def get(cls) -> TypeAdapter[AnyMemoryConfig]:
        if cls.adapter is None:
            cls.adapter = TypeAdapter(MemoryConfig)
        return cls.adapter


def parse_memory_config(value: AnyMemoryConfig | Mapping[str, Any] | str) -> AnyMemoryConfig:
    """A configuration from a model, a dict or a JSON string.

    Raises:
        InvalidInputError: ``memory-config.invalid``: names the JSON pointer, the value and the nearest known name.
    """
    try:
        adapter = _Adapter.get()
        return adapter.validate_json(value) if isinstance(value, str) else adapter.validate_python(value)
    except ValidationError as error:
        raise InvalidInputError(
            "memory-config.invalid",
            "memoryConfig is not valid: " + wire_problems(error),
            "see the JSON Schema of memoryConfig; kinds are auto_compact, summarizing_window, windowed, full, none",
            problems=wire_pointers(error),
        ) from error


def memory_config_schema() -> dict[str, Any]:
    """JSON Schema of ``memoryConfig``, as editors read it."""
    return _Adapter.get().json_schema(by_alias=True)


def wire_problems(error: ValidationError) -> str:
    """Each problem with its JSON pointer and the value, in one line."""
    return "; ".join(_problem(cast("Mapping[str, Any]", item)) for item in error.errors(include_url=False))


def wire_pointers(error: ValidationError) -> tuple[tuple[str, str], ...]:
    """JSON pointer and message of each problem."""
    return tuple((_pointer(item["loc"]), item["msg"]) for item in error.errors(include_url=False))


def _pointer(location: tuple[int | str, ...]) -> str:
    """The JSON pointer of an error; the discriminator that pydantic puts before a kind's own keys is no key."""
    parts = [
        part
        for place, part in enumerate(location)
        if part not in KINDS or (place > 0 and location[place - 1] not in ("memoryConfig", "memory_config"))
    ]
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def _problem(item: Mapping[str, Any]) -> str:
    if item["type"] == "union_tag_invalid":
        given = str(item["ctx"]["tag"])
        near = close_names(given.lower(), KINDS)
        hint = f"did you mean {near[0]!r}?" if near else "kinds are " + ", ".join(KINDS)
        return f"{_pointer(item['loc'])}/kind: unknown kind {quoted(given)}; {hint}"
    if item["type"] == "union_tag_not_found":
        return f"{_pointer(item['loc'])}/kind: missing; kinds are {', '.join(KINDS)}"
    text = str(item["msg"]).removeprefix("Value error, ")
    return f"{_pointer(item['loc']) or '(the whole)'}: {text} (got {quoted(item['input'])})"


__all__ = [
    "AnyMemoryConfig",
    "AutoCompactConfig",
    "FullConfig",
    "MemoryConfig",
    "NoneConfig",
    "SummarizingWindowConfig",
    "SummaryPlacement",
    "ToolResultEviction",
    "WindowedConfig",
    "WireModel",
    "memory_config_schema",
    "parse_memory_config",
    "wire_pointers",
    "wire_problems",
]
