"""A thread as JSON Lines: one record a line, first the thread, last a line that counts. Lossless, for any text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any, NoReturn, TypeVar, cast

import msgspec
from msgspec import NODEFAULT
from msgspec.structs import FieldInfo
from msgspec.structs import fields as read_fields

from agboss_memory.errors import CopyError, InvalidInputError
from agboss_memory.messages import MOST_COUNT, MOST_USD, Block, Summary, Tern, as_utc
from agboss_memory.records import Record, replace
from agboss_memory.stores.admissions import BookedUsage, PendingWork
from agboss_memory.stores.checks import by_agent, repeated_results
from agboss_memory.stores.copies import MessageCopy, SummaryCopy, TernCopy, ThreadCopy
from agboss_memory.wording import quoted

FORMAT = 1
"""Number of the format that is written, and the newest that is read."""

_PARTS: dict[str, tuple[str, type[Record]]] = {
    "tern": ("terns", TernCopy),
    "message": ("messages", MessageCopy),
    "summary": ("summaries", SummaryCopy),
    "block": ("blocks", Block),
    "work": ("work", PendingWork),
    "unbound": ("unbound", BookedUsage),
}

_R = TypeVar("_R", bound=Record)


@cache
def _fields(kind: type[Record]) -> tuple[FieldInfo, ...]:
    return read_fields(kind)  # which compiles the annotations each time


def dump_thread(copy: ThreadCopy) -> Iterator[str]:
    """The lines of a thread, each with its line end. Values that are a field's default are left out."""
    head = _plain(replace(copy, **{name: () for name, _ in _PARTS.values()}))
    yield _line({"type": "thread", "format": FORMAT, **head})
    counts: dict[str, int] = {}
    for kind, (name, _) in _PARTS.items():
        records: tuple[Record, ...] = getattr(copy, name)
        counts[name] = len(records)
        for record in records:
            yield _line({"type": kind, **_plain(record)})
    yield _line({"type": "end", **counts})


def _line(values: dict[str, Any]) -> str:
    # ASCII: lone surrogates have no other form in a file.
    return json.dumps(values, separators=(",", ":")) + "\n"


def _plain(record: Record) -> dict[str, Any]:
    values = ((field, getattr(record, field.name)) for field in _fields(type(record)))
    return {
        field.name: _value(value)
        for field, value in values
        if field.default is NODEFAULT or type(value) is not type(field.default) or value != field.default
    }


def _value(value: Any) -> Any:
    if isinstance(value, Record):
        return _plain(value)
    if isinstance(value, tuple):
        return [_value(item) for item in cast("tuple[Any, ...]", value)]
    return msgspec.to_builtins(value)


def load_thread(lines: Iterable[str]) -> ThreadCopy:
    """The thread that ``lines`` hold. Empty lines are passed over. Of several results of one call the last counts.

    Raises:
        InvalidInputError: ``copy.no-lines``: there are no lines to read.
        CopyError: A line is no record (``copy.malformed``), the format is unknown (``copy.unknown-format``), or the end
            is missing or counts otherwise (``copy.cut-off``). The error names the line.
    """
    numbered = ((number, line) for number, line in enumerate(_lines(lines), 1) if _text(number, line).strip())
    first, head = next(numbered, (1, ""))
    thread = _head(first, head)
    found: dict[str, list[Record]] = {name: [] for name, _ in _PARTS.values()}
    end: dict[str, Any] | None = None
    for number, line in numbered:
        values = _object(number, line)
        kind = values.pop("type", None)
        if end is not None:
            _malformed(number, "it comes after the end")
        if kind == "end":
            end = values
        elif isinstance(kind, str) and kind in _PARTS:
            name, made = _PARTS[kind]
            found[name].append(_record(number, made, values))
        else:
            _malformed(number, f"its type {quoted(kind, 40)} is not known")
    counts = {name: len(records) for name, records in found.items()}
    if end != counts:
        raise CopyError(
            "copy.cut-off",
            f"The copy of thread {thread.thread!r} is not whole: it holds {counts}, its end says {end}.",
            "Export it again; nothing was imported.",
            held=counts,
            told=end,
        )
    return _last_results(_in_utc(replace(thread, **{name: tuple(records) for name, records in found.items()})))


def _lines(given: Any) -> Iterable[Any]:
    """What is given, unless it is one text, which would be read letter by letter, or nothing to go through."""
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | bytearray | Mapping):
        return cast("Iterable[Any]", given)
    raise InvalidInputError(
        "copy.no-lines",
        f"A copy is read line by line, and this is a {type(cast('object', given)).__name__}.",
        "Pass an open file, ThreadExport.lines(), or text.splitlines(); nothing was imported.",
    )


def _text(number: int, line: Any) -> str | bytes | bytearray:
    if not isinstance(line, str | bytes | bytearray):
        _malformed(number, f"it is a {type(line).__name__}, not text")
    return line


def _head(number: int, line: str | bytes | bytearray) -> ThreadCopy:
    values = _object(number, line)
    if values.pop("type", None) != "thread":
        _malformed(number, "the first line is no thread")
    version = values.pop("format", None)
    if version != FORMAT or isinstance(version, bool):
        raise CopyError(
            "copy.unknown-format",
            f"The copy has format {quoted(version, 40)}; this release reads {FORMAT}.",
            "Import it with the release that wrote it, or a newer one.",
            line=number,
            format=version,
            newest=FORMAT,
        )
    return _record(number, ThreadCopy, values)


