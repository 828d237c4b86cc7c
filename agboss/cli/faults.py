"""What went wrong, as the command line tells it: a message, a hint and an exit code, never a traceback."""

from __future__ import annotations

import traceback
from typing import Any

from agboss.errors import (
    AgbossError,
    AssemblyError,
    InvalidInputError,
    MissingExtraError,
    StoreUrlError,
    TernFailedError,
)
from agboss_memory.wording import told

FAILED = 1
"""Exit code of a run or a check that failed."""

USAGE = 2
"""Exit code of a wrong argument or a wrong configuration."""

INTERRUPTED = 130
"""Exit code after Ctrl-C."""


class CommandError(AgbossError):
    """The command line was used or configured wrongly; nothing was run."""


_USAGE_ERRORS = (CommandError, InvalidInputError, StoreUrlError, MissingExtraError)


def exit_code(error: BaseException) -> int:
    """The exit code that an error stands for."""
    return USAGE if isinstance(error, _USAGE_ERRORS) else FAILED


def as_error(error: BaseException) -> AgbossError:
    """A typed error for anything that was raised."""
    if isinstance(error, AgbossError):
        return error
    text = told(error)
    return AgbossError(
        "cli.unexpected", f"{text} ({place(error)})", "this is a fault in the workflow's code or in agboss"
    )


def cause(error: AgbossError) -> str:
    """What a failed Tern was stopped by, in one line; empty when the error says it itself."""
    if not isinstance(error, TernFailedError) or error.__cause__ is None:
        return ""
    return f"{told(error.__cause__)} ({place(error.__cause__)})"


def place(error: BaseException) -> str:
    """File and line where an exception was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "no place known"


def to_dict(error: AgbossError) -> dict[str, Any]:
    """The one JSON document of a failed command. ``run`` is there when a Tern was stored."""
    told: dict[str, Any] = {"code": error.code, "message": error.message, "hint": error.hint}
    if isinstance(error, AssemblyError):
        told["violations"] = [
            {"code": item.code, "message": item.message, "hint": item.hint}
            for item in error.exceptions
            if isinstance(item, AgbossError)
        ]
    if found := cause(error):
        told["cause"] = found
    document: dict[str, Any] = {"error": told}
    if error.run is not None:
        document["run"] = error.run.to_dict()
    return document
