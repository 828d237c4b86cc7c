"""Small values with units: ids, moments, durations."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from secrets import token_bytes


def new_id() -> str:
    """A fresh, sortable id: UUID version 7 as 36 characters."""
    stamp = time.time_ns() // 1_000_000
    raw = bytearray(stamp.to_bytes(6, "big") + token_bytes(10))
    raw[6] = 0x70 | (raw[6] & 0x0F)
    raw[8] = 0x80 | (raw[8] & 0x3F)
    digits = raw.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def utc_now() -> datetime:
    """The current moment, aware and in UTC."""
    return datetime.now(UTC)
