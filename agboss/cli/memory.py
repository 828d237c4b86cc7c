"""``agboss memory``: what an agent will see next, and what a person may do about it."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from pydantic_core import to_jsonable_python

from agboss.app import WorkingMemory
from agboss.cli.options import Session, command
from agboss.cli.threads import ThreadArgument
from agboss_memory.messages import Summary
from agboss_memory.render import span

group = typer.Typer(help="Show, compact and undo working memory.", rich_markup_mode=None)

SHORT = 160
"""Characters of a row's text that are shown."""

_REASONS = {"beyond_reach": "beyond the agent's history"}


@command(group, "show")
async def show(
    session: Session,
    thread: ThreadArgument,
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Which agent's view.")] = None,
) -> None:
    """What an agent will see at the thread's next turn."""
    async with session.open_app() as app:
        view = await app.memory.view(thread, agent)
    if session.out.as_json:
        session.out.document(to_jsonable_python(view))
        return
    columns: list[tuple[str, dict[str, Any]]] = [
        ("turn", {"justify": "right", "no_wrap": True}),
        ("state", {"no_wrap": True}),
        ("tokens", {"justify": "right", "no_wrap": True}),
        ("text", {"overflow": "fold"}),
    ]
    rows = [("–", "system", str(view.system_prompt_tokens), shortened(view.system_prompt))]
    rows += [
        (
            str(row.number) if row.number > 0 else "–",
            _state(row.state, row.number),
            str(row.tokens),
            shortened(row.content),
        )
        for row in view.rows
        if row.content.strip()
    ]
    session.out.table(columns, rows)
    session.out.line()
    for line in _footer(view):
        session.out.line(line, "dim")


@command(group, "compact")
async def compact(session: Session, thread: ThreadArgument) -> None:
    """Summarise every block of turns that is due, or was given up."""
    async with session.open_app() as app:
        report = await app.memory.compact(thread)
    if session.out.as_json:
        session.out.document(to_jsonable_python(report))
        return
    for summary in report.summaries:
        _tell_summary(session, "summarised", summary)
    if not report.summaries:
        session.out.line("nothing to summarise")


@command(group, "undo")
async def undo(session: Session, thread: ThreadArgument) -> None:
    """Retire the newest summary: its turns are shown raw again, as far as the agent reads."""
    async with session.open_app() as app:
        retired = await app.memory.undo(thread)
    if session.out.as_json:
        session.out.document({"retired": to_jsonable_python(retired)})
    elif retired is None:
        session.out.line("nothing to undo")
    else:
        _tell_summary(session, "retired", retired)


def shortened(text: str) -> str:
    """A text in one line of at most ``SHORT`` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= SHORT else flat[: SHORT - 1].rstrip() + "…"


def _state(state: str, number: int) -> str:
    return state if number > 0 else "heading"


def _footer(view: WorkingMemory) -> list[str]:
    window = "unknown" if view.context_window is None else f"{view.context_window:,} tokens"
    limits = ", ".join(f"{value} {name}" for name, value in view.config.items() if value)
    lines = [
        f"agent: {view.agent}, memory: {view.kind}" + (f" (reads at most {limits})" if limits else ""),
        f"total: {view.total_tokens:,} tokens ({view.token_counter}), window: {window}",
    ]
    lines += [
        f"left out: {item.unit} {span(item.first, item.last)} ({_REASONS.get(item.reason, item.reason)})"
        for item in view.left_out
    ]
    return lines


def _tell_summary(session: Session, what: str, summary: Summary) -> None:
    session.out.line(f"{what} turns {span(summary.first, summary.last)}: {shortened(summary.text)}")
