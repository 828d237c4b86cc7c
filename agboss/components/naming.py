"""Names of components: free text within reason; two that a model or a person would confuse are refused at assembly."""

from __future__ import annotations

import re
import unicodedata

from agboss.errors import DeclarationError
from agboss_memory.wording import quoted

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def describe(target: object) -> str:
    """How a class, function or instance is called in messages."""
    name = getattr(target, "__qualname__", None) or type(target).__qualname__
    return str(name).replace("<locals>.", "").rpartition(".")[2] or str(name)


def kebab(name: str) -> str:
    """``FactChecker2`` -> ``fact-checker2``; ``fetch_page`` -> ``fetch-page``."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_", "-", name)
    return re.sub(r"-+", "-", spaced).strip("-").lower()


def check_name(kind: str, target: object, name: str | None) -> str:
    """The component's name: as given, else the kebab-case class name. Raises DeclarationError on a bad one."""
    chosen = _text(kind, target, name)
    if not _NAME.fullmatch(chosen):
        raise DeclarationError(
            "declaration.bad-name",
            f"@{kind} {describe(target)}: the name {chosen!r} is not allowed",
            f"use lowercase letters, digits and single dashes, for example {kebab(chosen) or kind!r}",
        )
    return chosen


def component_name(kind: str, target: object, name: str | None) -> str:
    """The name as given, else the kebab-case class name. Raises DeclarationError."""
    chosen = _text(kind, target, name)
    printable = all(not unicodedata.category(letter).startswith("C") for letter in chosen)
    if not chosen.strip() or chosen != chosen.strip() or len(chosen) > 64 or not printable:
        raise DeclarationError(
            "declaration.bad-name",
            f"@{kind} {describe(target)}: the name {quoted(chosen)} is not allowed",
            "use 1 to 64 printable characters without spaces at the ends",
        )
    return chosen


def _text(kind: str, target: object, name: object) -> str:
    chosen = kebab(describe(target)) if name is None else name
    if isinstance(chosen, str):
        return chosen
    text = f"@{kind} {describe(target)}: the name {quoted(chosen)} is not allowed"
    raise DeclarationError("declaration.bad-name", text, "use text")


def normal_name(name: str) -> str:
    """What is left of a name when case, spaces and punctuation do not count."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    return re.sub(r"[\W_]+", "-", folded).strip("-") or folded
