"""What a decision server answered, checked: an answer that cannot be right is an error, never a guess."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeGuard, cast

from agboss.routers.deciding import confidence_of
from agboss_memory.records import Record, field

TOLERANCE = 0.05
"""How far probabilities may sum from 1. Servers round them to two decimals."""
_ROUNDING = 0.005


class BadAnswerError(ValueError):
    """An answer that breaks the decision API. Its text says how."""


class Choice(Record, kw_only=True):
    """A checked answer to a choice question.

    Attributes:
        option: The chosen option.
        probabilities: Per option; empty when the server gives none.
        confidence: (m - 1/n) / (1 - 1/n), recomputed; None without probabilities.
        reported_confidence: The server's own figure when it is between 0 and 1.
    """

    option: str
    probabilities: Mapping[str, float] = field(default_factory=dict[str, float])
    confidence: float | None = None
    reported_confidence: float | None = None


class Decisions(Record, kw_only=True):
    """A server's reply.

    Attributes:
        answers: Raw answers by question id.
        input_tokens: Tokens read, 0 when not reported.
        output_tokens: Tokens written, 0 when not reported.
        usd: Cost in US dollars as reported, else None.
    """

    answers: Mapping[str, Any]
    input_tokens: int = 0
    output_tokens: int = 0
    usd: Decimal | None = None


def read_reply(body: bytes) -> Decisions:
    """Read a 200 body. Raises BadAnswerError when it is no reply of the decision API."""
    try:
        reply: Any = json.loads(body, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise BadAnswerError(f"the body is no JSON ({str(error)[:80]})") from None
    answers = _mapping(reply).get("answers")
    if not isinstance(answers, dict):
        raise BadAnswerError("there is no 'answers' object")
    usage = _mapping(_mapping(reply).get("usage"))
    cost = usage.get("cost")
    return Decisions(
        answers=cast("dict[str, Any]", answers),
        input_tokens=_count(usage.get("input_tokens")),
        output_tokens=_count(usage.get("output_tokens")),
        usd=Decimal(str(cost)) if _is_number(cost) and cost >= 0 else None,
    )


def read_choice(decisions: Decisions, question: str, options: Sequence[str]) -> Choice:
    """Read the answer to a choice question.

    Raises:
        BadAnswerError: No such answer, another type, a choice that is no option or not the most probable one, or
            probabilities that are none.
    """
    answer = _mapping(decisions.answers.get(question))
    if answer.get("type", "choice") != "choice":
        raise BadAnswerError(f"the answer to {question!r} is of type {str(answer.get('type'))[:40]!r}, not 'choice'")
    option = answer.get("choice")
    if not isinstance(option, str) or option not in options:
        raise BadAnswerError(f"the choice {str(option)[:80]!r} is not one of the options")
    reported = answer.get("confidence")
    kept = float(reported) if _is_number(reported) and 0 <= reported <= 1 else None
    given = answer.get("probabilities")
    if given is None:
        return Choice(option=option, reported_confidence=kept)
    probabilities = _probabilities(given, options)
    top = max(probabilities.values())
    if probabilities[option] < top:
        raise BadAnswerError(f"the choice {option!r} has probability {probabilities[option]}, another has {top}")
    return Choice(
        option=option,
        probabilities=probabilities,
        confidence=confidence_of(top, len(options)),
        reported_confidence=kept,
    )


def _probabilities(given: Any, options: Sequence[str]) -> dict[str, float]:
    shares = _mapping(given)
    unknown = [name for name in shares if name not in options]
    if unknown:
        raise BadAnswerError(f"there is a probability for {unknown[0][:80]!r}, which is not one of the options")
    if not shares or not all(_is_number(share) and 0 <= share <= 1 for share in shares.values()):
        raise BadAnswerError("the probabilities are not numbers between 0 and 1")
    total = math.fsum(shares.values())
    # Each of n rounded figures may be off by 0.005, so many options stray further than the tolerance.
    if abs(total - 1) > max(TOLERANCE, _ROUNDING * len(options)) + 1e-9:
        raise BadAnswerError(f"the probabilities sum to {total:.2f}")
    return {option: float(shares.get(option, 0.0)) for option in options}


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _count(value: Any) -> int:
    return int(value) if _is_number(value) and value >= 0 else 0


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON number")
