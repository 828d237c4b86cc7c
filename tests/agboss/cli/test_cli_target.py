import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from cli_told import COMMAND, DESK, Agboss, environment


def test_from_the_environment_and_from_the_nearest_pyproject(
    agboss: Agboss, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGBOSS_APP", "cli_desks:TypedDesk")
    assert agboss("describe", "--json").json["workflow"] == "typed-desk"
    assert agboss("describe", "--app", DESK, "--json").json["workflow"] == "desk"
    monkeypatch.delenv("AGBOSS_APP")
    (place / "pyproject.toml").write_text('[tool.agboss]\napp = "cli_desks:RoutedDesk"\n')
    inner = place / "a" / "b"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert agboss("describe", "--json").json["workflow"] == "routed-desk"
    assert agboss("describe").out.startswith("flowchart TD\n")


def test_a_module_beside_the_pyproject_is_found_from_below(place: Path) -> None:
    (place / "pyproject.toml").write_text('[tool.agboss]\napp = "helper_desk:Helper"\n')
    (place / "helper_desk.py").write_text(
        "from agboss import agent\n@agent(model='local:extractive')\nclass Helper: ...\n"
    )
    inner = place / "inner"
    inner.mkdir()
    done = subprocess.run(
        [*COMMAND, "describe", "--json"], cwd=inner, env=environment(), capture_output=True, check=True
    )
    assert b'"helper"' in done.stdout


def test_the_current_directory_comes_first(agboss: Agboss, place: Path) -> None:
    text = "from agboss import agent\n@agent(model='local:extractive')\nclass {name}: ...\nDesk = {name}\n"
    inner = place / "inner"
    inner.mkdir()
    (place / "near_desk.py").write_text(text.format(name="Near"))
    (inner / "near_desk.py").write_text(text.format(name="Far"))
    sys.path.insert(0, str(inner))
    assert agboss("describe", "--app", "near_desk:Desk", "--json").json["workflow"] == "near"


@pytest.mark.parametrize(
    ("app", "code", "told"),
    [
        ("nowhere:Desk", "cli.no-module", "there is no module 'nowhere'"),
        ("nowhere", "cli.bad-app", "module:Class"),
        ("a/b.py:Desk", "cli.bad-app", "module:Class"),
        ("cli_desks:Desks", "cli.no-class", "did you mean 'Desk'?"),
        ("cli_desks:", "cli.bad-app", "module:Class"),
        ("broken_desk:Desk", "cli.broken-app", "ModuleNotFoundError: No module named 'not_installed'"),
        ("exiting_desk:Desk", "cli.broken-app", "SystemExit"),
        ("typo_desk:Desk", "cli.broken-app", "typo_desk.py:1"),
    ],
)
def test_what_is_wrong_with_a_reference(agboss: Agboss, place: Path, app: str, code: str, told: str) -> None:
    (place / "broken_desk.py").write_text("import not_installed\n")
    (place / "exiting_desk.py").write_text("raise SystemExit(3)\n")
    (place / "typo_desk.py").write_text("class Desk(:\n")
    found = agboss("check", "--app", app, "--json")
    assert found.code == 2
    assert found.json["error"]["code"] == code
    assert told in found.json["error"]["message"] + found.json["error"]["hint"]
    assert "Traceback" not in agboss("check", "--app", app).err


def test_no_reference_at_all(agboss: Agboss, place: Path) -> None:
    told = agboss("run", "hello")
    assert (told.code, told.out) == (2, "")
    assert "AGBOSS_APP" in told.err
    (place / "pyproject.toml").write_text("[tool.agboss]\n")
    assert "has no [tool.agboss] app" in agboss("run", "hello").err
    (place / "pyproject.toml").write_text("[tool")
    assert agboss("run", "hello", "--json").json["error"]["code"] == "cli.bad-pyproject"
    (place / "pyproject.toml").write_text("[tool.agboss]\napp = 3\n")
    assert agboss("run", "hello", "--json").json["error"]["code"] == "cli.bad-app"


def test_usage_errors(agboss: Agboss) -> None:
    assert agboss("--version-of-nothing").code == 2
    assert (
        agboss("runn").err
        == "error: No such command 'runn'. Did you mean 'run'? [cli.usage]\nhint: see agboss --help\n"
    )
    told = agboss("run", "--json", "--thread")
    assert told.code == 2
    assert told.json["error"]["code"] == "cli.usage"
    for name in ("run", "chat", "threads list", "memory show", "check", "describe", "new", "models fetch"):
        helped = agboss(*name.split(), "--help")
        assert helped.code == 0
        assert all(option in helped.out for option in ("--app", "--offline", "--json", "--store"))


def test_importing_the_package_loads_no_shell(place: Path) -> None:
    code = (
        "import sys, agboss.app.app; before = set(sys.modules); import agboss.cli; new = set(sys.modules) - before;"
        "assert not new & {'typer', 'rich', 'prompt_toolkit'}, new; assert len(new) <= 1, new;"
        "import agboss.cli.program; assert 'rich.table' not in sys.modules; assert 'prompt_toolkit' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], env=environment(), check=True)


def test_a_missing_extra_is_one_line(place: Path) -> None:
    code = "import sys; sys.modules['typer'] = None; from agboss.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "error: the command line needs typer\nhint: pip install 'agboss[cli]'\n"


def test_a_reader_that_goes_away_is_no_fault(place: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "run", "--app", DESK, "--offline", "hello"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=place,
    )
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate()
    assert b"Traceback" not in err
    assert process.returncode == 1


@pytest.mark.parametrize("group", [(), ("threads",), ("memory",)])
def test_without_a_command_the_help_is_shown(agboss: Agboss, group: tuple[str, ...]) -> None:
    told = agboss(*group)
    assert (told.code, told.err) == (2, "")
    assert "Usage: agboss" in told.out
    assert agboss(*group, "--json").json["error"]["code"] == "cli.usage"


def test_the_version_is_told(agboss: Agboss) -> None:
    told = agboss("--version")
    assert (told.code, told.out) == (0, f"agboss {version('agboss')}\n")


def test_piped_tables_honour_columns(desk: Agboss, monkeypatch: pytest.MonkeyPatch) -> None:
    thread = desk("run", "My name is Pavel and I live in Brno, near the river and the big park.").field("thread")
    monkeypatch.setenv("COLUMNS", "60")
    told = desk("memory", "show", thread)
    table = told.out.split("\nagent: ")[0]
    assert max(len(line) for line in table.splitlines()) <= 60
