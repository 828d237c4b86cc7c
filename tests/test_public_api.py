"""What is public changes only together with a line in CHANGELOG.md."""

import importlib
import re
from pathlib import Path

import pytest

CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"

RELEASED: dict[str, frozenset[str]] = {
    "agboss": frozenset(),
    "agboss_memory": frozenset(),
    "agboss_memory.testing": frozenset(),
    "agboss.testing": frozenset(),
}
"""Public names at the last release; nothing was released yet. A release brings this up to date."""


@pytest.mark.parametrize("package", RELEASED)
def test_a_changed_public_name_has_a_line_in_the_changelog(package: str) -> None:
    changed = RELEASED[package] ^ set(importlib.import_module(package).__all__)
    missing = sorted(changed - unreleased_names())
    assert not missing, f"{package}: name these under 'Unreleased' in CHANGELOG.md: {', '.join(missing)}"


@pytest.mark.parametrize("package", RELEASED)
def test_a_door_is_sorted_and_everything_behind_it_is_there(package: str) -> None:
    module = importlib.import_module(package)
    names = list(module.__all__)
    assert names == sorted(set(names))
    assert [name for name in names if not hasattr(module, name)] == []


def unreleased_names() -> set[str]:
    """Words in backticks under ``## [Unreleased]``."""
    text = CHANGELOG.read_text(encoding="utf-8")
    section = text.split("## [Unreleased]", 1)[1].split("\n## ", 1)[0]
    return {word for quoted in re.findall(r"`([^`]+)`", section) for word in re.findall(r"\w+", quoted)}
