"""What a command prints: UTF-8 whatever the locale, one JSON document or lines for people, warnings on stderr once."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import re
import sys
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from agboss.cli.faults import cause, to_dict
from agboss.errors import AgbossError, AssemblyError

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 160
"""Columns of a table that neither a terminal nor ``COLUMNS`` bounds."""

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """Text whose control characters are told by number: none of them steers a terminal or turns a line around."""
    return _CONTROL.sub(lambda found: f"⟦{ord(found[0]):04X}⟧", text.replace("\r\n", "\n"))


def use_utf8() -> None:
    """Make all three streams UTF-8, so that no locale can break an answer."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace" if stream is sys.stdin else "backslashreplace")


class Output:
    """The two streams of one command.

    Args:
        as_json: Print one JSON document on stdout instead of lines.
    """

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self._out: TextIO = sys.stdout
        self._err: TextIO = sys.stderr
        self._told: set[str] = set()
        self._at_start = True
        self._consoles: dict[int, Console] = {}

    @property
    def is_terminal(self) -> bool:
        """Whether a person reads stdout as it is written."""
        return not self.as_json and self._out.isatty()

    @property
    def progress_console(self) -> Console | None:
        """Where progress is drawn; None unless stderr is a terminal."""
        return self._console(self._err) if self._err.isatty() else None

    def write(self, text: str) -> None:
        """A piece of text on stdout, with its control characters made visible: an answer must not steer a terminal."""
        if self.as_json or not text:
            return
        self._out.write(visible(text))
        self._out.flush()
        self._at_start = text.endswith("\n")

    def copy(self, text: str) -> None:
        """A piece of a copy on stdout: exact for a program, made visible for a terminal."""
        self._out.write(visible(text) if self._out.isatty() else text)
        self._out.flush()

    def end_line(self) -> None:
        """Begin a new line unless one has just begun."""
        if not self._at_start:
            self.write("\n")

    def line(self, text: str = "", style: str = "") -> None:
        """A line on stdout; ``style`` shows in terminals alone, where words then wrap."""
        self.end_line()
        if style and self.is_terminal:
            self._styled(self._out, text, style)
        else:
            self.write(f"{text}\n")

    def field(self, name: str, value: str) -> None:
        """A line such as ``thread: 0198...``, easy to find for people and for programs."""
        self.line(f"{name}: {value}", "dim")

    def document(self, value: Any) -> None:
        """The one JSON document of a command."""
        self._out.write(json.dumps(value, ensure_ascii=False, indent=2, default=str) + "\n")
        self._out.flush()

    def table(self, columns: Sequence[tuple[str, dict[str, Any]]], rows: Sequence[Sequence[str]]) -> None:
        """A table on stdout.

        Args:
            columns: Heading and settings of each column, as rich takes them.
            rows: Its cells as plain text.
        """
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
        for heading, settings in columns:
            table.add_column(heading, **settings)
        for row in rows:
            table.add_row(*(Text(visible(cell)) for cell in row))
        self.end_line()
        self._console(self._out).print(table)

    def warn(self, text: str) -> None:
        """A warning on stderr; the same one is shown once."""
        if text not in self._told:
            self._told.add(text)
            self._aside("warning", text, "yellow")

    def note(self, text: str) -> None:
        """A line on stderr for people."""
        self._aside("", text, "dim")

    def error(self, error: AgbossError) -> None:
        """An error: on stderr, or as the JSON document."""
        if self.as_json:
            self.document(to_dict(error))
            return
        self._aside("error", f"{error.message} [{error.code}]", "bold red")
        if isinstance(error, AssemblyError):
            for number, item in enumerate(error.exceptions, start=1):
                self._aside("", f"  {number}. " + str(item).replace("\n", "\n   "), "")
        if found := cause(error):
            self._aside("cause", found, "red")
        elif error.hint:
            self._aside("hint", error.hint, "cyan")

    def _aside(self, label: str, text: str, style: str) -> None:
        if self._out.isatty():
            self.end_line()
        text = visible(text)
        if not self._err.isatty():
            self._err.write(f"{label}: {text}\n" if label else f"{text}\n")
            self._err.flush()
        elif label:
            self._styled(self._err, f"{label}: ", style, text)
        else:
            self._styled(self._err, text, style)

    def _styled(self, stream: TextIO, text: str, style: str, rest: str = "") -> None:
        from rich.text import Text

        self._console(stream).print(Text.assemble((visible(text), style), rest))

    def _console(self, stream: TextIO) -> Console:
        from rich.console import Console

        if id(stream) not in self._consoles:
            width = None if stream.isatty() else _pipe_width()
            self._consoles[id(stream)] = Console(file=stream, width=width, highlight=False, markup=False, emoji=False)
        return self._consoles[id(stream)]


def _pipe_width() -> int:
    asked = os.environ.get("COLUMNS", "")
    return int(asked) if asked.isdecimal() and int(asked) else PIPE_WIDTH


class _WarningHandler(logging.Handler):
    """Shows what the library warns of. A run's warning is told without its thread, which is printed anyway."""

    def __init__(self, output: Output) -> None:
        super().__init__(logging.WARNING)
        self._output = output

    def emit(self, record: logging.LogRecord) -> None:
        """Show one record."""
        self._output.warn(getattr(record, "warning", "") or record.getMessage())


@contextlib.contextmanager
def warnings_shown(output: Output) -> Generator[None]:
    """Show the library's warnings through ``output`` alone while a command runs."""
    # A retry is no news: what counts is how the last attempt ended.
    with _heard("agboss", _WarningHandler(output)), _heard("stamina", logging.NullHandler()):
        yield


@contextlib.contextmanager
def _heard(name: str, handler: logging.Handler) -> Generator[None]:
    """Give a logger's records to one handler alone."""
    logger = logging.getLogger(name)
    propagated = logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagated


@contextlib.contextmanager
def stdout_kept(output: Output) -> Generator[None]:
    """With ``--json``, what a workflow's code prints goes to stderr: stdout holds one document."""
    if not output.as_json:
        yield
        return
    with contextlib.redirect_stdout(sys.stderr):
        yield
