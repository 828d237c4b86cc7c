"""Two type checkers agree on the public types: both read the modules beside this one, strictly.

Where a module shows a mistake, its ``ignore`` must be needed by both checkers: one that is not is an error.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MODULES = [str(path) for path in sorted(HERE.glob("*.py")) if path != Path(__file__)]


@pytest.mark.timeout(300)
def test_mypy_finds_the_public_types_to_be_what_they_are_said_to_be(tmp_path: Path) -> None:
    options = ["--strict", "--warn-unused-ignores", "--follow-imports=silent", f"--cache-dir={tmp_path}"]
    check([sys.executable, "-m", "mypy", *options, *MODULES])


@pytest.mark.timeout(300)
def test_pyright_finds_the_public_types_to_be_what_they_are_said_to_be(tmp_path: Path) -> None:
    for module in MODULES:
        shutil.copy(module, tmp_path)
    settings = {
        "extraPaths": [str(ROOT)],
        "typeCheckingMode": "strict",
        "enableTypeIgnoreComments": False,  # those are mypy's
        "reportUnnecessaryTypeIgnoreComment": "error",
        "reportMissingTypeStubs": False,
    }
    project = tmp_path / "pyrightconfig.json"
    project.write_text(json.dumps(settings), encoding="utf-8")
    told = check([sys.executable, "-m", "pyright", "--outputjson", "-p", str(project), "--pythonpath", sys.executable])
    assert json.loads(told)["summary"]["filesAnalyzed"] == len(MODULES)


def check(command: list[str]) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
