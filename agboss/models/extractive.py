"""``local:extractive``: a model without a model. It quotes its own context and never makes anything up.

It exists so that memory can be watched at work without a key, a download or a network: what is inside the view is
answered with a quotation, what is outside is not answered at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, cast

import anyio.lowlevel

from agboss.errors import ModelError
from agboss.models.chat import ModelReply, ModelRequest, ModelUsage
from agboss.models.statements import Sight, Statement, look, sentences, turns_to_summarise

EXTRACTIVE_ID = "local:extractive"
NOTHING = "I find nothing about that in what I can see."

_ENOUGH = 0.5
"""Least share of the task's content words that a quotation must contain."""
_SUMMARY_TOKENS = 512
"""Longest summary in tokens when the call sets none: the default of ``Compaction.max_tokens``."""
_PIECES = 4
_QUOTE_CHARS = 600
_NOTE_CHARS = 200

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_SILENT_WORDS = (
    "a about again all also am an and any are as at be been but by can could did do does earlier for from get "
    "give had has have he her him his how i if in into is it its know let list me mine my of on or our please "
    "recall remember remind repeat said say she should show so some sure tell than that the their them then "
    "there these they this those to told too up us was we were what when where which who whom whose why will "
    "with would you your yours"
)
_SILENT = frozenset(_SILENT_WORDS.split())
_VAGUE = {"favorit": 0.25} | dict.fromkeys(
    ("nam", "numb", "number", "city", "color", "kind", "day", "tim", "dat", "plac", "thing", "call"), 0.5
)
"""Stems that say little about what is asked for, with their weight; all others weigh 1."""
_OPENING = r"^(?:(?:please|and|so|now)[\s,]+)*"
_COMMANDING = re.compile(
    _OPENING + r"(?:tell|remind|recall|repeat|list|give|show|say|summari[sz]e|explain|find|describe)\b(?!\s*:)",
    re.IGNORECASE,
)
_ASKING = re.compile(
    _OPENING + r"(?:what|who|whom|whose|where|when|which|why|how|do|does|did|is|are|was|were|am|can|could|would|should|"
    r"has|have|had)(?:['’]s)?\b(?!\s*:)",
    re.IGNORECASE,
)
_RANK = {"user": 2, "summary": 2, "recalled": 2, "result": 1, "assistant": 0}


class ExtractiveModel:
    """Answers by quoting the best-matching statement of the view; summarises by picking statements. Costs nothing."""

    async def generate(self, request: ModelRequest) -> ModelReply:
        """Answer one request. Offered tools are ignored.

        Raises:
            ModelError: ``model.cannot`` when the output schema asks for more than text fields.
        """
        text = _summary(request) if request.purpose == "compaction" else _answer(look(request.system, request.messages))
        if request.output_schema is not None:
            text = _filled(request.output_schema, text, request.caller)
        for piece in _pieces(text):
            await anyio.lowlevel.checkpoint()
            if request.on_text is not None:
                request.on_text(piece)
        usage = ModelUsage(input_tokens=_tokens(request.text), output_tokens=_tokens(text), free=True, measured=False)
        return ModelReply(text=text, usage=usage, finish_reason="stop")


def stems(text: str) -> frozenset[str]:
    """The content words of a text, each cut to a light stem."""
    words = (match.group().casefold() for match in _WORD.finditer(text))
    return frozenset(_stem(word) for word in words if re.split("['’]", word)[0] not in _SILENT)


def _stem(word: str) -> str:
    word = re.sub(r"['’].*$", "", word).replace("our", "or")
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    for ending in ("ings", "ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)]
            break
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def _answer(sight: Sight) -> str:
    said = [sentence for sentence in sentences(sight.task) if not _asks(sentence)]
    asked = [sentence for sentence in sentences(sight.task) if _asks(sentence)]
    if said and not asked:
        return f"Noted: {shorten(' '.join(said), _NOTE_CHARS)}"
    in_task = tuple(Statement(text=sentence, speaker="user") for sentence in said)
    best = _best(stems(" ".join(asked)), (*sight.statements, *in_task))
    return NOTHING if best is None else _quote(best)


def _asks(sentence: str) -> bool:
    bare = sentence.rstrip("\"')]")
    if bare.endswith(("?", "？")) or _COMMANDING.match(sentence):
        return True
    return not bare.endswith((".", "!", "。", "！")) and _ASKING.match(sentence) is not None


def _best(wanted: frozenset[str], statements: tuple[Statement, ...]) -> Statement | None:
    total = sum(_VAGUE.get(stem, 1.0) for stem in wanted)
    best, best_key = None, (0.0, 0, 0)
    for at, statement in enumerate(statements):
        if statement.asks or not total:
            continue
        share = sum(_VAGUE.get(stem, 1.0) for stem in wanted & stems(statement.text)) / total
        key = (round(share, 6), _RANK[statement.speaker], at)
        if share >= _ENOUGH and key > best_key:
            best, best_key = statement, key
    return best


def _quote(statement: Statement) -> str:
    summary = f"From the summary of turns {statement.turns}" if statement.turns else "From the summary"
    lead = {
        "user": "You said",
        "summary": summary,
        "recalled": "I recall",
        "result": "An earlier step said",
        "assistant": "I answered",
    }
    return f'{lead[statement.speaker]}: "{shorten(statement.text, _QUOTE_CHARS)}"'


def _summary(request: ModelRequest) -> str:
    budget = request.settings.max_tokens or _SUMMARY_TOKENS
    tasks, found = turns_to_summarise(request.messages)
    stated = [statement for statement in found if not statement.asks]
    first = [statement.text for statement in stated if statement.speaker != "assistant"]
    rest = [statement.text for statement in stated if statement.speaker == "assistant"]
    picked = list[str]()
    for sentence in dict.fromkeys(first + rest):
        if _tokens(" ".join([*picked, sentence])) <= budget:
            picked.append(sentence)
    if picked:
        return " ".join(picked)
    whole = next(iter(first + rest + tasks + [statement.text for statement in found]), "")
    return _fit(" ".join(whole.split()), budget)


def _fit(text: str, budget: int) -> str:
    while text and _tokens(text) > budget:
        text = shorten(text, max(1, len(text) * 3 // 4)) if len(text) > 1 else ""
    return text


def shorten(text: str, limit: int) -> str:
    """At most ``limit`` characters of a text, marked with an ellipsis when something was cut."""
    return text if len(text) <= limit else text[: max(0, limit - 1)].rstrip() + "…"


def _tokens(text: str) -> int:
    plain = sum(character.isascii() for character in text)
    return -(-plain // 4) + (len(text) - plain)


def _filled(schema: dict[str, Any], text: str, caller: str) -> str:
    properties = cast("dict[str, dict[str, Any]]", schema.get("properties", {}))
    required = cast("list[str]", schema.get("required", []))
    if schema.get("type") != "object" or not all(_takes_text(properties.get(name, {})) for name in required):
        raise ModelError(
            "model.cannot",
            f"the extractive model of {caller!r} can only fill text fields, and the output schema asks for more",
            "configure a real model for this component, or leave out --offline",
            caller=caller,
            model=EXTRACTIVE_ID,
        )
    fields = {name: shorten(text, properties[name].get("maxLength", len(text))) for name in required}
    return json.dumps(fields, ensure_ascii=False)


def _takes_text(field: dict[str, Any]) -> bool:
    return field.get("type") == "string" and not field.keys() & {"enum", "const", "pattern", "format"}


def _pieces(text: str) -> Iterator[str]:
    size = max(1, -(-len(text) // _PIECES))
    for start in range(0, len(text), size):
        yield text[start : start + size]
