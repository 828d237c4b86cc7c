"""How moments and amounts become columns."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

from agboss_memory.messages import EPOCH, as_utc

_MICROSECOND = timedelta(microseconds=1)

MOST = 2**63 - 1
"""The greatest number that a column or a parameter can hold."""


def fitting(number: int) -> int:
    """A bound or a limit as SQLite can take it; what is greater than every number stays so."""
    return max(-MOST, min(number, MOST))


def to_micros(moment: datetime) -> int:
    """Microseconds since 1970, UTC."""
    return (as_utc(moment) - EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """The aware UTC moment."""
    return EPOCH + timedelta(microseconds=micros)


def to_amount(usd: Decimal | None) -> str | None:
    """A cost as decimal text, exact."""
    return None if usd is None else str(usd)


def from_amount(stored: str | None) -> Decimal | None:
    """The cost."""
    return None if stored is None else Decimal(stored)
