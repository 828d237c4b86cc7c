"""Atoms: the pieces of a conversation that no strategy splits, and the order in which a provider accepts them.

An assistant message with tool calls is one atom together with all its results; any other message is one alone. A call
may have no result yet (it is *pending*); a result may have lost its call (it is an *orphan*).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agboss_memory.contract import LeftOut
from agboss_memory.messages import Message
from agboss_memory.records import Record, replace

PLACEHOLDER = "[no result: the call was interrupted; carry on without it]"
"""What stands in a view for the result of a call that has none. It is never stored."""


class Atom(Record, kw_only=True):
    """One piece.

    Attributes:
        head: The message, or the assistant message with the calls. An orphan result is its own head.
        results: The results that count, in the order of the calls.
        extra: Members that no view shows: results of a call that another, later one answers too.
        orphan: Whether it is a result without a call.
    """

    head: Message
    results: tuple[Message, ...] = ()
    extra: tuple[Message, ...] = ()
    orphan: bool = False

    @property
    def members(self) -> tuple[Message, ...]:
        """All logged messages of it."""
        return (self.head, *self.results, *self.extra)

    @property
    def shown(self) -> tuple[Message, ...]:
        """What a view shows of it, without placeholders."""
        return (self.head, *self.results)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers of its stored members, sorted."""
        return tuple(sorted(message.number for message in self.members if message.number > 0))

    @property
    def pending(self) -> bool:
        """Whether a call of it has no result."""
        answered = {result.tool_call_id for result in self.results}
        return any(call.id not in answered for call in self.head.tool_calls)

    @property
    def from_user(self) -> bool:
        """Whether a user said it."""
        return self.head.role == "user" and not self.head.synthetic


class _Open:
    """A head whose results are still being collected; the last result of a call counts."""

    def __init__(self, head: Message) -> None:
        self.head = head
        self.orphan = head.role == "tool"
        self.results: dict[str, Message] = {}
        self.extra: list[Message] = []

    def answer(self, result: Message) -> None:
        call = result.tool_call_id or ""
        if call in self.results:
            self.extra.append(self.results[call])
        self.results[call] = result

    def closed(self) -> Atom:
        order = {call.id: place for place, call in enumerate(self.head.tool_calls)}
        results = sorted(self.results.values(), key=lambda result: order.get(result.tool_call_id or "", 0))
        return Atom(head=self.head, results=tuple(results), extra=tuple(self.extra), orphan=self.orphan)


def atoms_of(messages: Iterable[Message]) -> tuple[Atom, ...]:
    """The atoms of a conversation, in the order of their heads.

    Stored messages are put in the order of their numbers first; those without one (of the running turn) stay behind
    them as given. A result belongs to the nearest call of its id before it.
    """
    given = list(messages)
    stored = {message.number: message for message in reversed(given) if message.number > 0}
    ordered = [stored[number] for number in sorted(stored)]
    ordered += [message for message in given if message.number <= 0]
    return _collected(ordered)


def _collected(ordered: Iterable[Message]) -> tuple[Atom, ...]:
    found: list[_Open] = []
    calls: dict[str, _Open] = {}
    for message in ordered:
        owner = calls.get(message.tool_call_id or "") if message.role == "tool" else None
        if owner is not None:
            owner.answer(message)
            continue
        atom = _Open(message)
        found.append(atom)
        if message.role == "assistant":
            calls.update((call.id, atom) for call in message.tool_calls)
    return tuple(atom.closed() for atom in found)


def complete(atom: Atom) -> tuple[Message, ...]:
    """The atom as a provider accepts it: every call once, each followed by exactly one result; () for an orphan."""
    if atom.orphan:
        return ()
    if not atom.head.tool_calls:
        return (atom.head,)
    calls = tuple({call.id: call for call in reversed(atom.head.tool_calls)}.values())[::-1]
    head = atom.head if len(calls) == len(atom.head.tool_calls) else replace(atom.head, tool_calls=calls)
    results = {result.tool_call_id: result for result in atom.results}
    return (head, *(results.get(call.id) or _placeholder(head, call.id, call.name) for call in calls))


def paired(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages in their order, as a provider accepts them, whoever put them together.

    Results stand behind their calls, each once; orphans are left out, and so is what comes before the first user
    message; a call without a result gets a placeholder.
    """
    plain = all(message.role != "tool" and not message.tool_calls for message in messages)
    if plain and messages and messages[0].role == "user":
        return tuple(messages)
    atoms = _collected(messages)
    first = next((index for index, atom in enumerate(atoms) if atom.head.role == "user"), len(atoms))
    kept = (atom for index, atom in enumerate(atoms) if index >= first or atom.head.role == "system")
    return tuple(message for atom in kept for message in complete(atom))


def _placeholder(head: Message, call: str, name: str) -> Message:
    return Message(
        role="tool",
        content=PLACEHOLDER,
        tool_call_id=call,
        tool_name=name,
        tern=head.tern,
        agent=head.agent,
        created_at=head.created_at,
        state="placeholder",
    )


def newest_turn(atoms: Sequence[Atom]) -> int:
    """Index of the atom that begins the newest turn: its first user message; 0 when no user said anything."""
    for index in range(len(atoms) - 1, -1, -1):
        if not atoms[index].from_user:
            continue
        tern = atoms[index].head.tern
        while tern > 0 and index > 0 and atoms[index - 1].head.tern == tern:
            index -= 1
        return index
    return 0


def in_loop(atoms: Sequence[Atom]) -> bool:
    """Whether a tool loop is open: the newest atom has calls, so that the model is to be asked again.

    Results without their call, which may be among what is not read yet, do not count.
    """
    newest = next((atom for atom in reversed(atoms) if not atom.orphan), None)
    return newest is not None and bool(newest.head.tool_calls)


def opened(atoms: Sequence[Atom], *, led: bool = False) -> tuple[tuple[Atom, ...], tuple[Atom, ...]]:
    """The atoms from the first user message on, and those before it. ``led``: a user message already stands first."""
    if led:
        return tuple(atoms), ()
    first = next((index for index, atom in enumerate(atoms) if atom.from_user), len(atoms))
    return tuple(atoms[first:]), tuple(atoms[:first])


def named(left: Iterable[tuple[int, str]]) -> tuple[LeftOut, ...]:
    """Numbers with a reason as ranges."""
    return merged(LeftOut(first=number, last=number, reason=reason, unit="messages") for number, reason in left)


def merged(ranges: Iterable[LeftOut]) -> tuple[LeftOut, ...]:
    """The ranges in order, neighbours with the same reason as one."""
    found: list[LeftOut] = []
    for item in sorted(ranges, key=lambda left: (left.first, left.last)):
        last = found[-1] if found else None
        if last and (last.reason, last.unit) == (item.reason, item.unit) and item.first <= last.last + 1:
            found[-1] = replace(last, last=max(last.last, item.last))
        else:
            found.append(item)
    return tuple(found)
