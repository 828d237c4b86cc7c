"""Where in a JSON text a problem is."""

from __future__ import annotations

import json
import re

from agboss.errors import AgbossError
from agboss.server.problems import problem_of
from agboss_memory.records import Record


class Mark(Record, kw_only=True):
    """One problem.

    Attributes:
        message: What is wrong.
        pointer: JSON pointer, or empty.
        line: Line of the text, from 1; 0 = unknown.
        column: Column, from 1; 0 = unknown.
        text: That line.
    """

    message: str
    pointer: str = ""
    line: int = 0
    column: int = 0
    text: str = ""

    @property
    def caret(self) -> str:
        """What stands below the line to mark the place."""
        return " " * (self.column - 1) + "^" if self.column else ""


def marks(error: AgbossError, text: str) -> tuple[Mark, ...]:
    """The problems of an input, each with its place in the text where there is one."""
    problem = problem_of(error)
    if _broken(text)[0]:
        return (mark("", problem.detail, text),)
    found = [mark(one.pointer, one.message, text) for one in problem.problems]
    return tuple(found) or (Mark(message=f"{problem.detail}. {problem.hint}".rstrip(" .") + "."),)


def _broken(text: str) -> tuple[int, int]:
    """Line and column at which a text ceases to be JSON, 0 = it is JSON."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.lineno, error.colno
    except (ValueError, RecursionError):
        return 0, 0
    return 0, 0


def mark(pointer: str, message: str, text: str) -> Mark:
    """One problem with its place in a JSON text: where that ceases to be JSON, else the key that is meant."""
    line, column = _broken(text)
    if line:
        return Mark(message=message, line=line, column=column, text=_line(text, line))
    message = message.removeprefix("Value error, ")
    key = pointer.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
    place = re.search(re.escape(json.dumps(key)) + r"\s*:", text) if key else None
    if place is None:
        return Mark(message=message, pointer=pointer)
    line = text.count("\n", 0, place.start()) + 1
    column = place.start() - text.rfind("\n", 0, place.start())
    return Mark(message=message, pointer=pointer, line=line, column=column, text=_line(text, line))


def _line(text: str, number: int) -> str:
    lines = text.split("\n")
    return lines[number - 1] if number <= len(lines) else ""
