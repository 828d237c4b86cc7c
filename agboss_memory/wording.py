"""Values and exceptions of other people's code as text, whatever their ``__repr__`` and ``__str__`` do."""

from __future__ import annotations


def quoted(value: object, most: int = 80) -> str:
    """``repr(value)``, at most ``most`` characters of it; the name of its type where ``repr`` raises.

    It raises more often than one thinks: for a whole number of more than 4300 digits too.
    """
    try:
        text = repr(value)
    except (Exception, SystemExit):
        text = f"<{type(value).__name__} that cannot be shown>"
    return text[:most]


def text_of(value: object) -> str:
    """``str(value)``; empty where it raises."""
    try:
        return str(value)
    except (Exception, SystemExit):
        return ""


def told(error: BaseException) -> str:
    """An exception with its kind, such as ``ValueError: no such day``; the kind alone when it says nothing."""
    text = text_of(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
