"""``agboss resume``, and the question that a paused turn asks in a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from agboss.app import App
from agboss.cli.faults import CommandError
from agboss.cli.options import Session, command
from agboss.cli.output import Output, visible
from agboss.cli.turns import Ruling, graph_of, take_decision, tell
from agboss.errors import InvalidInputError, PauseError
from agboss.flow import Graph
from agboss.pauses import Decision, Pause
from agboss.run import RunResult

LONGEST_ARGUMENTS = 2_000
"""Characters of a call's arguments that are shown."""


def register(cli: typer.Typer) -> None:
    """Add the command."""
    command(cli, "resume")(resume)


async def resume(
    session: Session,
    thread: Annotated[str, typer.Argument(metavar="THREAD", help="Id of the thread.")],
    approve: Annotated[bool, typer.Option("--approve", help="Let the call run.")] = False,
    deny: Annotated[bool, typer.Option("--deny", help="Do not let it run.")] = False,
    cancel: Annotated[bool, typer.Option("--cancel", help="End the paused turns of the thread.")] = False,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why not; told to the model.")] = "",
    arguments: Annotated[
        str | None, typer.Option("--arguments", metavar="JSON", help="Run the call with these instead.")
    ] = None,
    pause: Annotated[str | None, typer.Option("--pause", metavar="ID", help="Which call, when several wait.")] = None,
    owner: Annotated[str | None, typer.Option("--owner", metavar="NAME", help="Owner of the thread.")] = None,
) -> None:
    """Decide about a call that waits for approval, and go on with its turn; without an option, ask."""
    if approve + deny + cancel > 1:
        raise CommandError("cli.usage", "one decision at a time", "choose --approve, --deny or --cancel")
    workflow = session.workflow()
    out, graph = session.out, graph_of(workflow)
    async with session.open_app(workflow) as app:
        if cancel:
            await _cancel(app, out, thread, owner)
            return
        if approve or deny:
            decision = Decision(approved=approve, reason=reason, arguments=_object(arguments))
            ruling = Ruling(thread=thread, decision=decision, pause_id=pause, owner=owner)
        else:
            ruling = await _asked(app, out, thread, pause, owner)
        result = await take_decision(app, graph, out, ruling)
        result = await settle(app, graph, out, result, owner)
    if out.as_json:
        out.document(result.to_dict())
    else:
        tell(out, result)


async def settle(app: App, graph: Graph, out: Output, result: RunResult, owner: str | None = None) -> RunResult:
    """Ask about all that a turn waits for, when somebody can be asked; else tell how to decide. Gives the last result."""
    while result.pause is not None:
        decision = _ask(out, result.pause) if _asks(out) else None
        if decision is None:
            tell_waiting(out, result.pauses)
            break
        ruling = Ruling(thread=result.thread, decision=decision, pause_id=result.pause.id, owner=owner)
        result = await take_decision(app, graph, out, ruling)
    return result


def tell_waiting(out: Output, pauses: Sequence[Pause]) -> None:
    """What waits, and the command that decides."""
    if out.as_json:
        return
    for pause in pauses:
        out.field("waits", shown(pause))
        out.field("decide", f"agboss resume {pause.thread} --pause {pause.id} --approve (or --deny)")


def shown(pause: Pause) -> str:
    """A call that waits, in a line."""
    arguments = json.dumps(pause.arguments, ensure_ascii=False)
    arguments = arguments if len(arguments) <= LONGEST_ARGUMENTS else arguments[:LONGEST_ARGUMENTS] + "…"
    return f"{pause.agent} wants {pause.tool}({arguments})"


async def _cancel(app: App, out: Output, thread: str, owner: str | None) -> None:
    if not await app.threads.pauses(thread, owner=owner):
        raise PauseError("pause.none", f"thread {thread!r} waits for no decision", "see: agboss threads show THREAD")
    await app.cancel(thread)
    if out.as_json:
        out.document({"cancelled": thread})
    else:
        out.field("cancelled", thread)


async def _asked(app: App, out: Output, thread: str, pause_id: str | None, owner: str | None) -> Ruling:
    """The decision of whoever sits at the terminal, about the named call or the first that waits."""
    waiting = [one for one in await app.threads.pauses(thread, owner=owner) if pause_id in (None, one.id)]
    if not waiting:
        raise PauseError("pause.none", f"thread {thread!r} waits for no decision", "see: agboss threads show THREAD")
    decision = _ask(out, waiting[0]) if _asks(out) else None
    if decision is None:
        tell_waiting(out, waiting)
        raise CommandError("cli.no-decision", "nobody has decided", "add --approve or --deny")
    return Ruling(thread=thread, decision=decision, pause_id=waiting[0].id, owner=owner)


def _asks(out: Output) -> bool:
    return out.is_terminal and sys.stdin.isatty()


def _ask(out: Output, pause: Pause) -> Decision | None:
    """Ask y/n; None = whoever was asked has not decided."""
    out.field("waits", shown(pause))
    try:
        if typer.confirm(f"Approve {visible(pause.tool)}?"):
            return Decision(approved=True)
        return Decision(approved=False, reason=typer.prompt("Why not (for the model)", default="", show_default=False))
    except typer.Abort:
        out.end_line()
        return None


def _object(text: str | None) -> dict[str, object] | None:
    if text is None:
        return None
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InvalidInputError("pause.bad-arguments", "--arguments is no JSON object", "write it as '{\"name\": 1}'")
    return found  # pyright: ignore[reportUnknownVariableType]
