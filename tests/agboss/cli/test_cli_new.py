import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_told import COMMAND, Agboss, environment


@pytest.mark.timeout(180)
def test_a_new_project_runs_offline_and_passes_its_test(agboss: Agboss, place: Path) -> None:
    told = agboss("new", "tea-desk")
    assert told.code == 0
    project = place / "tea-desk"
    assert "wrote tea-desk/tea_desk.py\n" in told.out
    run = subprocess.run(
        [*COMMAND, "run", "--offline", "My name is Ada."],
        cwd=project,
        env=environment(),
        capture_output=True,
        check=True,
    )
    assert run.stdout.startswith(b"Noted: My name is Ada.\nthread: ")
    env = environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", HOME=os.environ.get("HOME", str(place)))
    plugins = ("-p", "agboss.testing.plugin", "-p", "pytest_asyncio.plugin")
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", *plugins],
        cwd=project, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert tested.returncode == 0, tested.stdout
    assert "1 passed" in tested.stdout


def test_nothing_is_overwritten(agboss: Agboss, place: Path) -> None:
    (place / "desk").mkdir()
    told = agboss("new", "desk")
    assert told.code == 2
    assert list((place / "desk").iterdir()) == []
    assert sorted(path.name for path in place.iterdir()) == ["desk"]


@pytest.mark.parametrize(
    "name",
    ["", "Desk", "tea_desk", "-desk", "tea--desk", "../desk", "a" * 41, "json", "class", "agboss", "1desk", "té"],
)
def test_a_name_that_cannot_be(agboss: Agboss, place: Path, name: str) -> None:
    told = agboss("new", "--json", "--", name)
    assert told.code == 2
    assert told.json["error"]["code"] == "cli.bad-name"
    assert list(place.iterdir()) == []


def test_json_of_a_new_project(agboss: Agboss) -> None:
    assert agboss("new", "shop", "--json").json == {
        "project": "shop",
        "app": "shop:Shop",
        "files": [".gitignore", "README.md", "pyproject.toml", "shop.py", "tests/test_shop.py"],
    }
