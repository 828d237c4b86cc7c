"""Routing by words and patterns: first match wins, nothing is guessed."""

from __future__ import annotations

import re

from agboss.components.settings import Rule, RulesRouter
from agboss.errors import RouterError
from agboss.routers.contract import RouteRequest, RouteResult
from agboss.routers.deciding import NameOf, component_name, ends_here


class RouteByRules:
    """Takes the first rule that matches the task. Sees the task alone.

    Args:
        settings: The rules.
        name_of: Gives the name of a rule's target.
        finish: Name of the finish that ends a loop after an answer; None = the rules alone decide.
    """

    def __init__(self, settings: RulesRouter, *, name_of: NameOf = component_name, finish: str | None = None) -> None:
        self._rules = tuple((_patterns(rule), name_of(rule.to)) for rule in settings.rules)
        self._otherwise = None if settings.otherwise is None else name_of(settings.otherwise)
        self._finish = finish

    async def route(self, request: RouteRequest) -> RouteResult:
        """Decide.

        Raises:
            RouterError: ``router.no-match`` when no rule matches and there is no ``otherwise``.
        """
        if self._finish is not None and ends_here(request, self._finish):
            return RouteResult(next=self._finish, confidence=1.0, source="rules")
        for patterns, name in self._rules:
            if any(pattern.search(request.task) for pattern in patterns):
                return RouteResult(next=name, confidence=1.0, source="rules")
        if self._otherwise is None:
            raise RouterError(
                "router.no-match",
                f"no rule of router {request.router!r} matches the task",
                "add a rule, or name a route with otherwise=",
                router=request.router,
            )
        return RouteResult(next=self._otherwise, confidence=1.0, source="rules")


def _patterns(rule: Rule) -> tuple[re.Pattern[str], ...]:
    phrases = [r"\s+".join(map(re.escape, words.split())) for words in rule.words if words.strip()]
    sources = [rf"(?<!\w)(?:{'|'.join(phrases)})(?!\w)"] if phrases else []
    if rule.pattern is not None:
        sources.append(rule.pattern)
    return tuple(re.compile(source, re.IGNORECASE) for source in sources)