def _object(number: int, line: str | bytes | bytearray) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        _malformed(number, f"it is no JSON ({error})")
    if not isinstance(values, dict):
        _malformed(number, "it is no JSON object")
    return cast("dict[str, Any]", values)


def _record(number: int, kind: type[_R], values: dict[str, Any]) -> _R:
    try:
        record = msgspec.convert(values, kind)
    except (msgspec.ValidationError, ValueError, ArithmeticError) as error:
        _malformed(number, str(error))
    unknown = _unknown(record, values, "$")
    if unknown:
        _malformed(number, f"{unknown} is not known")
    beyond = _beyond(record, "$")
    if beyond:
        _malformed(number, beyond)
    return record


def _beyond(value: Any, path: str) -> str:
    """What is wrong with a number that not every store takes, empty when there is none."""
    if isinstance(value, Record):
        inner = ((getattr(value, field.name), f"{path}.{field.name}") for field in _fields(type(value)))
        return next(filter(None, (_beyond(one, place) for one, place in inner)), "")
    if isinstance(value, tuple):
        return next(filter(None, (_beyond(one, path) for one in cast("tuple[Any, ...]", value))), "")
    if isinstance(value, datetime):
        try:
            as_utc(value)
        except OverflowError:
            return f"{path} is no moment in UTC"
    if isinstance(value, int) and not 0 <= value <= MOST_COUNT:
        return f"{path} is no whole number from 0 to {MOST_COUNT}"
    if isinstance(value, Decimal) and not (value.is_finite() and 0 <= value <= MOST_USD):
        return f"{path} is no cost from 0 to {MOST_USD}"
    return ""


def _unknown(record: Record, values: Any, path: str) -> str:
    """The path of a key that no field has."""
    names = {field.name for field in _fields(type(record))}
    for key, value in values.items():
        place = f"{path}.{key}"
        if key not in names:
            return place
        made = getattr(record, key)
        inner = list(zip(_many(made), _many(value), strict=True))
        for one, given in inner:
            found = _unknown(one, given, place) if isinstance(one, Record) else ""
            if found:
                return found
    return ""


def _many(value: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", value) if isinstance(value, tuple | list) else (value,)


def _malformed(number: int, what: str) -> NoReturn:
    raise CopyError(
        "copy.malformed",
        f"Line {number} of the copy cannot be taken in: {what}.",
        "Take what agboss threads export --lines wrote, as it was written; nothing was imported.",
        line=number,
    )


def _in_utc(copy: ThreadCopy) -> ThreadCopy:
    """The copy with every moment in UTC; one without a zone is read as UTC."""

    def ended(tern: Tern) -> Tern:
        finished = None if tern.finished_at is None else as_utc(tern.finished_at)
        return replace(tern, started_at=as_utc(tern.started_at), finished_at=finished)

    def made(summary: Summary) -> Summary:
        return replace(summary, created_at=as_utc(summary.created_at))

    return replace(
        copy,
        created_at=as_utc(copy.created_at),
        updated_at=as_utc(copy.updated_at),
        terns=tuple(replace(item, tern=ended(item.tern)) for item in copy.terns),
        messages=tuple(
            replace(item, message=replace(item.message, created_at=as_utc(item.message.created_at)))
            for item in copy.messages
        ),
        summaries=tuple(replace(item, summary=made(item.summary)) for item in copy.summaries),
    )


def _last_results(copy: ThreadCopy) -> ThreadCopy:
    """The copy with one result per call: the last one, in the place of the first. Later messages move up."""
    gone = {agent: set(repeated_results(said)) for agent, said in by_agent(copy.messages).items()}
    if not any(gone.values()):
        return copy
    kept: list[MessageCopy] = []
    places: dict[tuple[str, str | None], int] = {}  # of the results that the newest calls have so far
    for item in copy.messages:
        message = item.message
        if message.role != "tool":
            places = {place: at for place, at in places.items() if place[0] != message.agent}
        if message.number in gone[message.agent]:
            at = places.get((message.agent, message.tool_call_id))
            if at is None:  # numbers that do not go up: whoever takes the copy in refuses them
                return copy
            kept[at] = replace(kept[at], message=replace(message, number=kept[at].message.number))
            continue
        places[message.agent, message.tool_call_id] = len(kept)
        number = _moved(message.number, gone[message.agent])
        kept.append(replace(item, message=replace(message, number=number)))
    summaries = tuple(_shortened(item, gone.get(item.summary.agent, set())) for item in copy.summaries)
    return replace(copy, messages=tuple(kept), summaries=summaries)


def _moved(number: int, gone: set[int]) -> int:
    return number - sum(one <= number for one in gone)


def _shortened(item: SummaryCopy, gone: set[int]) -> SummaryCopy:
    summary = item.summary
    first = _moved(summary.first - 1, gone) + 1
    return replace(item, summary=replace(summary, first=first, last=_moved(summary.last, gone)))
