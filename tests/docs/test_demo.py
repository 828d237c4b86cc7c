"""What the README shows of ``make demo`` is what the demo prints."""

import subprocess
import sys
from pathlib import Path

from pages import ROOT, Project, matches, read_page


def test_the_readme_shows_the_end_of_the_demo(tmp_path: Path) -> None:
    shown = next(block.code for block in read_page(ROOT / "README.md").of("text"))
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "compacting_desk.py"), "--offline"],
        cwd=tmp_path,
        env=Project(tmp_path).environ,
        capture_output=True,
        encoding="utf-8",
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert matches(f"...\n{shown}...", done.stdout), done.stdout
