"""How many requests a client may send: a bucket per client that fills up again by the minute."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

MOST_CLIENTS = 10_000
"""Clients that are remembered; the one that was quiet longest is forgotten first."""


class RateLimit:
    """Token buckets.

    Args:
        per_minute: Requests per minute of one client, also the most at once; 0 = no bound.
        clock: Gives seconds.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = monotonic) -> None:
        self._most = float(per_minute)
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, client: str) -> float:
        """Count one request; 0 = it may pass, else the seconds after which another one may."""
        if not self._most:
            return 0.0
        now = self._clock()
        left, since = self._left.pop(client, (self._most, now))
        left = min(self._most, left + (now - since) * self._most / 60)
        passes = left >= 1
        self._left[client] = (left - 1 if passes else left, now)
        if len(self._left) > MOST_CLIENTS:
            self._left.popitem(last=False)
        return 0.0 if passes else (1 - left) * 60 / self._most
