"""``agboss models``: the weights of the embedded model."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from agboss.cli.options import Session, command

group = typer.Typer(help="Fetch the weights of the embedded model.", rich_markup_mode=None)

Tell = Callable[[str, int, int], None]

_STEPS = {"check": "checking", "download": "downloading", "extract": "unpacking"}


@command(group, "fetch")
def fetch(
    session: Session,
    directory: Annotated[
        Path | None, typer.Option("--directory", metavar="DIR", help="Where to keep the file.")
    ] = None,
) -> None:
    """Fetch the small embedded model once; does nothing when a good file is there."""
    module: Any = importlib.import_module("agboss.models.fetch")
    path = _with_progress(session, lambda tell: module.fetch_embedded(directory, tell))
    if session.out.as_json:
        session.out.document({"path": str(path)})
    else:
        session.out.line(str(path))


def _with_progress(session: Session, work: Callable[[Tell], Path]) -> Path:
    console = session.out.progress_console
    if console is None:
        return work(_untold)
    from rich.progress import Progress

    with Progress(console=console, transient=True) as progress:
        tasks: dict[str, Any] = {}

        def tell(step: str, done: int, total: int) -> None:
            if step not in tasks:
                tasks[step] = progress.add_task(_STEPS.get(step, step), total=total)
            progress.update(tasks[step], completed=done)

        return work(tell)


def _untold(step: str, done: int, total: int) -> None:
    pass
