"""Names that may be meant by one that nobody knows: what the hints of errors are made of."""

from __future__ import annotations

from collections.abc import Iterable


def close_names(name: str, known: Iterable[str], most: int = 1, likeness: float = 0.6) -> list[str]:
    """The known names that resemble ``name``, the likest first.

    Args:
        name: What was given.
        known: What there is.
        most: At most so many names.
        likeness: From 0 to 1, how much a name must resemble it; the default is that of ``difflib``.
    """
    import difflib  # only who errs needs it, and every program would load it

    return difflib.get_close_matches(name, list(known), n=most, cutoff=likeness)
