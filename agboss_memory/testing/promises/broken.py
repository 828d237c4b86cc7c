"""How a check fails."""

from __future__ import annotations

NAMES = {
    1: "pairs",
    2: "cover",
    3: "pins",
    4: "progress",
    5: "fit",
    6: "append-only",
    7: "once",
    8: "isolation",
    9: "trust",
    10: "accounting",
    11: "total functions",
    12: "fails at start",
    13: "stable prefix",
}


class BrokenPromise(AssertionError):
    """One of the thirteen promises does not hold.

    Attributes:
        number: Which one.
    """

    def __init__(self, number: int, what: str) -> None:
        super().__init__(f"promise {number} ({NAMES[number]}): {what}")
        self.number = number


def must(holds: bool, number: int, what: str) -> None:
    """Raises BrokenPromise unless it holds."""
    if not holds:
        raise BrokenPromise(number, what)
