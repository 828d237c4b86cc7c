"""The lines of text that tell a model of a file: a notice ahead of the text, a placeholder where a file is not shown."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

from agboss_memory.messages import AttachmentRecord, MediaPart
from agboss_memory.records import Record

Absence = Literal["earlier", "not_accepted", "too_large", "no_room", "unreadable"]

LARGEST_PART = 20 * 2**20
"""Bytes; a larger file is never sent to a model."""

ABSENCES: dict[Absence, str] = {
    "earlier": "it belongs to an earlier turn and is not shown again",
    "not_accepted": "not shown, this model does not take such files",
    "too_large": f"not shown, it is larger than {LARGEST_PART // 2**20} MiB",
    "no_room": "not shown, the model's window has no room for it",
    "unreadable": "not shown, it cannot be read",
}
"""Why a file is not shown, as the model reads it."""

LONGEST_NAME = 120
"""Characters of a file name that a model reads."""

# Brackets of every width: a name must neither close its placeholder nor open a fence.
_BRACKETS = '[<>"\\[\\]\uff1c\uff1e\ufe64\ufe65\u2039\u203a\u3008\u3009\u27e8\u27e9\u276e\u276f\u2329\u232a]'


class NoticeContext(Record, kw_only=True):
    """A file that came with the message of the current turn."""

    attachment: AttachmentRecord


class PlaceholderContext(Record, kw_only=True):
    """A file that is not shown, and why."""

    attachment: AttachmentRecord
    absence: Absence


def notice(context: NoticeContext) -> str:
    """The line ahead of the text: name, type and size."""
    return f"Attached: {described(context.attachment)}"


def placeholder(context: PlaceholderContext) -> str:
    """The line in place of a file: kind, name, type and size, and why it is not there."""
    attachment = context.attachment
    return f"[{attachment.kind} {described(attachment)}: {ABSENCES[context.absence]}]"


def earlier_lines(attachments: tuple[AttachmentRecord, ...]) -> list[str]:
    """What stands for the files of an earlier turn, a line each."""
    return [placeholder(PlaceholderContext(attachment=item, absence="earlier")) for item in attachments]


def part_line(part: MediaPart) -> str:
    """How a file that is sent is shown to people: ``[image photo.png (image/png, 12.3 kB)]``."""
    return f"[{part.kind} {described(part)}]"


def described(attachment: AttachmentRecord | MediaPart) -> str:
    """``photo.png (image/png, 12.3 kB)``, on one line whatever the name holds."""
    return f"{_visible(attachment.name)} ({_visible(attachment.media_type)}, {size_text(attachment.size)})"


def size_text(size: int) -> str:
    """A number of bytes as people write it, in powers of 1000."""
    if size < 1000:
        return f"{size} B"
    amount, unit = size / 1000, "kB"
    for larger in ("MB", "GB", "TB"):
        if amount < 999.95:
            break
        amount, unit = amount / 1000, larger
    return f"{amount:.1f} {unit}"


def _visible(text: str) -> str:
    plain = "".join("_" if unicodedata.category(letter) in _HIDDEN else letter for letter in text[: LONGEST_NAME + 1])
    shown = " ".join(re.sub(_BRACKETS, "_", plain).split())
    return (shown if len(text) <= LONGEST_NAME else shown[: LONGEST_NAME - 1] + "…") or "_"


_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
