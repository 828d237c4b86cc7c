"""``agboss spend``: what was spent, by day, by model or by thread."""

from __future__ import annotations

from collections.abc import AsyncIterator
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any

import typer
from pydantic_core import to_jsonable_python

from agboss.app import App, Spend
from agboss.cli.options import Session, command
from agboss.cli.threads import moment
from agboss.cli.turns import money
from agboss_memory.records import Record
from agboss_memory.stores import ThreadInfo

PAGE = 200
"""Threads read at once."""


class By(StrEnum):
    """What a line of the report stands for."""

    day = "day"
    model = "model"
    thread = "thread"


class Line(Record, kw_only=True):
    """One line.

    Attributes:
        name: The day or the model.
        calls: Booked calls.
        input_tokens: Tokens sent.
        output_tokens: Tokens received.
        spend: US dollars, None when the cost of a call is unknown.
    """

    name: str
    calls: int
    input_tokens: int
    output_tokens: int
    spend: Decimal | None


def register(cli: typer.Typer) -> None:
    """Add the command."""
    command(cli, "spend")(spend)


async def spend(
    session: Session,
    by: Annotated[By, typer.Option("--by", help="What each line is about.")] = By.day,
    days: Annotated[int, typer.Option("--days", metavar="N", min=1, help="UTC days, today among them.")] = 30,
    owner: Annotated[str | None, typer.Option("--owner", metavar="NAME", help="Only this owner's threads.")] = None,
) -> None:
    """What was spent in the last days. A line of a thread tells what all of it has cost."""
    async with session.open_stored() as app:
        found = await app.spend(days, owner=owner)
        threads = [info async for info in _active(app, found.first, owner)] if by is By.thread else []
    if by is By.thread:
        _tell_threads(session, found, threads)
    else:
        _tell(session, found, by)


async def _active(app: App, first: str, owner: str | None) -> AsyncIterator[ThreadInfo]:
    """Threads that something happened in since a day."""
    after: str | None = None
    while page := await app.threads.list(owner=owner, after=after, limit=PAGE):
        for info in page:
            if info.updated_at.date().isoformat() >= first:
                yield info
        after = page[-1].id


def _lines(found: Spend, by: By) -> list[Line]:
    lines: dict[str, Line] = {}
    for row in found.rows:
        name = row.day if by is By.day else row.model
        known = lines.get(name, Line(name=name, calls=0, input_tokens=0, output_tokens=0, spend=Decimal(0)))
        lines[name] = Line(
            name=name,
            calls=known.calls + row.calls,
            input_tokens=known.input_tokens + row.input_tokens,
            output_tokens=known.output_tokens + row.output_tokens,
            spend=None if row.unknown or known.spend is None else known.spend + row.usd,
        )
    return sorted(lines.values(), key=lambda line: line.name, reverse=by is By.day)


def _tell(session: Session, found: Spend, by: By) -> None:
    lines = _lines(found, by)
    if session.out.as_json:
        told = [{by.value: line.name, **to_jsonable_python(line)} for line in lines]
        for line in told:
            del line["name"]
        _document(session, found, by, told)
        return
    rows = [
        (line.name, f"{line.calls:,}", f"{line.input_tokens:,}", f"{line.output_tokens:,}", money(line.spend))
        for line in lines
    ]
    _table(session, found, [by.value, "calls", "tokens in", "tokens out", "spend"], rows)


def _tell_threads(session: Session, found: Spend, threads: list[ThreadInfo]) -> None:
    unknown = Decimal("Infinity")  # what may be dearest comes first
    threads.sort(key=lambda info: unknown if info.spend is None else info.spend, reverse=True)
    if session.out.as_json:
        told = [
            {"thread": info.id, "owner": info.owner, "turns": info.terns, "spend": to_jsonable_python(info.spend)}
            for info in threads
        ]
        _document(session, found, By.thread, told)
        return
    rows = [
        (info.id, info.owner or "–", str(info.terns), moment(info.updated_at), money(info.spend)) for info in threads
    ]
    _table(session, found, ["thread", "owner", "turns", "updated", "spend"], rows)


def _document(session: Session, found: Spend, by: By, lines: list[dict[str, Any]]) -> None:
    total = to_jsonable_python(found.spend)
    session.out.document({"first": found.first, "last": found.last, "by": by.value, "lines": lines, "spend": total})


def _table(session: Session, found: Spend, names: list[str], rows: list[tuple[str, ...]]) -> None:
    if rows:
        left: dict[str, Any] = {"no_wrap": True, "overflow": "fold"}
        right: dict[str, Any] = {"justify": "right", "no_wrap": True}
        texts = ("thread", "owner", "updated", "day", "model")
        session.out.table([(name, left if name in texts else right) for name in names], rows)
        session.out.line()
    session.out.field("days", f"{found.first} to {found.last}")
    session.out.field("spend", money(found.spend))
