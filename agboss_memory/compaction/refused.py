"""Answers of a summariser that are no summary."""

from __future__ import annotations

import re

_NO_SUMMARY = re.compile(
    r"""\W*(
        (error|exception|traceback|fatal|failed|failure)\b\s*[:\-(\[\d]   # Error: 429 ...
        | traceback\s\(most\srecent
        | \{\s*"?(error|errors|detail)"?\s*:                            # {"error": ...}
        | (http\s)?[45]\d\d\s(bad|unauthorized|forbidden|not\sfound|too\smany|internal|service|gateway|rate)
        | (i'm|i\sam)\s(sorry|unable|not\sable)\b | sorry,\s | i\s(can't|cannot|can\snot|won't)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)


def is_no_summary(text: str) -> bool:
    """Whether a text is an error message or a refusal, or holds not one letter or digit."""
    plain = text.strip().replace("\u2019", "'")
    return _NO_SUMMARY.match(plain) is not None or not any(letter.isalnum() for letter in plain)
