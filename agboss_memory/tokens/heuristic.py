"""A guess at token counts, and a bound of them, that need no vocabulary."""

from __future__ import annotations

from collections.abc import Sequence

# Tokens per character by its length in UTF-8, measured on o200k_base and rounded up: it is better to think a text too
# long than to overflow a window. Two bytes: Greek, Cyrillic, Arabic. Three: Chinese, Japanese, Korean, Indic. Four:
# emoji and rare ideographs.
_WIDE2, _WIDE3, _WIDE4 = 0.6, 0.9, 2.5
_ASCII = 0.25


def _estimate(text: str) -> int:
    if text.isascii():
        return -(-len(text) // 4)
    ascii_only = len(text.encode("ascii", "ignore"))
    wide4 = len(text.encode("utf-16-le", "surrogatepass")) // 2 - len(text)
    rest = len(text) - ascii_only - wide4
    bytes_of_rest = len(text.encode("utf-8", "surrogatepass")) - ascii_only - 4 * wide4
    wide3 = bytes_of_rest - 2 * rest
    weight = _ASCII * ascii_only + _WIDE2 * (rest - wide3) + _WIDE3 * wide3 + _WIDE4 * wide4
    return int(weight) + (weight > int(weight))


class HeuristicCounter:
    """Counts by the width of characters. Fast, never fails, errs on the high side for non-Latin text."""

    @property
    def name(self) -> str:
        """``heuristic``."""
        return "heuristic"

    def count(self, texts: Sequence[str]) -> list[int]:
        """Estimated tokens of each text."""
        return [_estimate(text) for text in texts]

    def truncate(self, text: str, limit: int) -> str:
        """The longest prefix whose estimate is at most ``limit``."""
        if limit <= 0:
            return ""
        if _estimate(text) <= limit:
            return text
        low, high = 0, min(len(text), 4 * limit + 1)  # no character weighs less than a quarter
        while high - low > 1:
            middle = (low + high) // 2
            if _estimate(text[:middle]) <= limit:
                low = middle
            else:
                high = middle
        return text[:low]


def most_tokens(text: str) -> int:
    """An upper bound of a text's tokens that needs no vocabulary: no byte-level encoding makes more of a byte than one."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
