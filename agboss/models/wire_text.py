"""Text as every receiver takes it."""

from __future__ import annotations


def clean(text: str) -> str:
    """The text with every lone surrogate replaced by U+FFFD; surrogate pairs become the character they stand for."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
