"""How a model's provider counts beside our counter: learnt from what it reports, one factor per model."""

from __future__ import annotations

LEAST, MOST = 0.8, 2.0
"""Bounds of the factor: a report beyond them says more about the report than about the text."""

SMALL = 200
"""Tokens below which an estimate is not compared: what a provider adds by itself would outweigh it."""

_WEIGHT = 0.25


class Calibration:
    """The factor by which an estimate is multiplied before it is compared with a window."""

    __slots__ = ("_factor", "_reports")

    def __init__(self) -> None:
        self._factor = 1.0
        self._reports = 0

    @property
    def factor(self) -> float:
        """Tokens of the provider per token of ours; 1.0 before the first report."""
        return self._factor

    def observe(self, estimated: int, reported: int) -> None:
        """Take in one request: what was estimated for it, and what its provider reports, both in tokens."""
        if estimated < SMALL or reported <= 0:
            return
        ratio = min(max(reported / estimated, LEAST), MOST)
        self._factor = ratio if not self._reports else self._factor + _WEIGHT * (ratio - self._factor)
        self._reports += 1
