"""Without its framework an adapter, or the test kit, names the line that installs it."""

from __future__ import annotations

import subprocess
import sys

import pytest

TRY = """
import sys
sys.modules[sys.argv[2]] = None
from agboss_memory.errors import MissingExtraError
try:
    __import__(sys.argv[1])
except MissingExtraError as error:
    print(error.code, error.hint)
"""


@pytest.mark.parametrize(
    ("module", "missing", "extra"),
    [
        ("agboss_memory.adapters.pydantic_ai", "pydantic_ai", "pydantic-ai"),
        ("agboss_memory.adapters.openai_agents", "agents", "openai-agents"),
        ("agboss_memory.adapters.langchain", "langchain", "langchain"),
        ("agboss_memory.testing", "hypothesis", "testing"),
    ],
)
def test_a_missing_extra_names_its_pip_line(module: str, missing: str, extra: str) -> None:
    done = subprocess.run([sys.executable, "-c", TRY, module, missing], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"extra.missing pip install 'agboss[{extra}]'"
