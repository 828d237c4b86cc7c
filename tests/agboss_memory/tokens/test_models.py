"""Which encoding counts for which model."""

import pytest

from agboss_memory.tokens import counter_for, encoding_for


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-4", "cl100k_base"),
        ("gpt-4-turbo", "cl100k_base"),
        ("gpt-4o-mini", "o200k_base"),
        ("gpt-4.1-nano", "o200k_base"),
        ("gpt-5", "o200k_base"),
        ("openai:gpt-3.5-turbo", "cl100k_base"),
        ("openrouter:openai/gpt-4-32k", "cl100k_base"),
        ("openai/gpt-oss-20b", "o200k_harmony"),
        ("ft:gpt-3.5-turbo:acme", "cl100k_base"),
        ("anthropic:claude-sonnet-4", "o200k_base"),
        ("", "o200k_base"),
    ],
)
def test_the_longest_prefix_wins(model: str, encoding: str) -> None:
    assert encoding_for(model) == encoding


def test_m024_a_custom_entry_wins_for_its_prefix_only() -> None:
    custom = {"gpt-4o": "mine"}
    assert encoding_for("gpt-4o-mini", custom) == "mine"
    assert encoding_for("openai:gpt-4o", custom) == "mine"
    assert encoding_for("gpt-4", custom) == "cl100k_base"
    assert encoding_for("gpt-4o-mini") == "o200k_base"


def test_b075_one_counter_serves_all_models_of_an_encoding() -> None:
    assert counter_for("gpt-4o") is counter_for("gpt-4o-mini")
    assert counter_for("gpt-4o") is not counter_for("gpt-4")
