"""``agboss serve`` as a process on a free port of the loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-c", "from agboss.cli import main; main()")
DESK = """\
from agboss import agent, tool


@tool
def look_up(topic: str) -> str:
    "Look something up."
    return f"{topic} is blue."


@agent(description="Answers", model="local:extractive")
class Helper:
    "Answer from what was said."
"""


class Server:
    """A running server."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url

    def stop(self, how: signal.Signals = signal.SIGTERM, seconds: float = 30) -> str:
        """Ask it to stop; gives what it told on stderr."""
        self.process.send_signal(how)
        _, told = self.process.communicate(timeout=seconds)
        return told


@contextmanager
def serving(folder: Path, *arguments: str, **variables: str) -> Generator[Server]:
    """Serve ``desk:Helper`` (or what the arguments say) out of ``folder`` until the block ends."""
    (folder / "desk.py").write_text(DESK, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AGBOSS_", "COV"))}
    app = () if "--app" in arguments or "--definitions" in arguments else ("--app", "desk:Helper")
    process = subprocess.Popen(
        [*COMMAND, "serve", *app, "--port", "0", "--json", *arguments],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(ROOT), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        told = "".join(iter(process.stdout.readline, "}\n")) + "}"
        yield Server(process, json.loads(told)["url"])
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=30)
