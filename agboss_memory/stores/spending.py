"""What was spent, by day and model. Costs are kept in billionths of a US dollar, so that sums are exact and quick."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_HALF_EVEN, Decimal

from agboss_memory.messages import UsageRecord
from agboss_memory.records import Record, Struct

_PLACES = 9


class DaySpend(Record, kw_only=True):
    """What a workflow spent on one UTC day, kept up to date by every write that books usage.

    ``model_calls`` counts booked records whose purpose is not ``tool``; ``tokens`` is input plus output; ``micro_usd``
    is the sum of known costs in millionths of a US dollar, rounded up per record.
    """

    model_calls: int = 0
    tool_calls: int = 0
    steps: int = 0
    tokens: int = 0
    micro_usd: int = 0


class SpendQuery(Record, kw_only=True):
    """Which spending is asked for.

    Attributes:
        workflow: Name of the workflow.
        first: First UTC day, such as ``2026-01-01``.
        last: Last UTC day.
        owner: Only what threads of this owner spent; None = all.
    """

    workflow: str
    first: str
    last: str
    owner: str | None = None


class SpendRow(Record, kw_only=True):
    """What one model, or one kind of cost that tools report, came to on one UTC day.

    Attributes:
        day: The UTC day of the booking.
        model: Model id as configured; for costs that a tool reports, what they were for.
        calls: Booked calls.
        input_tokens: Tokens sent.
        output_tokens: Tokens received.
        usd: The sum of the known costs, in US dollars.
        unknown: Calls whose cost is unknown.
    """

    day: str
    model: str
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: Decimal = Decimal(0)
    unknown: int = 0


class Sums(Struct):
    """What some calls add up to."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    nano_usd: int = 0
    unknown: int = 0

    def add(self, record: UsageRecord) -> None:
        """One call more."""
        self.calls += 1
        self.input_tokens += record.input_tokens
        self.output_tokens += record.output_tokens
        usd = record.usd
        if usd is None or (usd and not usd.is_finite()):
            self.unknown += 1
        elif usd:
            self.nano_usd += int(usd.scaleb(_PLACES).to_integral_value(ROUND_HALF_EVEN))

    def merge(self, other: Sums) -> None:
        """Other calls more."""
        self.calls += other.calls
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.nano_usd += other.nano_usd
        self.unknown += other.unknown

    def row(self, day: str, model: str) -> SpendRow:
        """As a record."""
        return SpendRow(
            day=day,
            model=model,
            calls=self.calls,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            usd=from_nano(self.nano_usd),
            unknown=self.unknown,
        )


def sums_by_model(records: Iterable[UsageRecord]) -> dict[str, Sums]:
    """Sums of booked calls by model."""
    found: dict[str, Sums] = {}
    for record in records:
        sums = found.get(record.model)
        if sums is None:
            sums = found[record.model] = Sums()
        sums.add(record)
    return found


def from_nano(nano_usd: int) -> Decimal:
    """Billionths of a US dollar as dollars, without zeros at the end."""
    usd = Decimal(nano_usd).scaleb(-_PLACES)
    whole = usd.to_integral_value()
    return whole if usd == whole else usd.normalize()


def known_spend(nano_usd: int, unknown: int) -> Decimal | None:
    """The cost in US dollars, None when that of a call is unknown."""
    return None if unknown else from_nano(nano_usd)
