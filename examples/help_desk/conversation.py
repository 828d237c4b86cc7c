"""A conversation at the desk, printed with who answered."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys

from agboss import AgbossError, App, create_app

from .desk import HelpDesk

CONVERSATION = (
    "My order 4711 has not arrived.",
    "When are you open?",
    "Which order has not arrived?",
)


async def converse(app: App) -> None:
    """Three turns. Both agents read the same thread, whoever answered before."""
    thread: str | None = None
    for task in CONVERSATION:
        result = await app.execute(task, thread=thread)
        thread = result.thread
        print(f"you> {task}\n     {' → '.join(result.path)}\n     {result.answer}")
    print(f"\nthread: {thread}\n\n{app.describe()}")


async def main(*, offline: bool) -> int:
    """Hold the conversation; 1 when a model cannot be used."""
    logging.getLogger("agboss").setLevel(logging.ERROR)
    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        reconfigure(encoding="utf-8")  # whatever the locale says
    try:
        async with create_app(HelpDesk, offline=offline) as app:
            if offline:
                print("offline: the stand-in for a model quotes what was said; it calls no tools\n")
            await converse(app)
    except AgbossError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def run() -> None:
    """The command line of the example."""
    parser = argparse.ArgumentParser(description="A help desk with a router, two agents and a tool.")
    parser.add_argument("--offline", action="store_true", help="built-in stand-ins for all models; needs no key")
    sys.exit(asyncio.run(main(offline=parser.parse_args().offline)))
