"""A strategy with a store of its own: facts are written down after each turn and recalled before the next.

The store is opened with the App and closed with it. Facts belong to a thread AND its owner, so that none leaks.

Run it without a key:  python examples/fact_extraction.py --offline
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import re
import sqlite3
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path

from agboss import (
    AgbossError,
    AnswerFinish,
    App,
    InjectionToken,
    TaskStart,
    agent,
    chain,
    create_app,
    injectable,
    provide_factory,
    workflow,
)
from agboss_memory import BaseMemoryStrategy, MemoryContext, MemoryTurn, MemoryUpdate, MemoryView, Reach

FACTS_VARIABLE = "FACTS_DB"
"""Environment variable with the path of the fact store; default ``.agboss/facts.db``."""


class FactStore:
    """Facts per owner and thread, in SQLite.

    Args:
        connection: May be used from other threads, one at a time.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._lock = asyncio.Lock()

    async def add(self, owner: str | None, thread: str, turn_key: str, facts: Sequence[str]) -> None:
        """Write the facts of one turn. The same turn may come again: it is written once."""
        rows = [(owner or "", thread, turn_key, place, fact) for place, fact in enumerate(facts)]
        async with self._lock:
            await asyncio.to_thread(self._insert, rows)

    async def recall(self, owner: str | None, thread: str, limit: int = 20) -> tuple[str, ...]:
        """The newest ``limit`` facts of one thread of one owner, oldest first."""
        async with self._lock:
            return await asyncio.to_thread(self._select, owner or "", thread, limit)

    def _insert(self, rows: list[tuple[str, str, str, int, str]]) -> None:
        with self._connection:
            self._connection.executemany("INSERT OR IGNORE INTO facts VALUES (?, ?, ?, ?, ?)", rows)

    def _select(self, owner: str, thread: str, limit: int) -> tuple[str, ...]:
        query = "SELECT fact FROM facts WHERE owner = ? AND thread = ? ORDER BY rowid DESC LIMIT ?"
        found = self._connection.execute(query, (owner, thread, limit)).fetchall()
        return tuple(fact for (fact,) in reversed(found))


FACTS = InjectionToken[FactStore]("FACTS")


@asynccontextmanager
async def open_facts() -> AsyncGenerator[FactStore, None]:
    """The fact store, for as long as the App is open."""
    path = Path(os.environ.get(FACTS_VARIABLE, ".agboss/facts.db"))
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS facts (owner TEXT NOT NULL, thread TEXT NOT NULL, turn TEXT NOT NULL,"
            " place INTEGER NOT NULL, fact TEXT NOT NULL, UNIQUE (owner, thread, turn, place))"
        )
        yield FactStore(connection)


@injectable(deps=[FACTS])
class FactExtractionStrategy(BaseMemoryStrategy):
    """One raw turn, and every fact that was stated before. A question states nothing."""

    reach = Reach(terns=1, summaries=0)

    def __init__(self, facts: FactStore) -> None:
        self.facts = facts

    async def build_context(self, context: MemoryContext) -> MemoryView:
        """The last turn and the facts. What is recalled is fenced as data when it is shown to the model."""
        recalled = await self.facts.recall(context.owner, context.thread_id)
        return MemoryView(history=context.history[-1:], recalled=recalled)

    async def update_memory(self, turn: MemoryTurn) -> MemoryUpdate:
        """Write down what was stated. A real extractor would ask its ``MemoryModel`` here."""
        await self.facts.add(turn.owner, turn.thread_id, turn.idempotency_key, stated(turn.tern.task))
        return MemoryUpdate()


def stated(text: str) -> list[str]:
    """The sentences of a text that are no questions."""
    sentences = re.findall(r"[^.!?]+[.!?]?", text)
    return [sentence.strip() for sentence in sentences if sentence.strip() and not sentence.endswith("?")]


@agent(
    description="Answers from recalled facts",
    prompt="Answer the task from what is recalled and from the previous turn.",
    model="openai:gpt-5-mini",
    memory_strategy=FactExtractionStrategy,
)
class FactKeeper: ...


@workflow(
    name="fact-desk",
    version="1.0.0",
    flow=[chain(TaskStart, FactKeeper, AnswerFinish)],
    providers=[provide_factory(FACTS, open_facts)],
)
class FactDesk: ...


CONVERSATION = (
    "My dog is called Bruno. I am allergic to nuts.",
    "It was a long day.",
    "It is raining here.",
    "What am I allergic to?",
)


async def converse(app: App) -> None:
    """Ada tells two facts and asks later; Bob, in a thread of his own, learns nothing of them."""
    thread: str | None = None
    for task in CONVERSATION:
        result = await app.execute(task, thread=thread, owner="ada")
        thread = result.thread
        print(f"ada> {task}\n     {result.answer}")
    if thread is not None:
        view = await app.memory.view(thread)
        print("\nwhat the agent sees of Ada's past at the next turn:")
        print("".join(f"  │ {line}\n" for row in view.messages for line in row.shown.rstrip("\n").split("\n")))
        print(f"thread: {thread}\n")
    result = await app.execute("What am I allergic to?", owner="bob")
    print(f"bob> What am I allergic to?\n     {result.answer}")


async def main(*, offline: bool) -> int:
    """Hold the conversation; 1 when a model cannot be used."""
    logging.getLogger("agboss").setLevel(logging.ERROR)
    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        reconfigure(encoding="utf-8")  # whatever the locale says
    try:
        async with create_app(FactDesk, offline=offline) as app:
            await converse(app)
    except AgbossError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--offline", action="store_true", help="built-in stand-ins for all models; needs no key")
    sys.exit(asyncio.run(main(offline=parser.parse_args().offline)))
