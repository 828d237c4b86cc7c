"""How moments and amounts become columns."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

from agboss_memory.messages import EPOCH, as_utc


def to_micros(moment: datetime) -> int:
    """Microseconds since 1970, UTC."""
    since = as_utc(moment) - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def from_micros(micros: int) -> datetime:
    """The aware UTC moment."""
    return EPOCH + timedelta(microseconds=micros)


def to_amount(usd: Decimal | None) -> str | None:
    """A cost as decimal text, exact."""
    return None if usd is None else str(usd)


def from_amount(stored: str | None) -> Decimal | None:
    """The cost."""
    return None if stored is None else Decimal(stored)
