"""Agents as JSON: what is accepted, what is refused and how that is told, what a file keeps."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agboss import AgentDefinition, ready_definitions
from agboss.definitions import definition_schema, parse_definition
from agboss.errors import InvalidInputError

NAMES = st.from_regex(r"[a-z0-9]{1,8}(-[a-z0-9]{1,8}){0,2}", fullmatch=True)
CONFIGS: list[dict[str, Any] | None] = [
    None,
    {"kind": "none"},
    {"kind": "windowed"},
    {"kind": "windowed", "windowSize": 3},
    {"kind": "full", "maxHistoryFetch": 7},
    {"kind": "auto_compact", "compactAtRatio": 0.29, "toolResultEviction": {"afterTurns": 2}},
    {"kind": "summarizing_window", "autoSummarize": True, "summaryPlacement": "USER_MESSAGE", "summaryModel": "a/b"},
]


def refused(value: Any) -> InvalidInputError:
    with pytest.raises(InvalidInputError) as caught:
        parse_definition(value)
    assert caught.value.code == "definition.invalid"
    return caught.value


@given(
    name=NAMES,
    prompt=st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
    config=st.sampled_from(CONFIGS),
    tools=st.lists(NAMES, max_size=3, unique=True),
    limit=st.integers(-5, 10**6),
)
def test_what_was_read_is_written_again(
    name: str, prompt: str, config: dict[str, Any] | None, tools: list[str], limit: int
) -> None:
    wire = {
        "name": name,
        "description": "d",
        "systemPrompt": prompt,
        "model": "local:extractive",
        "tools": [{"name": tool, "maxResultChars": limit} for tool in tools],
        "memoryConfig": config,
    }
    definition = parse_definition(json.dumps(wire))
    assert json.loads(definition.to_json()) == wire
    assert parse_definition(definition.to_json()) == definition


@pytest.mark.parametrize("config", CONFIGS[1:])
def test_m016_a_present_memory_config_is_unchanged(config: dict[str, Any]) -> None:
    assert parse_definition({"name": "a", "memoryConfig": config}).to_dict()["memoryConfig"] == config


def test_names_in_python_are_snake_case() -> None:
    definition = AgentDefinition(name="clerk", system_prompt="Be brief.")
    assert definition.system_prompt == "Be brief."
    assert definition.to_dict()["systemPrompt"] == "Be brief."


def test_an_unknown_key_is_told_with_its_place_its_value_and_the_nearest_name() -> None:
    error = refused({"name": "a", "systemPromt": "x", "tools": [{"name": "t", "maxResultsChars": 1}]})
    assert "/systemPromt" in error.message
    assert "did you mean 'systemPrompt'? (got 'x')" in error.message
    assert "/tools/0/maxResultsChars" in error.message
    assert [pointer for pointer, _ in error.data["problems"]] == ["/systemPromt", "/tools/0/maxResultsChars"]


def test_a_wrong_memory_config_is_told_with_its_place_whatever_its_kind() -> None:
    error = refused('{"name": "a", "memoryConfig": {"kind": "windowed", "windowSise": 1, "windowSize": 0}}')
    assert [pointer for pointer, _ in error.data["problems"]] == [
        "/memoryConfig/windowSise",
        "/memoryConfig/windowSize",
    ]


@pytest.mark.parametrize("name", ["", "../x", "a/b", "A", "a--b", "-a", "a.b", "a b", "a" * 65, "a\n", "é", 3, None])
def test_a_name_is_no_path(name: Any) -> None:
    assert "/name" in refused({"name": name}).message


def test_text_that_is_no_json_is_told_with_line_and_column() -> None:
    assert "line 2, column 3" in refused('{"name":\n  nope}').message


def test_a_key_that_stands_twice_is_refused() -> None:
    assert "'name' stands twice" in refused('{"name": "a", "name": "b"}').message


def test_deep_json_is_refused_and_not_fatal() -> None:
    refused("[" * 200_000)


def test_a_tool_stands_once() -> None:
    assert "named twice" in refused({"name": "a", "tools": [{"name": "t"}, {"name": "t"}]}).message


def test_the_schema_is_that_of_the_wire() -> None:
    schema = definition_schema()
    assert schema["additionalProperties"] is False
    assert {"systemPrompt", "memoryConfig", "tools", "$schema"} <= set(schema["properties"])
    assert "maxResultChars" in schema["$defs"]["DefinedTool"]["properties"]


def test_the_ready_ones() -> None:
    kinds = {item.name: item.effective_memory.kind for item in ready_definitions()}
    assert kinds == {
        "assistant-with-tools": "summarizing_window",
        "conversation-summarizer": "none",
        "planner": "auto_compact",
        "research-lead": "summarizing_window",
    }


def test_a_change_changes_the_version() -> None:
    one = AgentDefinition(name="a")
    assert one.version == AgentDefinition(name="a").version
    assert one.version != AgentDefinition(name="a", system_prompt="x").version
