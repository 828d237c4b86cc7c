"""A circuit breaker: after too many failures a server is left alone for a while."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable


class CircuitBreaker:
    """Counts failures and says whether a server may be asked.

    After the pause one caller may try; another failure opens the circuit again at once.

    Args:
        failures: Failures within ``window`` that open the circuit. Default 5.
        window: Seconds over which failures count. Default 60.
        pause: Seconds for which it stays open. Default 30.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        *,
        failures: int = 5,
        window: float = 60.0,
        pause: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit = failures
        self._window = window
        self._pause = pause
        self._clock = clock
        self._failures: deque[float] = deque(maxlen=failures)
        self._opened: float | None = None
        self._trying = False

    def wait(self) -> float:
        """Seconds until the server may be asked; 0 = now. After a pause the first caller gets 0, others wait."""
        if self._opened is None:
            return 0.0
        left = self._opened + self._pause - self._clock()
        if left > 0:
            return left
        if self._trying:
            return self._pause
        self._trying = True
        return 0.0

    def succeeded(self) -> None:
        """The server answered: all is forgotten."""
        self._failures.clear()
        self._opened = None
        self._trying = False

    def failed(self) -> None:
        """The server failed in a way that may pass."""
        now = self._clock()
        self._failures.append(now)
        full = len(self._failures) == self._limit and now - self._failures[0] <= self._window
        if self._trying or full:
            self._opened = now
        self._trying = False

    def abandoned(self) -> None:
        """The try was cancelled or says nothing about the server's health: somebody else may try."""
        self._trying = False
