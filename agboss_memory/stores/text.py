"""Any Python text as text that every database takes, and back, one to one.

NUL ends strings in some databases and lone surrogates have no UTF-8; both come from real tools and real models. They
are written as an escape (U+0010) and four hex digits. Text without them, which is nearly all, is stored as it is.
"""

from __future__ import annotations

import re

ESCAPE = "\x10"

_UNSAFE = "[\x00\x10\ud800-\udfff]"  # compiled when the first text needs it: that takes as long as many texts
_ESCAPED = "\x10([0-9a-f]{4})"


def _escape(match: re.Match[str]) -> str:
    return f"{ESCAPE}{ord(match[0]):04x}"


def _unescape(match: re.Match[str]) -> str:
    return chr(int(match[1], 16))


def encode_text(text: str) -> str:
    """Text that can be stored. Different texts stay different."""
    if text.isascii():
        if "\x00" not in text and ESCAPE not in text:
            return text
    elif re.search(_UNSAFE, text) is None:
        return text
    return re.sub(_UNSAFE, _escape, text)


def decode_text(stored: str) -> str:
    """The text that ``encode_text`` was given."""
    return re.sub(_ESCAPED, _unescape, stored) if ESCAPE in stored else stored


def encode_optional(text: str | None) -> str | None:
    """``encode_text`` that lets None pass."""
    return None if text is None else encode_text(text)


def decode_optional(stored: str | None) -> str | None:
    """``decode_text`` that lets None pass."""
    return None if stored is None else decode_text(stored)
