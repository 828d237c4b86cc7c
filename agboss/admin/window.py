"""What fills a model's window, as parts of a bar."""

from __future__ import annotations

from agboss.app import WorkingMemory
from agboss_memory.fit import effective_window
from agboss_memory.records import Record

WIDTH = 1000
"""Units of the bar's length."""


class Part(Record, kw_only=True):
    """One part of the bar.

    Attributes:
        name: Which one; also its class in the style sheet.
        label: The same for people.
        tokens: Its tokens.
        begin: Where it begins, in units.
        width: Its length, in units.
    """

    name: str
    label: str
    tokens: int
    begin: float = 0.0
    width: float = 0.0


class Window(Record, kw_only=True):
    """The bar.

    Attributes:
        tokens: Tokens of the window.
        assumed: The model's window is unknown, and a usual one is shown.
        over: Tokens that do not fit.
        parts: From left to right.
    """

    tokens: int
    assumed: bool
    over: int
    parts: tuple[Part, ...]


def parts(memory: WorkingMemory) -> Window:
    """The window of a view."""
    window = effective_window(memory.context_window_tokens)
    kinds = {"summaries": 0, "live": 0, "stubs": 0}
    for row in memory.messages:
        kind = "summaries" if row.type == "SUMMARY" else "stubs" if row.state in STUBS else "live"
        kinds[kind] += row.tokens
    filled = [
        ("system", "System prompt", memory.system_prompt_tokens),
        ("summaries", "Summaries", kinds["summaries"]),
        ("live", "Live messages", kinds["live"]),
        ("stubs", "Stubs and cut messages", kinds["stubs"]),
        ("reserve", "Kept for the reply", memory.reply_reserve_tokens),
    ]
    total = sum(tokens for _, _, tokens in filled)
    if total < window:
        filled.append(("free", "Free", window - total))
    whole = max(total, window, 1)
    made: list[Part] = []
    begin = 0.0
    for name, label, tokens in filled:
        width = tokens * WIDTH / whole
        made.append(Part(name=name, label=label, tokens=tokens, begin=round(begin, 2), width=round(width, 2)))
        begin += width
    return Window(
        tokens=window,
        assumed=memory.context_window_tokens is None,
        over=max(0, total - window),
        parts=tuple(made),
    )


STUBS = frozenset({"compressed", "evicted", "cut"})
"""States of messages in whose place something shorter is sent."""
