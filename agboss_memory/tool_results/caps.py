"""What of a tool's output is stored at all, the rest is lost and the stored text says so; and what is never shortened."""

from __future__ import annotations

MAX_RESULT_CHARS = 100_000
"""Characters of any tool's output that are stored at most."""

KEPT_RESULTS = 3
"""The newest results of the live window that always stay full, read or unread."""


def capped(text: str, limit: int = 0) -> str:
    """The first characters of a tool's output, with a note that names the limit; as it is when it is not longer.

    Args:
        text: What the tool gave.
        limit: The tool's own limit in characters; 0 or less = not set. ``MAX_RESULT_CHARS`` holds in any case.
    """
    most = min(limit, MAX_RESULT_CHARS) if limit > 0 else MAX_RESULT_CHARS
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[... output cut: only its first {most} of {len(text)} characters were kept]"
