import subprocess
import sys
from pathlib import Path

import pytest
from cli_told import COMMAND, DESK, Agboss, Told, environment
from typer.testing import CliRunner

from agboss.cli.program import cli


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in (
        "AGBOSS_APP",
        "COLUMNS",
        "AGBOSS_STORE",
        "AGBOSS_OFFLINE",
        "AGBOSS_MODEL",
        "OPENROUTER_API_KEY",
        "OPENAI_API_KEY",
    ):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def agboss(place: Path) -> Agboss:
    """Runs a command in this process, in a folder of its own."""

    def run(*arguments: str, text: str = "") -> Told:
        result = CliRunner().invoke(cli, arguments, input=text)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Told(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def desk(agboss: Agboss) -> Agboss:
    """The same for ``Desk``, offline."""

    def run(*arguments: str, text: str = "") -> Told:
        return agboss("--app", DESK, "--offline", *arguments, text=text)

    return run


@pytest.fixture
def process(place: Path) -> Agboss:
    """Runs a command as a process of its own."""

    def run(*arguments: str, text: str = "", **more: str) -> Told:
        done = subprocess.run(
            [*COMMAND, *arguments], input=text.encode(), capture_output=True, env=environment(**more), check=False
        )
        return Told(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))

    return run
