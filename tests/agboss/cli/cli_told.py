"""What a command told, and how processes of it are started."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
DESK = "cli_desks:Desk"
COMMAND = (sys.executable, "-c", "from agboss.cli import main; main()")


@dataclass
class Told:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def field(self, name: str) -> str:
        found = [line.removeprefix(f"{name}: ") for line in self.out.splitlines() if line.startswith(f"{name}: ")]
        assert len(found) == 1, self.out
        return found[0]


Agboss = Callable[..., Told]


def environment(**more: str) -> dict[str, str]:
    """A process's environment without keys, without a locale, without what the tests set."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "TMPDIR", "SYSTEMROOT")}
    return {**kept, "PYTHONPATH": os.pathsep.join((str(ROOT), str(HERE))), "LC_ALL": "C", **more}
