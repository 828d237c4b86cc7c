"""``agboss memory``: what an agent sees, why, and what a person may do about it."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from pydantic_core import to_jsonable_python

from agboss.app import MemoryRow, WorkingMemory
from agboss.cli.options import Session, command
from agboss.cli.threads import ThreadArgument
from agboss.errors import InvalidInputError
from agboss_memory.messages import Summary
from agboss_memory.render import span

group = typer.Typer(help="Show, explain, try, compact and undo working memory.", rich_markup_mode=None)

SHORT = 160
"""Characters of a row's text that are shown."""

AgentOption = Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Which agent's memory.")]

_REASONS = {
    "beyond_reach": "beyond what the agent reads",
    "over_budget": "beyond what the kind shows",
    "over_window": "the model's window has no room for it",
    "no_opening_user": "before the first user message that is shown",
    "not_of_this_turn": "not of the running turn",
    "no_call": "a result without its call",
    "repeated": "a later result of the same call counts",
    "empty": "nothing was said",
}


@command(group, "show")
async def show(session: Session, thread: ThreadArgument, agent: AgentOption = None) -> None:
    """What an agent will see at the thread's next turn."""
    async with session.open_stored() as app:
        view = await app.memory.view(thread, agent)
    _show(session, view, why=False)


@command(group, "explain")
async def explain(
    session: Session,
    thread: ThreadArgument,
    agent: AgentOption = None,
    turn: Annotated[
        int | None, typer.Option("--turn", metavar="N", help="Which turn's view; without it, the next one's.")
    ] = None,
    call: Annotated[int, typer.Option("--call", metavar="N", help="Which call of the model in it, from 0.")] = 0,
) -> None:
    """The same, piece by piece, with the reason of each and the turns that it comes from."""
    if call and turn is None:
        raise InvalidInputError("cli.usage", "--call names a call of an earlier turn", "name it with --turn")
    async with session.open_stored() as app:
        view = await app.memory.explain(thread, agent, tern=turn, call=call)
    _show(session, view, why=True)


@command(group, "what-if")
async def what_if(
    session: Session,
    thread: ThreadArgument,
    config: Annotated[str, typer.Option("--config", metavar="JSON", help="The memoryConfig to try.")],
    agent: AgentOption = None,
    last: Annotated[int, typer.Option("--last", metavar="N", min=1, help="Newest messages that are replayed.")] = 1000,
) -> None:
    """What the agent's model would have read under another memoryConfig; no model is called."""
    async with session.open_stored() as app:
        told = await app.memory.what_if(thread, config, agent, last=last)
    if session.out.as_json:
        session.out.document(to_jsonable_python(told))
        return
    numbers: dict[str, Any] = {"justify": "right", "no_wrap": True}
    names = ("turn", "call", "tokens", "same as before", "from message", "messages", "summaries", "stubs")
    rows = [
        (one.tern, one.call, one.tokens, one.common, one.first, one.shown, one.summaries, one.stubs)
        for one in told.calls
    ]
    session.out.table([(name, numbers) for name in names], [tuple(f"{value:,}" for value in row) for row in rows])
    session.out.line()
    same = f"{told.common * 100 // told.tokens} %" if told.tokens else "nothing"
    session.out.line(f"total: {told.tokens:,} tokens in {len(told.calls)} calls, {same} of them as in the call before")
    session.out.line(f"memory itself: {told.model_calls} calls; summaries end at messages {list(told.boundaries)}")


@command(group, "compact")
async def compact(session: Session, thread: ThreadArgument, agent: AgentOption = None) -> None:
    """Summarise what can be summarised: blocks that are due or were given up, or an agent's own conversation."""
    async with session.open_stored() as app:
        report = await app.memory.compact(thread, agent)
    if session.out.as_json:
        session.out.document(to_jsonable_python(report))
        return
    for summary in report.summaries:
        _tell_summary(session, "summarised", summary)
    if report.compressed_results:
        session.out.line(f"shortened {report.compressed_results} tool results")
    if not report.summaries and not report.compressed_results:
        session.out.line("nothing to summarise")


@command(group, "undo")
async def undo(
    session: Session,
    thread: ThreadArgument,
    agent: AgentOption = None,
    summary: Annotated[
        int | None, typer.Option("--summary", metavar="ID", help="Which summary; without it, the newest.")
    ] = None,
) -> None:
    """Retire a summary: what it stood for is shown raw again, as far as the agent reads."""
    async with session.open_stored() as app:
        retired = await app.memory.undo(thread, agent, summary=summary)
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


def _show(session: Session, view: WorkingMemory, *, why: bool) -> None:
    if session.out.as_json:
        session.out.document(to_jsonable_python(view))
        return
    columns: list[tuple[str, dict[str, Any]]] = [
        ("turn", {"justify": "right", "no_wrap": True}),
        ("state", {"no_wrap": True}),
        ("tokens", {"justify": "right", "no_wrap": True}),
        *([("why", {"overflow": "fold"})] if why else []),
        ("text", {"overflow": "fold"}),
    ]
    system = ("–", "system", str(view.system_prompt_tokens), *(["the system prompt"] if why else []))
    rows = [(*system, shortened(view.system_prompt))]
    rows += [
        (_turns(row), _state(row), str(row.tokens), *([row.reason] if why else []), shortened(_text(row)))
        for row in view.messages
        if _text(row).strip()
    ]
    session.out.table(columns, rows)
    session.out.line()
    for line in _footer(view):
        session.out.line(line, "dim")


def _turns(row: MemoryRow) -> str:
    if not row.last_tern:
        return "–"
    return str(row.last_tern) if row.first_tern == row.last_tern else span(row.first_tern, row.last_tern)


def _state(row: MemoryRow) -> str:
    return row.state if row.sequence_num or row.state != "live" else "heading"


def _text(row: MemoryRow) -> str:
    return row.shown or f"({row.type.lower().replace('_', ' ')})"


def _footer(view: WorkingMemory) -> list[str]:
    window = "unknown" if view.context_window_tokens is None else f"{view.context_window_tokens:,} tokens"
    numbers = view.config.items() if "kind" not in view.config else ()
    limits = ", ".join(f"{value} {name}" for name, value in numbers if value)
    lines = [
        f"agent: {view.agent}, memory: {view.kind}" + (f" (reads at most {limits})" if limits else ""),
        f"total: {view.total_tokens:,} tokens ({view.token_counter_name}), window: {window}",
    ]
    lines += [
        f"left out: {item.unit} {span(item.first, item.last)} ({_REASONS.get(item.reason, item.reason)})"
        for item in view.left_out
    ]
    return lines + [f"warning: {line}" for line in view.warnings]


def _tell_summary(session: Session, what: str, summary: Summary) -> None:
    unit = "turns" if summary.kind == "turns" else "messages"
    session.out.line(f"{what} {unit} {span(summary.first, summary.last)}: {shortened(summary.text)}")
