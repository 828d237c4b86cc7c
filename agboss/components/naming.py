"""Names of components: free text within reason; two that a model or a person would confuse are refused at assembly."""

from __future__ import annotations

import unicodedata

from agboss.errors import DeclarationError
from agboss_memory.wording import quoted

# Characters are looked at one by one: to compile a pattern takes as long as to read a hundred names.


def describe(target: object) -> str:
    """How a class, function or instance is called in messages."""
    name = getattr(target, "__qualname__", None) or type(target).__qualname__
    return str(name).replace("<locals>.", "").rpartition(".")[2] or str(name)


def kebab(name: str) -> str:
    """``FactChecker2`` -> ``fact-checker2``; ``fetch_page`` -> ``fetch-page``."""
    spaced = ""
    for before, letter, after in zip(f"-{name}", name, f"{name[1:]}-", strict=False):
        begins = _is_upper(letter) and (_is_lower(before) or (_is_upper(before) and "a" <= after <= "z"))
        spaced += "-" if letter == "_" else f"-{letter}" if begins else letter
    return "-".join(part for part in spaced.split("-") if part).lower()


def _is_upper(letter: str) -> bool:
    return "A" <= letter <= "Z"


def _is_lower(letter: str) -> bool:
    return "a" <= letter <= "z" or "0" <= letter <= "9"


def is_kebab(name: str) -> bool:
    """Whether a name is lowercase letters, digits and single dashes between them."""
    return all(part and all(map(_is_lower, part)) for part in name.split("-"))


def check_name(kind: str, target: object, name: str | None) -> str:
    """The component's name: as given, else the kebab-case class name. Raises DeclarationError on a bad one."""
    chosen = _text(kind, target, name)
    if not is_kebab(chosen):
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
    letters = "".join(letter if letter.isalnum() else "-" for letter in folded)
    return "-".join(part for part in letters.split("-") if part) or folded
