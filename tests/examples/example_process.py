"""Examples as processes of their own: no key, no locale, a folder that is empty."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run_example(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "TMPDIR")}
    env = {**kept, "PYTHONPATH": str(ROOT), "LC_ALL": "C"}
    return subprocess.run(
        [sys.executable, str(ROOT / "examples" / arguments[0]), *arguments[1:]],
        cwd=place,
        env=env,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
