"""Ids, and whose a cancellation is."""

from __future__ import annotations

import asyncio
import os
import time

_VERSION = 7 << 76
_VARIANT = 2 << 62


def new_id() -> str:
    """A fresh id that sorts by the millisecond in which it was made: UUID version 7 (RFC 9562) as 36 characters."""
    chance = int.from_bytes(os.urandom(10), "big")
    value = (time.time_ns() // 1_000_000) << 80 | _VERSION | (chance >> 68) << 64 | _VARIANT | chance & (1 << 62) - 1
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def cancelled_from_outside() -> bool:
    """Whether somebody cancelled the task that runs here; else a CancelledError comes from what it waited for itself."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
