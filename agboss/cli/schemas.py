"""``agboss schema``: JSON Schemas for editors."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from agboss.cli.faults import CommandError
from agboss.cli.options import Session, command
from agboss.definitions import definition_schema
from agboss_memory.config import memory_config_schema

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class What(StrEnum):
    """What a schema describes."""

    agent = "agent"
    memory = "memory"


def register(cli: typer.Typer) -> None:
    """Add the command."""
    command(cli, "schema")(schema)


def schema(
    session: Session,
    what: Annotated[What, typer.Argument(help="An agent definition, or a memoryConfig alone.")] = What.agent,
    output: Annotated[Path | None, typer.Option("--output", metavar="FILE", help="Write it there.")] = None,
) -> None:
    """The JSON Schema of agent definitions, memoryConfig included, or of memoryConfig alone."""
    made = {"$schema": DIALECT} | (definition_schema() if what is What.agent else memory_config_schema())
    if output is None:
        session.out.document(made)
        return
    try:
        output.write_text(json.dumps(made, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        text = f"{output} cannot be written: {error.strerror or error}"
        raise CommandError("cli.cannot-write", text, "name a file in a folder that is there") from None
    if session.out.as_json:
        session.out.document({"written": str(output)})
    else:
        session.out.line(f"written: {output}")
