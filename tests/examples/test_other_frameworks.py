from pathlib import Path

import pytest
from example_process import run_example


@pytest.mark.parametrize(
    ("example", "lines"),
    [
        ("pydantic_ai_memory.py", ["I am Ada. -> I see 2 parts.", "Who am I? -> I see 4 parts."]),
        (
            "langgraph_memory.py",
            [
                "['Be brief.', 'I am Ada.']",
                "Hello Ada.",
                "['Be brief.', 'I am Ada.', 'Hello Ada.', 'Who am I?']",
                "You are Ada.",
            ],
        ),
        ("openai_agents_memory.py", ["I am Ada. -> I see 1 items.", "Who am I? -> I see 3 items."]),
    ],
)
def test_an_example_runs_offline(tmp_path: Path, example: str, lines: list[str]) -> None:
    done = run_example(tmp_path, example)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == lines
