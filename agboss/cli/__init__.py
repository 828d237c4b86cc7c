"""The command line: ``agboss``. The only part that knows typer and rich; thin callers of the public API."""

from __future__ import annotations

import sys

__all__ = ["main"]

_EXTRA = ("typer", "rich", "prompt_toolkit")


def main() -> None:
    """Run the command that the process was started with, and exit with its code."""
    try:
        from agboss.cli.program import (
            run,
        )  # a missing extra is told in one line, and importing this package costs nothing
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        sys.stderr.write(f"error: the command line needs {error.name}\nhint: pip install 'agboss[cli]'\n")
        sys.exit(2)
    sys.exit(run(sys.argv[1:]))
