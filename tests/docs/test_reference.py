"""The reference names everything that is public, and every error code that the source can raise."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pages import ROOT

from agboss import RunLimits

REFERENCE = ROOT / "docs" / "reference"
_DIRECTIVE = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)
_CODE = re.compile(r"[a-z]+\.[a-z]+(?:-[a-z]+)*")
_ROW = re.compile(r"^\| `(" + _CODE.pattern + r")` \|", re.MULTILINE)
_VARIABLE = re.compile(r"(?:AGBOSS|OPENAI|ANTHROPIC|GOOGLE|GEMINI|OPENROUTER|TYPESAFE)_[A-Z_]+")

NOT_CODES = {"openrouter.ai", "typesafe.ai", "ollama.com", "pyproject.toml", "http.disconnect", "chat.completion"}
"""Texts in the source that only look like codes."""

BUILT = {f"limit.{scope}-{name.replace('_', '-')}" for scope in ("run", "day") for name in RunLimits.model_fields}
"""Codes that the source puts together: ``agboss.models.meter``."""

FILES = (".html", ".css", ".js")
"""Endings of names of files, which look like codes too."""


def documented() -> dict[str, object]:
    """Every object that a reference page shows, by the name under which it is shown."""
    found: dict[str, object] = {}
    for page in sorted(REFERENCE.glob("*.md")):
        for path in _DIRECTIVE.findall(page.read_text(encoding="utf-8")):
            module, _, name = path.rpartition(".")
            assert path not in found, f"{path} is shown twice"
            found[path] = getattr(importlib.import_module(module), name)
    return found


@pytest.mark.parametrize("package", ["agboss", "agboss_memory", "agboss_memory.testing", "agboss.testing"])
def test_every_public_name_stands_in_the_reference(package: str) -> None:
    shown = documented()
    module = importlib.import_module(package)
    for name in module.__all__:
        value = getattr(module, name)
        names = {path for path, other in shown.items() if other is value and path.rpartition(".")[2] == name}
        assert names, f"{package}.{name} has no place in docs/reference: add '::: {package}.{name}' to a page"


def test_every_error_code_stands_in_the_reference_and_no_other() -> None:
    used = {code for path in source() for code in codes(path)} | BUILT
    told = _ROW.findall((REFERENCE / "errors.md").read_text(encoding="utf-8"))
    assert len(told) == len(set(told)), "a code stands twice in docs/reference/errors.md"
    assert used - set(told) == set(), "add these codes to docs/reference/errors.md"
    assert set(told) - used == set(), "no code of the source; remove them from docs/reference/errors.md"


def test_every_environment_variable_stands_in_the_reference() -> None:
    used = {name for path in source() for text in strings(path) for name in [text] if _VARIABLE.fullmatch(name)}
    told = set(_VARIABLE.findall((REFERENCE / "environment.md").read_text(encoding="utf-8")))
    assert used - told == set()


def source() -> list[Path]:
    return [path for package in ("agboss", "agboss_memory") for path in sorted((ROOT / package).rglob("*.py"))]


def strings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def codes(path: Path) -> Iterator[str]:
    """Codes in a file: whole texts of the form ``area.what``, and ``_error("what")`` of the decision-model client."""
    yield from (
        text
        for text in strings(path)
        if _CODE.fullmatch(text)
        and text not in NOT_CODES
        and not text.startswith("agboss.")
        and not text.endswith(FILES)
    )
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "_error":
            yield from (f"router.{kind}" for kind in kinds(node.args[0]))


def kinds(node: ast.expr) -> list[str]:
    if isinstance(node, ast.IfExp):
        return [*kinds(node.body), *kinds(node.orelse)]
    assert isinstance(node, ast.Constant), ast.dump(node)
    assert isinstance(node.value, str)
    return [node.value]
