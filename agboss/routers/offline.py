"""The visible stand-in for routers when an App is offline: word overlap, no call, no key."""

from __future__ import annotations

import re

from agboss.routers.contract import RouteOption, RouteRequest, RouteResult
from agboss.routers.deciding import confidence_of, ends_here

_WORD = re.compile(r"[^\W_]{3,}")


class RouteOffline:
    """Takes the option whose name, description and examples share most words with the task; the first by name on ties.

    Args:
        finish: Name of the finish. It ends a loop after an answer, and is never chosen by its words.
    """

    def __init__(self, *, finish: str | None = None) -> None:
        self._finish = finish

    async def route(self, request: RouteRequest) -> RouteResult:
        """Decide, with the shares of the overlap as probabilities. Never fails."""
        if self._finish is not None and ends_here(request, self._finish):
            return RouteResult(next=self._finish, confidence=1.0, source="offline")
        open_options = [option for option in request.options if option.name != self._finish] or list(request.options)
        task = _words(request.task)
        hits = {option.name: len(task & _words(_text(option))) for option in open_options}
        total = sum(hits.values())
        shares = {name: count / total if total else 1 / len(hits) for name, count in hits.items()}
        best = max(sorted(shares), key=shares.__getitem__)
        return RouteResult(
            next=best, probabilities=shares, confidence=confidence_of(shares[best], len(shares)), source="offline"
        )


def _words(text: str) -> frozenset[str]:
    return frozenset(match.group().casefold().removesuffix("s") for match in _WORD.finditer(text))


def _text(option: RouteOption) -> str:
    return " ".join((option.name, option.description, *option.examples))
