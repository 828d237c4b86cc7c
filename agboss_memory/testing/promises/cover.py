"""Promise 2: everything that was said is verbatim in the view, or inside one summary or stub, or named as left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agboss_memory.messages import Message, Summary, Tern
from agboss_memory.testing.promises.broken import must
from agboss_memory.testing.shown import Shown

MARKS = ("]", "\u2026")
"""How a cut text ends."""


def check_cover(shown: Shown, log: Sequence[Message], *, names_all: bool = True) -> None:
    """What a strategy shows of messages is what was said, and nothing vanishes.

    Args:
        shown: The request.
        log: All numbered messages, those of the running turn included.
        names_all: Whether the view itself must name what it leaves out; else the framework adds what it did not.

    Raises:
        BrokenPromise: A message is nowhere, in two summaries, both shown and named, or not as it was said.
    """
    kept = {message.number: message for message in log}
    seen = {message.number for message in shown.messages if message.number}
    summarised = _disjoint(shown.summaries)
    named = {n for item in shown.left_out if item.unit == "messages" for n in range(item.first, item.last + 1)}
    must(not seen & named, 2, f"messages {sorted(seen & named)} are shown and named as left out")
    if names_all:
        lost = sorted(set(kept) - seen - summarised - named)
        must(not lost, 2, f"messages {lost} are neither shown, nor summarised, nor named as left out")
    for message in shown.messages:
        if message.number:
            _check_verbatim(message, kept)


def check_turn_cover(shown: Shown, terns: Sequence[Tern]) -> None:
    """What a strategy shows of turns is what was said.

    Args:
        shown: The request.
        terns: All finished Terns of the thread.

    Raises:
        BrokenPromise: A Tern is not as it was, twice or out of order; or inside two summaries.
    """
    known = {tern.number: (tern.task, tern.answer, tern.status) for tern in terns}
    numbers = [tern.number for tern in shown.history]
    must(numbers == sorted(set(numbers)), 2, f"turns {numbers} are not in order, each once")
    for tern in shown.history:
        must(known.get(tern.number) == (tern.task, tern.answer, tern.status), 2, f"turn {tern.number} was changed")
    _disjoint(shown.summaries)


def _disjoint(summaries: Iterable[Summary]) -> set[int]:
    covered = [number for summary in summaries for number in range(summary.first, summary.last + 1)]
    twice = sorted({number for number in covered if covered.count(number) > 1}) if len(covered) < 10_000 else []
    must(not twice, 2, f"numbers {twice} are inside two summaries")
    return set(covered)


def _check_verbatim(message: Message, kept: dict[int, Message]) -> None:
    said = kept.get(message.number)
    must(said is not None, 2, f"message {message.number} was never said")
    if said is None:
        return
    same = (message.role, message.tool_call_id, message.thinking) == (said.role, said.tool_call_id, said.thinking)
    must(same, 2, f"message {message.number} has another role, call or reasoning than was said")
    asked = {(call.id, call.name, call.arguments) for call in message.tool_calls}
    must(asked <= {(c.id, c.name, c.arguments) for c in said.tool_calls}, 2, f"the calls of {message.number} changed")
    if message.content == said.content:
        return
    stub = message.role == "tool" and message.state in ("compressed", "evicted")
    cut = message.state == "cut" and message.content.endswith(MARKS)
    must(stub or cut, 2, f"message {message.number} is not as it was said, and neither a stub nor marked as cut")
