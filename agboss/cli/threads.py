"""``agboss threads``: what was said, per thread."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic_core import to_jsonable_python

from agboss.cli.deciding import tell_waiting
from agboss.cli.faults import FAILED, CommandError
from agboss.cli.options import Session, command
from agboss.cli.turns import money
from agboss_memory.messages import Tern, TernStatus

group = typer.Typer(help="List, show, export, import, check and delete threads.", rich_markup_mode=None)

ThreadArgument = Annotated[str, typer.Argument(metavar="THREAD", help="Id of the thread.")]


@command(group, "list")
async def list_threads(
    session: Session,
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many threads.")] = 100,
) -> None:
    """The newest threads."""
    async with session.open_stored() as app:
        found = await app.threads.list(limit=limit)
    if session.out.as_json:
        session.out.document({"threads": to_jsonable_python(found)})
    elif not found:
        session.out.note(f"no threads of {app.name} in {app.store_url}")
    else:
        columns: list[tuple[str, dict[str, Any]]] = [
            ("thread", {"no_wrap": True, "overflow": "fold"}),
            ("turns", {"justify": "right"}),
            ("updated", {"no_wrap": True}),
            ("owner", {"overflow": "fold"}),
            ("spend", {"justify": "right", "no_wrap": True}),
        ]
        rows = [
            (
                item.id,
                f"{item.terns}{' (running)' if item.running else ''}",
                moment(item.updated_at),
                item.owner or "–",
                money(item.spend),
            )
            for item in found
        ]
        session.out.table(columns, rows)


@command(group, "show")
async def show(
    session: Session,
    thread: ThreadArgument,
    last: Annotated[int | None, typer.Option("--last", min=1, help="Only the newest so many turns.")] = None,
) -> None:
    """All turns of a thread, oldest first."""
    async with session.open_stored() as app:
        found = await app.threads.get(thread, last)
        pauses = await app.threads.pauses(thread)
    out = session.out
    if out.as_json:
        out.document({**to_jsonable_python(found), "pauses": to_jsonable_python(pauses)})
        return
    for tern in found.terns:
        out.line(f"turn {tern.number}  {moment(tern.started_at)}  {' → '.join(tern.path)}", "dim")
        out.line(f"Q: {tern.task}", "bold")
        out.line(f"A: {_answer(tern)}")
        tell_waiting(out, [pause for pause in pauses if pause.tern == tern.number])
        out.line()
    out.field("thread", found.id)
    if found.owner is not None:
        out.field("owner", found.owner)


@command(group, "export")
async def export(
    session: Session,
    thread: ThreadArgument,
    lines: Annotated[
        bool, typer.Option("--lines", help="JSON Lines without loss, for: agboss threads import.")
    ] = False,
) -> None:
    """Everything stored of a thread, as JSON."""
    async with session.open_stored() as app:
        found = await app.threads.export(thread)
    if not lines:
        session.out.document(found.to_dict())
    elif session.out.as_json:
        session.out.document({"lines": list(found.lines())})
    else:
        for line in found.lines():
            session.out.copy(line)


@command(group, "import")
async def import_(
    session: Session,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What export --lines wrote; - = standard input.")],
    thread: Annotated[str | None, typer.Option("--thread", metavar="ID", help="Another id for it.")] = None,
) -> None:
    """Take in a thread that was exported with --lines. Nothing is written when a line is wrong."""
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError("cli.unreadable", f"{file} cannot be read: {error}", "name a file in UTF-8") from None
    async with session.open_app() as app:
        made = await app.threads.import_(text.split("\n"), thread=thread)
    if session.out.as_json:
        session.out.document({"imported": made.id, "turns": len(made.terns)})
    else:
        session.out.field("thread", made.id)


@command(group, "check")
async def check(session: Session) -> int:
    """Read everything in the store and tell what cannot be. Changes nothing; exit code 1 when there is something."""
    async with session.open_stored() as app:
        found = await app.threads.check()
    if session.out.as_json:
        session.out.document({"findings": to_jsonable_python(found)})
    elif not found:
        session.out.line(f"nothing wrong in {app.store_url}")
    else:
        for item in found:
            where = f" in thread {item.thread} of {item.workflow}" if item.thread else ""
            session.out.line(f"{item.code}{where}: {item.what}", "bold")
            session.out.line(f"  {item.remedy}", "dim")
    return FAILED if found else 0


@command(group, "delete")
async def delete(
    session: Session,
    thread: ThreadArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Remove a thread with all that belongs to it. It cannot be brought back."""
    async with session.open_stored() as app:
        found = await app.threads.get(thread, 0)
        if not yes:
            _confirm(session, f"Delete thread {found.id} of {app.name}?")
        await app.threads.delete(thread)
    if session.out.as_json:
        session.out.document({"deleted": thread})
    else:
        session.out.line(f"deleted: {thread}")


def moment(at: datetime) -> str:
    """A point in time as people read it, in UTC."""
    return f"{at:%Y-%m-%d %H:%M} UTC"


def _answer(tern: Tern) -> str:
    if tern.status is TernStatus.ANSWERED:
        return tern.answer
    return f"[{tern.status}] {tern.answer or tern.error}".rstrip()


def _confirm(session: Session, question: str) -> None:
    if not (session.out.is_terminal and sys.stdin.isatty()):
        raise CommandError("cli.not-confirmed", "nobody can be asked whether to delete", "add --yes")
    if not typer.confirm(question):
        raise typer.Exit(1)
