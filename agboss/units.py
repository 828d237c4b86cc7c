"""Small values with units: ids and moments."""

from __future__ import annotations

from datetime import UTC, datetime

import uuid_utils


def new_id() -> str:
    """A fresh, sortable id: UUID version 7 as 36 characters."""
    return str(uuid_utils.uuid7())


def utc_now() -> datetime:
    """The current moment, aware and in UTC."""
    return datetime.now(UTC)
