"""What was paid for and could not be stored: it is booked as soon as the store takes it, and used when the Tern goes on."""

from __future__ import annotations

import logging

from agboss.run import LiveTern
from agboss_memory.contract import utc_now
from agboss_memory.errors import StoreError, ThreadDeletedError
from agboss_memory.stores.admissions import Admitted, Step
from agboss_memory.stores.contract import MemoryOutcome, Store

logger = logging.getLogger("agboss")

MOST_REFUSED = 256
"""Terns whose refused calls are kept; the calls of older ones are made again."""

REPLACED = "store.replaced"
"""The store has another file now. The thread that has this one's key there is a stranger's: nothing is booked to it."""


class Unbooked:
    """Bookings of one App that wait for a store that takes them, False when there are none; and calls it did not take."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[int, int], MemoryOutcome] = {}
        self._refused: dict[tuple[int, int], tuple[int, tuple[Step, ...]]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def keep(self, live: LiveTern) -> None:
        """Keep all that a Tern has paid. Booking is idempotent: what is there already is not booked again."""
        place = live.key, live.number
        before = self._waiting.get(place)
        kept = {item.step_key: item for item in (*(() if before is None else before.usage), *live.meter.booked)}
        if kept:
            usage = tuple(kept.values())
            self._waiting[place] = MemoryOutcome(key=live.key, tern=live.number, now=utc_now(), usage=usage)
        refused = live.journal.refused
        if refused:
            self._refused[place] = live.resumes, refused
            if len(self._refused) > MOST_REFUSED:
                del self._refused[next(iter(self._refused))]

    def take_refused(self, admitted: Admitted) -> tuple[Step, ...]:
        """Finished calls of the Tern that goes on, and that no store has. None when another App went on with it since."""
        resumes, refused = self._refused.pop((admitted.key, admitted.number), (0, ()))
        return refused if resumes == admitted.resumes - 1 else ()

    async def book(self, store: Store) -> None:
        """Try again. What still fails goes on waiting."""
        for place, outcome in tuple(self._waiting.items()):
            try:
                await store.settle(outcome)
            except ThreadDeletedError:
                pass  # its cost goes with it
            except StoreError as error:
                if error.code != REPLACED:
                    return
                _tell(outcome, "the file of its thread is gone")
            self._waiting.pop(place, None)

    def give_up(self) -> None:
        """Tell what is lost."""
        for outcome in self._waiting.values():
            _tell(outcome, "the store refused them to the end")
        self._waiting.clear()


def _tell(outcome: MemoryOutcome, why: str) -> None:
    known = [item.record.usd for item in outcome.usage if item.record.usd is not None]
    logger.error(
        "%d calls (%s USD) of turn %d could not be booked; %s", len(outcome.usage), sum(known), outcome.tern, why
    )
