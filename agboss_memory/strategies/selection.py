"""Which atoms a window holds, and how the rest is named. Shared by every kind."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal

from agboss_memory.atoms import Atom, complete, in_loop, merged, named, opened
from agboss_memory.contract import Budget, LeftOut, MemoryView
from agboss_memory.fit.estimate import effective_window
from agboss_memory.messages import Message, Summary
from agboss_memory.records import Record, replace
from agboss_memory.strategies.reading import Loaded, shown_tokens

_LOG = logging.getLogger("agboss_memory")


class WindowRule:
    """Says how large the window is, and warns once when nothing is known of it. One per strategy object."""

    def __init__(self) -> None:
        self._warned = False

    def window(self, budget: Budget, agent: str) -> int:
        """The window in tokens."""
        if (budget.window is None or budget.window <= 0) and not self._warned:
            self._warned = True
            _LOG.warning(
                "agent %r: the context window of its model is unknown; %d tokens are assumed. Set context_window=.",
                agent,
                effective_window(None),
            )
        return effective_window(budget.window)


def share(window: int, ratio: Decimal) -> int:
    """A token budget: the floor of the exact product."""
    return int(window * ratio)


class Picked(Record, kw_only=True):
    """What a rule selected: kept atoms, oldest first, and the others with a reason."""

    kept: tuple[Atom, ...]
    left: tuple[tuple[Atom, str], ...] = ()


def usable(atoms: Iterable[Atom]) -> Picked:
    """Without what no request may hold: orphans, blank answers, system text (which comes from the definition)."""
    kept: list[Atom] = []
    left: list[tuple[Atom, str]] = []
    for atom in atoms:
        reason = _unusable(atom)
        if reason:
            left.append((atom, reason))
        else:
            kept.append(atom)
    return Picked(kept=tuple(kept), left=tuple(left))


def _unusable(atom: Atom) -> str:
    head = atom.head
    if atom.orphan:
        return "no_call"
    if head.role == "system":
        return "system_text"
    blank = head.role == "assistant" and not (head.content.strip() or head.tool_calls or head.thinking)
    return "empty" if blank else ""


def within_tokens(atoms: Sequence[Atom], budget: int) -> Picked:
    """The newest atoms whose sum is at most ``budget`` tokens; the newest always; in a tool loop its task too, free."""
    room = budget

    def fits(atom: Atom) -> bool:
        nonlocal room
        room -= shown_tokens(atom)
        return room >= 0

    return _suffix(atoms, fits, keep_newest=True)


def within_messages(atoms: Sequence[Atom], count: int) -> Picked:
    """The atoms that lie whole within the newest ``count`` messages; in a tool loop its task too, free."""
    room = count

    def fits(atom: Atom) -> bool:
        nonlocal room
        room -= len(atom.members)
        return room >= 0

    return _suffix(atoms, fits, keep_newest=False)


def _suffix(atoms: Sequence[Atom], fits: Callable[[Atom], bool], *, keep_newest: bool) -> Picked:
    task = _task(atoms) if in_loop(atoms) else -1
    kept: list[Atom] = []
    left: list[tuple[Atom, str]] = []
    full = False
    for index in range(len(atoms) - 1, -1, -1):
        atom = atoms[index]
        if index == task:
            kept.append(atom)
            continue
        newest = index == len(atoms) - 1
        if not full and not fits(atom):
            full = not (newest and (keep_newest or atom.from_user or task >= 0))
        if full:
            left.append((atom, "over_budget"))
        else:
            kept.append(atom)
    return Picked(kept=tuple(kept[::-1]), left=tuple(left[::-1]))


def _task(atoms: Sequence[Atom]) -> int:
    return max((index for index, atom in enumerate(atoms) if atom.from_user), default=-1)


def beyond(loaded: Loaded, summaries: Sequence[Summary]) -> list[LeftOut]:
    """What was not even read, less what summaries stand for."""
    ranges: list[LeftOut] = []
    number = 1
    for summary in (*summaries, Summary(first=loaded.first, last=loaded.first, text="")):
        last = min(summary.first, loaded.first) - 1
        if number <= last:
            ranges.append(LeftOut(first=number, last=last, reason="beyond_reach", unit="messages"))
        number = max(number, summary.last + 1)
    return ranges


def view_of(
    loaded: Loaded, picked: Sequence[Picked], *, summaries: tuple[Summary, ...] = (), led: bool = False
) -> MemoryView:
    """The view of the last of these selections; all of them say what was left out. ``led``: a summary will lead it."""
    kept, headless = opened(picked[-1].kept, led=led)
    left = [(number, reason) for pick in picked for atom, reason in pick.left for number in atom.numbers]
    left += [(number, "no_opening_user") for atom in headless for number in atom.numbers]
    left += [(message.number, "repeated") for atom in kept for message in atom.extra]
    covered = [(number, reason) for number, reason in left if not _covered(number, summaries)]
    return MemoryView(
        messages=tuple(message for atom in kept for message in complete(atom)),
        left_out=merged((*beyond(loaded, summaries), *named(covered))),
    )


def _covered(number: int, summaries: Sequence[Summary]) -> bool:
    return any(summary.first <= number <= summary.last for summary in summaries)


def mapped(atoms: Iterable[Atom], change: Callable[[Message], Message]) -> tuple[Atom, ...]:
    """The atoms with every shown message replaced."""
    return tuple(
        replace(atom, head=change(atom.head), results=tuple(change(result) for result in atom.results))
        for atom in atoms
    )
