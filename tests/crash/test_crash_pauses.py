"""Kill -9 at any statement of a Tern that waits for approvals: it ends once, as it was decided."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pausing_desk
import pytest

from agboss_memory import TernStatus

MOST_RUNS = 60


def run(folder: Path, statement: int) -> int:
    """Run the program until it ends or is killed at that statement."""
    command = [sys.executable, pausing_desk.__file__, str(folder), str(statement)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, -9), done.stderr
    return done.returncode


def kept(folder: Path) -> set[str]:
    """Calls that must not begin again."""
    if not (folder / "desk.db").exists():
        return set()
    with closing(sqlite3.connect(folder / "desk.db")) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'steps'").fetchone():
            return set()
        rows = connection.execute("SELECT step_key FROM steps WHERE kind IN ('model', 'tool')").fetchall()
    return {key.removeprefix("clerk.1.") for (key,) in rows}


def lines(folder: Path) -> list[str]:
    path = folder / "calls.txt"
    return path.read_text(encoding="utf-8").split() if path.exists() else []


@pytest.mark.parametrize("seed", range(3))
async def test_b058_killed_around_its_decisions_a_tern_ends_once(tmp_path: Path, seed: int) -> None:
    rolls, kills = random.Random(seed), 0
    for _ in range(MOST_RUNS):
        before, known = len(lines(tmp_path)), kept(tmp_path)
        code = run(tmp_path, rolls.randrange(5, 120) if kills < 12 else 0)
        again = known & set(lines(tmp_path)[before:])
        assert not again, f"seed {seed}: {again} had been kept"
        if code == 0:
            break
        kills += 1
    else:
        raise AssertionError("it never ends")
    assert kills > 2
    done = lines(tmp_path)
    pauses = [place for place, line in enumerate(done) if line == pausing_desk.PAUSED]
    for place in pauses:
        assert not (set(done[:place]) & set(done[place:])) - {pausing_desk.PAUSED}, f"seed {seed}: {done}"
    async with pausing_desk.open_desk(tmp_path) as app:
        result = await pausing_desk.drive(app)
        assert (result.tern, result.status, result.answer) == (1, TernStatus.ANSWERED, "done")
        (tern,) = (await app.threads.get("t")).terns
        assert [record.purpose for record in tern.usage].count("answer") == 4
        assert [record.purpose for record in tern.usage].count("tool") == 2
        results = [item.content for item in (await app.threads.export("t")).messages if item.role == "tool"]
        assert results[:3] == ["looked 0", "paid 1", "Error: not run, a person denied this call of pay."]
        assert results[3].endswith("paid 99")
        assert results[4:] == ["looked 20"]
        assert await app.threads.check() == ()
    with closing(sqlite3.connect(tmp_path / "desk.db")) as connection:
        kinds = connection.execute("SELECT kind, count(*) FROM steps GROUP BY kind ORDER BY kind").fetchall()
    assert kinds == [("decision", 3), ("pause", 3)]
