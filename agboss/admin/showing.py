"""Templates, and how values are shown: whatever somebody wrote is text, and its invisible characters are seen."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined

from agboss_memory.messages import Tern

ROOT = "/admin"
PREVIEW = 1000
"""Characters of a text within a list."""

LONGEST = 200_000
"""Characters of a text on a page of its own; the rest can be downloaded."""

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]"  # admin.js has the same
)


def shown(text: object) -> str:
    """Text whose control characters are told by number, so that none of them acts on the page."""
    return _UNSEEN.sub(lambda found: f"⟦{ord(found[0]):04X}⟧", str(text).replace("\r\n", "\n"))


def cut(text: object, most: int = PREVIEW) -> str:
    """The beginning of a long text, with what is missing."""
    whole = str(text)
    if len(whole) <= most:
        return shown(whole)
    return f"{shown(whole[:most])} … [{len(whole) - most:,} more characters]"


def line(text: object, most: int = 140) -> str:
    """A text on one line."""
    whole = str(text)
    told = " ".join(shown(whole[: most * 4]).split())
    return f"{told[:most]}…" if len(told) > most or len(whole) > most * 4 else told


def around(text: str, wanted: str, most: int = 140) -> str:
    """The first place where ``wanted`` stands in a text, in whatever case, with what is around it; empty = nowhere."""
    place = text.casefold().find(wanted.casefold())
    if place < 0:
        return ""
    begin = max(0, place - most // 3)  # folding may have moved it by a few characters
    return ("…" if begin else "") + line(text[begin : begin + most], most) + ("…" if len(text) > begin + most else "")


def url(*parts: object, **query: object) -> str:
    """A path of the admin pages; None among the query is left out."""
    path = "/".join([ROOT, *(quote(str(part), safe="", errors="replace") for part in parts)])
    asked = {name: value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(asked, errors='replace')}" if asked else path


def usd(amount: Decimal | None) -> str:
    """US dollars; small amounts with more digits."""
    if amount is None:
        return "unknown"
    return f"${amount:.2f}" if amount == 0 or amount >= 1 else f"${amount:.4f}"


def cost(terns: Iterable[Tern]) -> str:
    """What Terns have cost, as text; calls of unknown price are told."""
    total, unknown = Decimal(0), 0
    for tern in terns:
        for one in tern.usage:
            total += one.usd or 0
            unknown += one.usd is None
    return f"{usd(total)} and {unknown} of unknown price" if unknown else usd(total)


def moment(value: datetime | None) -> str:
    """A moment to the second."""
    return "" if value is None else f"{value:%Y-%m-%d %H:%M:%S} UTC"


def pretty(value: Any) -> str:
    """JSON as a person reads it."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def exact(value: Any) -> str:
    """JSON as a person reads it, in which nothing is unseen: it can be decided upon, edited and read back as it was."""
    return _UNSEEN.sub(lambda found: json.dumps(found[0])[1:-1], pretty(value))


def environment() -> Environment:
    """The templates of this package."""
    made = Environment(
        loader=PackageLoader("agboss.admin"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(shown=shown, cut=cut, line=line, usd=usd, cost=cost, moment=moment, pretty=pretty, exact=exact)
    made.globals.update(url=url)
    return made
