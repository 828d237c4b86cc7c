"""memoryConfig: what is accepted, what is refused and where the error points."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from agboss_memory.config import (
    AutoCompactConfig,
    FullConfig,
    MemoryConfig,
    SummarizingWindowConfig,
    SummaryPlacement,
    ToolResultEviction,
    WindowedConfig,
    memory_config_schema,
    parse_memory_config,
)
from agboss_memory.errors import InvalidInputError

FIRST = """{"kind": "summarizing_window", "maxConversationRatio": 0.80, "maxMessageRatio": 0.20,
 "compressToolResults": true, "minToolResultCompressTokens": 500, "toolResultThresholdRatio": 0.02,
 "compressWhenWindowAboveRatio": 0.50, "autoSummarize": false, "autoSummarizeRatio": 0.75,
 "summaryPlacement": "SYSTEM_PROMPT", "maxHistoryFetch": 500}"""
SECOND = """{"kind": "auto_compact", "compactAtRatio": 0.80, "summaryPlacement": "USER_MESSAGE",
 "toolResultEviction": {"afterTurns": 1, "aboveTokens": 500}}"""
RATIOS = (
    "maxConversationRatio",
    "maxMessageRatio",
    "toolResultThresholdRatio",
    "compressWhenWindowAboveRatio",
    "autoSummarizeRatio",
)


def dumped(config: Any) -> dict[str, Any]:
    return json.loads(config.model_dump_json())


def refused(value: dict[str, Any] | str) -> InvalidInputError:
    with pytest.raises(InvalidInputError) as caught:
        parse_memory_config(value)
    assert caught.value.code == "memory-config.invalid"
    return caught.value


@pytest.mark.parametrize("text", [FIRST, SECOND])
def test_m002_the_two_examples_round_trip(text: str) -> None:
    config = parse_memory_config(text)
    again = dumped(config)
    assert parse_memory_config(json.dumps(again)) == config
    given: dict[str, Any] = json.loads(text)
    eviction: dict[str, Any] = given.pop("toolResultEviction", {})
    assert {key: again[key] for key in given} == given
    assert {key: again["toolResultEviction"][key] for key in eviction} == eviction


def test_m002_the_first_example_is_the_defaults() -> None:
    assert parse_memory_config(FIRST) == SummarizingWindowConfig()


def test_m003_no_eviction_is_not_written() -> None:
    again = dumped(AutoCompactConfig())
    assert "toolResultEviction" not in again
    parsed = parse_memory_config(again)
    assert isinstance(parsed, AutoCompactConfig)
    assert parsed.tool_result_eviction is None


def test_m004_eviction_round_trips() -> None:
    config = AutoCompactConfig(tool_result_eviction=ToolResultEviction(after_turns=1, above_tokens=500))
    assert parse_memory_config(dumped(config)) == config
    assert parse_memory_config(json.dumps(dumped(config))) == config


@pytest.mark.parametrize("ratio", [1.0, 1, 1e-9])
@pytest.mark.parametrize("name", RATIOS)
def test_m007_ratios_up_to_one(name: str, ratio: float) -> None:
    parsed = parse_memory_config({"kind": "summarizing_window", name: ratio})
    assert dumped(parsed)[name] == ratio
    assert parse_memory_config({"kind": "auto_compact", "compactAtRatio": ratio})


def test_m008_smallest_result_that_is_compressed() -> None:
    refused({"kind": "summarizing_window", "minToolResultCompressTokens": -1})
    assert parse_memory_config({"kind": "summarizing_window", "minToolResultCompressTokens": 0})


@pytest.mark.parametrize(
    ("kind", "name"),
    [("summarizing_window", "maxHistoryFetch"), ("full", "maxHistoryFetch"), ("windowed", "windowSize")],
)
def test_m009_at_least_one_message(kind: str, name: str) -> None:
    assert f"/{name}" in refused({"kind": kind, name: 0}).message
    assert dumped(parse_memory_config({"kind": kind, name: 1}))[name] == 1


@pytest.mark.parametrize(
    ("kind", "name", "most"),
    [
        ("windowed", "windowSize", 1_000_000),
        ("full", "maxHistoryFetch", 1_000_000),
        ("summarizing_window", "maxHistoryFetch", 1_000_000),
        ("summarizing_window", "minToolResultCompressTokens", 10_000_000_000),
    ],
)
def test_m009_a_number_that_no_conversation_reaches_is_refused(kind: str, name: str, most: int) -> None:
    assert dumped(parse_memory_config({"kind": kind, name: most}))[name] == most
    for wrong in (most + 1, 2**63, 10**30):
        told = refused({"kind": kind, name: wrong}).message
        assert f"/{name}: Input should be less than or equal to {most} (got {wrong})" in told
    variants = [one.get("properties", {}) for one in memory_config_schema()["$defs"].values()]
    (field,) = [one[name] for one in variants if one.get("kind", {}).get("const") == kind]
    assert field["maximum"] == most


def test_m009_eviction_has_bounds_too() -> None:
    for name, most in (("afterTurns", 1_000_000), ("aboveTokens", 10_000_000_000)):
        assert parse_memory_config({"kind": "auto_compact", "toolResultEviction": {name: most}})
        told = refused({"kind": "auto_compact", "toolResultEviction": {name: most + 1}}).message
        assert f"/toolResultEviction/{name}" in told


def test_m011_placement_is_one_of_two_words() -> None:
    for wrong in (None, "system_prompt"):
        assert "/summaryPlacement" in refused({"kind": "auto_compact", "summaryPlacement": wrong}).message
    parsed = parse_memory_config({"kind": "auto_compact", "summaryPlacement": "SYSTEM_PROMPT"})
    assert isinstance(parsed, AutoCompactConfig)
    assert parsed.summary_placement is SummaryPlacement.SYSTEM_PROMPT


def test_m014_there_is_no_rule_across_fields() -> None:
    assert parse_memory_config({"kind": "summarizing_window", "autoSummarizeRatio": 0.1, "maxConversationRatio": 0.9})


def test_m021_a_ratio_is_the_decimal_of_its_literal() -> None:
    assert SummarizingWindowConfig(max_conversation_ratio=Decimal("0.29")).max_conversation_ratio * 100 == 29
    parsed = parse_memory_config('{"kind": "summarizing_window", "maxConversationRatio": 0.29}')
    assert isinstance(parsed, SummarizingWindowConfig)
    assert parsed.max_conversation_ratio == Decimal("0.29")


@pytest.mark.parametrize("wrong", [0, -0.1, 1.5, float("nan"), float("inf"), True, "0.5", None])
def test_b133_a_senseless_ratio_is_refused(wrong: Any) -> None:
    assert "/compactAtRatio" in refused({"kind": "auto_compact", "compactAtRatio": wrong}).message
    with pytest.raises(ValidationError):
        AutoCompactConfig(compact_at_ratio=wrong)


def test_an_unknown_key_is_pointed_at_with_the_nearest_name() -> None:
    error = refused({"kind": "windowed", "windowSise": 3})
    assert "/windowSise: unknown key 'windowSise'; did you mean 'windowSize'?" in error.message
    assert error.data["problems"][0][0] == "/windowSise"
    error = refused({"kind": "auto_compact", "toolResultEviction": {"afterTurn": 1, "x/y~": {}}})
    assert "/toolResultEviction/afterTurn: unknown key" in error.message
    assert "/toolResultEviction/x~1y~0: unknown key" in error.message


def test_all_problems_are_listed_at_once() -> None:
    error = refused({"kind": "summarizing_window", "maxHistoryFetch": 0, "max": 1, "autoSummarize": "yes"})
    assert {pointer for pointer, _ in error.data["problems"]} == {"/maxHistoryFetch", "/max", "/autoSummarize"}


@pytest.mark.parametrize("wrong", ["", "[]", "null", "{", '{"kind": "windowd"}', "{}", '{"kind": 3}'])
def test_what_is_no_configuration_is_a_named_error(wrong: str) -> None:
    refused(wrong)


def test_both_spellings_are_read_and_one_is_written() -> None:
    assert parse_memory_config({"kind": "windowed", "window_size": 3}) == WindowedConfig(window_size=3)
    assert dumped(WindowedConfig(window_size=3)) == {"kind": "windowed", "windowSize": 3}
    assert dumped(FullConfig()) == {"kind": "full", "maxHistoryFetch": 500}


def test_a_type_adapter_reads_the_union() -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(MemoryConfig)
    assert adapter.validate_python({"kind": "none"}).kind == "none"
    with pytest.raises(ValidationError):
        adapter.validate_python({"kind": "none", "x": 1})


def test_the_schema_names_every_kind_in_wire_spelling() -> None:
    text = json.dumps(memory_config_schema())
    for word in ("summarizing_window", "auto_compact", "windowed", "full", "none", "toolResultEviction", "windowSize"):
        assert f'"{word}"' in text


def test_configurations_are_values() -> None:
    assert hash(WindowedConfig()) == hash(WindowedConfig())
    assert AutoCompactConfig() == AutoCompactConfig()
    assert WindowedConfig() != WindowedConfig(window_size=1)
