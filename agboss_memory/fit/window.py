"""Fit for exact windows: whole oldest atoms go, then results of the open atom are cut, then summaries go, then all is cut.

A summary is all that is left of a long past: results keep a share of the room, but only what exceeds it outlives one.
"""

from __future__ import annotations

from collections.abc import Sequence

from agboss_memory.atoms import Atom, atoms_of, complete, in_loop, merged, named
from agboss_memory.contract import Budget, LeftOut, MemoryView, TokenCounter
from agboss_memory.errors import StrategyError
from agboss_memory.fit.estimate import counter_of, cut_to, effective_window, sizes
from agboss_memory.messages import Message
from agboss_memory.records import Record, replace
from agboss_memory.render import numbered_summaries, placed

REASON = "over_window"

JOIN = 2
"""Tokens that joining the addendum to the system text may add."""

SUMMARY_SHARE = 2
"""Several summaries together take at most half of the room when not everything fits."""

RESULT_SHARE = 4
"""Results of the open atom keep a quarter of the room together before summaries are left out for them."""


class WindowFit(Record, kw_only=True):
    """A request with an exact window before it is sent.

    Attributes:
        agent: Name of the agent, for errors.
        view: The strategy's view; ``messages`` is all that is sent.
        fixed: System text and tool schemas, without the view's ``system_addendum``.
        budget: Window, reply reserve, counter; ``overhead`` counts when there is no ``fixed``.
    """

    agent: str = ""
    view: MemoryView
    fixed: tuple[str, ...] = ()
    budget: Budget = Budget()


def room_for(request: WindowFit) -> int:
    """Tokens left for messages and summaries.

    Raises:
        StrategyError: ``memory.fixed-overhead``: there is no room at all.
    """
    budget = request.budget
    window = budget.calibrated(effective_window(budget.window))
    counter = counter_of(budget)
    overhead = sum(counter.count(list(request.fixed))) if request.fixed else budget.overhead
    fixed = overhead + budget.reply_reserve
    if fixed >= window:
        raise StrategyError(
            "memory.fixed-overhead",
            f"agent {request.agent!r}: system text, tool schemas and reply reserve take {fixed} tokens, "
            f"the window has {window}",
            "shorten the prompt, offer fewer tools, lower max_tokens, or set context_window=",
            fixed=fixed,
            window=window,
        )
    return window - fixed


def view_tokens(view: MemoryView, counter: TokenCounter) -> int:
    """What a view adds to the estimate of a request."""
    addendum = counter.count([view.system_addendum])[0] + JOIN if view.system_addendum else 0
    return addendum + sum(sizes(view.messages or (), counter))


def fit_window(request: WindowFit) -> MemoryView:
    """Leave out and cut until the request fits. Only copies are cut.

    Raises:
        StrategyError: ``memory.fixed-overhead``: system text, schemas and reply reserve alone fill the window;
            ``memory.open-round``: the newest user message and the open tool round do not fit, however they are cut.
    """
    counter = counter_of(request.budget)
    room = room_for(request)
    view = request.view
    over = view_tokens(view, counter) - room
    if over <= 0:
        return view
    view = _without_most_summaries(view, room // SUMMARY_SHARE, counter)
    view = _without_oldest(view, view_tokens(view, counter) - room, counter)
    over = view_tokens(view, counter) - room
    if over > 0 and view.summaries:
        results = sum(message.role == "tool" for message in view.messages or ())
        least = room // (RESULT_SHARE * max(results, 1))
        view = replace(view, messages=cut_messages(view.messages or (), over, counter, roles=("tool",), least=least))
    while (over := view_tokens(view, counter) - room) > 0 and view.summaries:
        view = _without_summary(view)
    view = _opened(view)
    if over > 0:
        view = replace(view, messages=cut_messages(view.messages or (), over, counter))
    over = view_tokens(view, counter) - room
    if over > 0:
        raise no_room(request.agent, room, over)
    return view


def no_room(agent: str, room: int, over: int) -> StrategyError:
    """The error for a request that cannot be cut any further."""
    return StrategyError(
        "memory.open-round",
        f"agent {agent!r}: the newest user message and the open tool round exceed the room by {over} "
        f"tokens after all that can be cut was cut; there are {room} tokens for them",
        "let the tools be called with shorter arguments, or set a larger context_window=",
        room=room,
        over=over,
    )


def _without_summary(view: MemoryView) -> MemoryView:
    gone = view.summaries[0]
    left = LeftOut(first=gone.first, last=gone.last, reason=REASON, unit="messages")
    return placed(replace(view, left_out=merged((*view.left_out, left))), view.summaries[1:])


def _without_most_summaries(view: MemoryView, room: int, counter: TokenCounter) -> MemoryView:
    """Many summaries together must not push out what was said last: the oldest of them go first."""
    sizes_of = counter.count(numbered_summaries(view.summaries))
    total = sum(sizes_of)
    for size in sizes_of[:-1]:
        if total <= room:
            break
        view = _without_summary(view)
        total -= size
    return view


def _opened(view: MemoryView) -> MemoryView:
    """The view from its first user message on; the summary that led it may be gone."""
    messages = view.messages or ()
    first = next((place for place, message in enumerate(messages) if message.role == "user"), len(messages))
    left = [(message.number, "no_opening_user") for message in messages[:first] if message.number]
    if first == 0:
        return view
    return replace(view, messages=messages[first:], left_out=merged((*view.left_out, *named(left))))


def _without_oldest(view: MemoryView, over: int, counter: TokenCounter) -> MemoryView:
    messages = view.messages or ()
    lead = tuple(message for message in messages if message.state == "summary")
    atoms = atoms_of(message for message in messages if message.state not in ("summary", "placeholder"))
    kept = _protected(atoms)
    gone: set[int] = set()
    for index, atom in enumerate(atoms):
        if over <= 0:
            break
        if index not in kept:
            over -= sum(sizes(complete(atom), counter))
            gone.add(index)
    left = [(number, REASON) for index in sorted(gone) for number in atoms[index].numbers]
    rest = (atom for index, atom in enumerate(atoms) if index not in gone)
    shown = tuple(message for atom in rest for message in complete(atom))
    return replace(view, messages=(*lead, *shown), left_out=merged((*view.left_out, *named(left))))


def _protected(atoms: Sequence[Atom]) -> set[int]:
    """The newest user message, and the atom of an open tool loop."""
    users = [index for index, atom in enumerate(atoms) if atom.from_user]
    kept = set(users[-1:])
    if in_loop(atoms):
        kept.add(len(atoms) - 1)
    return kept


def cut_messages(
    messages: Sequence[Message],
    over: int,
    counter: TokenCounter,
    *,
    roles: Sequence[str] = ("tool", "user", "assistant"),
    least: int = 0,
) -> tuple[Message, ...]:
    """Results first, the largest first; then user texts; then what the assistant said beside its calls.

    None is cut below ``least`` tokens.
    """
    cut = list(messages)
    contents = counter.count([message.content for message in cut])
    for role in roles:
        places = [place for place, message in enumerate(cut) if message.role == role]
        for place in sorted(places, key=lambda position: -contents[position]):
            if over <= 0:
                return tuple(cut)
            shorter = cut_to(cut[place].content, max(contents[place] - over, least), counter)
            tokens = counter.count([shorter])[0]
            if tokens >= contents[place]:
                continue
            over -= contents[place] - tokens
            whole = cut[place].tokens
            left = None if whole is None else whole - contents[place] + tokens
            cut[place] = replace(cut[place], content=shorter, state="cut", tokens=left)
    return tuple(cut)
