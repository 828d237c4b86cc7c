"""Counters in the text format of Prometheus."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from starlette.types import Scope

ROUTE = "agboss.route"
"""Key of a scope under which the path's template stands."""

Labels = tuple[tuple[str, str], ...]


class Metrics:
    """What was counted since the start. Labels are templates of paths, never ids."""

    def __init__(self) -> None:
        self._requests: Counter[Labels] = Counter()
        self._seconds: defaultdict[Labels, float] = defaultdict(float)
        self._terns: Counter[Labels] = Counter()
        self.running = 0

    def request(self, scope: Scope, status: int, seconds: float) -> None:
        """One request has ended; status 0 = the client was gone before an answer."""
        route = (("method", _method(scope)), ("route", str(scope.get(ROUTE, "other"))))
        self._requests[*route, ("status", str(status))] += 1
        self._seconds[route] += seconds

    def tern(self, status: str) -> None:
        """One Tern has ended."""
        self._terns[("status", status),] += 1

    def text(self) -> str:
        """All of it."""
        lines = [
            *_family("agboss_http_requests_total", "counter", "Requests that were answered.", self._requests),
            *_family("agboss_http_request_seconds_total", "counter", "Time spent on them.", self._seconds),
            *_family("agboss_terns_total", "counter", "Terns that have ended.", self._terns),
            *_family("agboss_terns_running", "gauge", "Terns that run now.", {(): self.running}),
        ]
        return "\n".join(lines) + "\n"


def _family(name: str, kind: str, help_text: str, values: Mapping[Labels, float]) -> Iterator[str]:
    yield f"# HELP {name} {help_text}"
    yield f"# TYPE {name} {kind}"
    for labels, value in sorted(values.items()):
        inside = ",".join(f'{key}="{item}"' for key, item in labels)
        told = f"{value:.6f}" if isinstance(value, float) else str(value)
        yield f"{name}{{{inside}}} {told}" if inside else f"{name} {told}"


def _method(scope: Scope) -> str:
    """The method, as long as it is one: a client could invent as many as it likes."""
    method = str(scope["method"])
    return method if method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH") else "other"
