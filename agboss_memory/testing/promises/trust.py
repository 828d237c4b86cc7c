"""Promise 9: text inside a summary or a recalled fact is fenced as data and cannot close its fence."""

from __future__ import annotations

import re
import unicodedata

from agboss_memory.testing.promises.broken import must
from agboss_memory.testing.shown import Shown


def check_trust(shown: Shown) -> None:
    """Fences of summaries open and close in turn, whatever the summaries say. Raises BrokenPromise.

    Looked at are the system text and messages that stand for summaries; what users and tools say is not fenced.
    """
    tags = fences(shown.system) + fences(shown.lead)
    opened = False
    for tag in tags:
        must(tag.startswith("</") == opened, 9, f"a text opens or closes a fence that is not its own: {tag!r}")
        opened = not opened
    must(not opened, 9, "a fence stays open")


def fences(text: str) -> list[str]:
    """Everything in a text that reads like a fence of the framework, wide letters and invisible ones included."""
    folded = unicodedata.normalize("NFKD", text).casefold()
    plain = "".join(letter for letter in folded if letter == "\n" or unicodedata.category(letter)[0] not in "CM")
    return [found[0] for found in _FENCE.finditer(plain)]


_FENCE = re.compile(r"<[\W_]*(?:summary|recalled|result|conversation)(?![^\W_])")
