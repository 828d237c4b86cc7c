"""``agboss run``: one turn."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from agboss.cli.deciding import settle
from agboss.cli.faults import CommandError
from agboss.cli.options import Session, command
from agboss.cli.turns import graph_of, take_turn, tell
from agboss.components.boundary import StartSpec
from agboss.errors import InvalidInputError
from agboss.flow import Graph

ThreadOption = Annotated[str | None, typer.Option("--thread", metavar="ID", help="Continue this thread.")]


def register(cli: typer.Typer) -> None:
    """Add the command."""
    command(cli, "run")(run)


async def run(
    session: Session,
    task: Annotated[str, typer.Argument(help="The task; JSON for a workflow with a typed start.")],
    thread: ThreadOption = None,
) -> None:
    """Run one turn: print its answer, its thread, what was summarised and what it cost."""
    if not task.strip():
        raise CommandError("cli.no-task", "the task is empty", 'write it after the command: agboss run "..."')
    workflow = session.workflow()
    opening, graph = session.open_app(workflow), graph_of(workflow)
    async with opening as app:
        result = await take_turn(app, graph, session.out, typed(graph, task), thread)
        result = await settle(app, graph, session.out, result)
    if session.out.as_json:
        session.out.document(result.to_dict())
    else:
        tell(session.out, result)


def typed(graph: Graph, task: str) -> Any:
    """The task as its start takes it: text, or the fields of the start's model.

    Raises:
        InvalidInputError: The start takes fields and the text is no JSON object.
    """
    starts = [node.spec for node in graph.of_kind("start") if isinstance(node.spec, StartSpec)]
    model = starts[0].input if len(starts) == 1 else None
    if model is None:
        return task
    try:
        fields = json.loads(task)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        names = ", ".join(f'"{name}": ...' for name in model.model_fields)
        raise InvalidInputError(
            "run.invalid-input",
            f"start {starts[0].name!r} takes the fields of {model.__name__}, and the task is no JSON object",
            f"write it as '{{{names}}}'",
        )
    return fields  # pyright: ignore[reportUnknownVariableType]
