"""Keys of threads, and tickets, as callers have them: each one tells in which file it is.

The file under an open store may be replaced, and another one has threads of its own under the same numbers. What began
in the first file must neither read nor write them: not a summary, not a cost, not what a model is shown.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from agboss_memory.records import replace
from agboss_memory.stores.contract import (
    Admission,
    Admitted,
    Appended,
    Claim,
    Commit,
    Interruption,
    MemoryClaim,
    MemoryOutcome,
    Owing,
    Resumable,
    StepWrite,
    SummaryWrite,
    ThreadState,
)
from agboss_memory.stores.pauses import Resumption

Told = TypeVar("Told", Admitted, Appended, Interruption, Owing, Resumable, ThreadState)
Asked = TypeVar("Asked", Claim, Commit, MemoryClaim, MemoryOutcome, Resumption, StepWrite, SummaryWrite)
Queued = TypeVar("Queued", Admission, Resumption)

_BITS = 40  # more threads than a file can hold; in the first file, which is nearly always the only one, keys are its numbers


class InFile(NamedTuple):
    """Where a thread is.

    Attributes:
        number: Its number in its file.
        file: How often the file had been replaced when the key was given; None = no file has such a thread.
    """

    number: int
    file: int | None


def in_file(key: int, files: int) -> InFile:
    """Where the thread of a key is, in a store whose file was replaced ``files`` times."""
    file = key >> _BITS
    if key <= 0 or file > files:
        return InFile(key, None)
    return InFile(key & ((1 << _BITS) - 1), file)


def key_of(number: int, file: int) -> int:
    """The key of a thread of a file; without a thread there is nothing to tell apart."""
    return number | file << _BITS if number > 0 else number


def told(answer: Told, file: int) -> Told:
    """What was read in a file, as callers get it."""
    if not file:
        return answer
    if isinstance(answer, Admitted):
        return replace(answer, key=key_of(answer.key, file), ticket=key_of(answer.ticket, file))
    return replace(answer, key=key_of(answer.key, file))


def told_all(answers: tuple[Told, ...], file: int) -> tuple[Told, ...]:
    """The same of several."""
    return tuple([told(one, file) for one in answers]) if file else answers


def queued(request: Queued, files: int) -> Queued:
    """The request with the ticket that it has in this file: none, when its place was in the line of another one."""
    at = in_file(request.ticket, files)
    number = at.number if at.file == files else 0
    return request if number == request.ticket else replace(request, ticket=number)


def asked(request: Asked, place: InFile) -> Asked:
    """What a caller asks for, as its file knows it."""
    return request if place.number == request.key else replace(request, key=place.number)
