"""Names of components: free text within reason; two that a model or a person would confuse are refused at assembly."""

from __future__ import annotations

import re
import unicodedata

from agboss.components.metadata import describe, kebab
from agboss.errors import DeclarationError


def component_name(kind: str, target: object, name: str | None) -> str:
    """The name as given, else the kebab-case class name. Raises DeclarationError."""
    chosen = kebab(describe(target)) if name is None else name
    printable = all(not unicodedata.category(letter).startswith("C") for letter in chosen)
    if not chosen.strip() or chosen != chosen.strip() or len(chosen) > 64 or not printable:
        raise DeclarationError(
            "declaration.bad-name",
            f"@{kind} {describe(target)}: the name {chosen!r:.80} is not allowed",
            "use 1 to 64 printable characters without spaces at the ends",
        )
    return chosen


def normal_name(name: str) -> str:
    """What is left of a name when case, spaces and punctuation do not count."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    return re.sub(r"[\W_]+", "-", folded).strip("-") or folded
