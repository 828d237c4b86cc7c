"""The tree of commands, and the border at which every fault becomes a line and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import typer
from typer.core import TyperGroup

from agboss.cli import (
    chatting,
    deciding,
    inspecting,
    memory,
    project,
    running,
    schemas,
    serving,
    spending,
    threads,
    weights,
)
from agboss.cli.faults import FAILED, INTERRUPTED, USAGE, CommandError
from agboss.cli.options import root_options, shared_options
from agboss.cli.output import Output, use_utf8


@runtime_checkable
class _UsageFault(Protocol):
    """What the parser raises."""

    exit_code: int

    def format_message(self) -> str: ...


class Program(TyperGroup):
    """The root command; leaves no exception to the interpreter."""

    def main(self, args: Sequence[str] | None = None, *_: Any, **extra: Any) -> Any:
        """Run one command line and exit with its code: 0 done, 1 failed, 2 used or configured wrongly."""
        use_utf8()
        given = list(sys.argv[1:] if args is None else args)
        extra.pop("standalone_mode", None)
        sys.exit(_run(super().main, [_readable(item) for item in given], extra))


def _run(start: Any, given: list[str], extra: dict[str, Any]) -> int:
    try:
        code = start(given, standalone_mode=False, **extra)
    except (KeyboardInterrupt, typer.Abort):
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return FAILED
    except Exception as error:
        if not isinstance(error, _UsageFault):
            raise
        message = error.format_message().rstrip(".")
        Output("--json" in given).error(
            CommandError("cli.usage", message or "a command is missing", "see agboss --help")
        )
        return USAGE
    return code if isinstance(code, int) else 0


def _readable(argument: str) -> str:
    """An argument as UTF-8, when the locale has left its bytes undecoded."""
    if any("\udc80" <= letter <= "\udcff" for letter in argument):
        return os.fsencode(argument).decode("utf-8", errors="replace")
    return argument


cli = typer.Typer(
    name="agboss",
    cls=Program,
    help="Run agent workflows and look into their memory.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
cli.callback(invoke_without_command=True)(root_options)
for module in (running, chatting, deciding, inspecting, serving, spending, schemas, project):
    module.register(cli)
for name, group in (("threads", threads.group), ("memory", memory.group), ("models", weights.group)):
    group.callback(invoke_without_command=True)(shared_options)
    cli.add_typer(group, name=name)


def run(arguments: Sequence[str]) -> int:
    """Run one command line; gives its exit code."""
    try:
        cli(list(arguments), prog_name="agboss")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else FAILED
    return 0
