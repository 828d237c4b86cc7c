"""Published JavaScript clients: installed once into ``.cache``, run as programs that print JSON.

``AGBOSS_NPM_SECONDS`` (300) bounds the installation, ``AGBOSS_CLIENT_SECONDS`` (60) one run of a client.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

NPM_SECONDS = float(os.environ.get("AGBOSS_NPM_SECONDS", "300"))
CLIENT_SECONDS = float(os.environ.get("AGBOSS_CLIENT_SECONDS", "60"))
ROOT = Path(__file__).parents[2]
CLIENTS = ROOT / "tests" / "e2e" / "clients"
DECLARED = ("package.json", "package-lock.json")
MISSING = next((name for name in ("node", "npm") if shutil.which(name) is None), None)
"""The program that is not installed; None = both are."""


def installed() -> Path:
    """The folder with ``node_modules``. Test processes may ask at the same time: it is made aside and renamed."""
    said = b"".join((CLIENTS / name).read_bytes() for name in DECLARED)
    place = ROOT / ".cache" / f"clients-{hashlib.sha256(said).hexdigest()[:12]}"
    if place.is_dir():
        return place
    place.parent.mkdir(exist_ok=True)
    made = Path(mkdtemp(dir=place.parent))
    for name in DECLARED:
        shutil.copy(CLIENTS / name, made)
    command = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    done = subprocess.run(command, cwd=made, capture_output=True, text=True, timeout=NPM_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    try:
        made.rename(place)
    except OSError:  # another process was faster
        shutil.rmtree(made)
    return place


def run_client(folder: Path, script: str, *arguments: str) -> Any:
    """What a script of ``tests/e2e/clients`` prints, run in ``folder``."""
    (folder / "node_modules").symlink_to(installed() / "node_modules")
    shutil.copy(CLIENTS / script, folder)
    command = ("node", script, *arguments)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=CLIENT_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
