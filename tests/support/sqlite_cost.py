"""Counting what SQLite does, and long threads made fast."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path


class Trace:
    """The statements that ran, as SQLite itself reports them."""

    def __init__(self) -> None:
        self.statements: list[str] = []

    def __call__(self, statement: str) -> None:
        self.statements.append(statement)

    def take(self) -> list[str]:
        """What ran since the last call."""
        taken, self.statements = self.statements, []
        return taken


def seed_copies(path: Path, upto: int) -> None:
    """Repeat the newest Tern, with its block and summary for every second one, up to a number."""
    with sqlite3.connect(path) as connection:
        (last,) = connection.execute("SELECT last_seq FROM threads").fetchone()
        for table, number, step in (
            ("terns", "seq", 1),
            ("usage", "tern_seq", 1),
            ("messages", "tern_seq", 1),
            ("blocks", "last", 2),
            ("summaries", "to_seq", 2),
        ):
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            rows = connection.execute(f"SELECT * FROM {table} WHERE {number} = {last}").fetchall()
            for copy in range(step, upto - last + 1, step):
                for row in rows:
                    values = dict(zip(columns, row, strict=True))
                    values[number] += copy
                    for name in {"first", "from_seq"} & set(columns):
                        values[name] += copy
                    if table == "summaries":
                        values["id"] += copy // 2
                    if table == "messages":
                        values["seq"] += 2 * copy
                    if table == "terns":
                        said = json.loads(values["said"])
                        values["said"] = json.dumps([n if isinstance(n, str) else n + 2 * copy for n in said])
                    marks = ", ".join("?" * len(columns))
                    connection.execute(f"INSERT INTO {table} VALUES ({marks})", tuple(values.values()))
        connection.execute("UPDATE threads SET last_seq = ?", (upto,))
        connection.execute("UPDATE conversations SET last_seq = (SELECT max(seq) FROM messages)")
    connection.close()


def fetched_rows(path: Path, statements: list[str]) -> list[int]:
    """How many rows each statement that reads fetches."""
    connection = sqlite3.connect(path)
    counts = [len(connection.execute(s).fetchall()) for s in statements if s.startswith("SELECT")]
    connection.close()
    return counts


def shape(statement: str) -> str:
    return " ".join(statement.split()[:3])
