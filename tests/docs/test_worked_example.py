"""The table of the page on turn memory, played through."""

import re

from pages import ROOT

from agboss import AnswerFinish, Compaction, Defaults, History, TaskStart, agent, chain, workflow
from agboss.testing import MakeApp

PAGE = ROOT / "docs" / "explanation" / "what-turn-memory-shows.md"
NOTHING = "–"


@agent(model="local:extractive")
class Helper:
    """Answer the task from the previous turns."""


@workflow(
    flow=[chain(TaskStart, Helper, AnswerFinish)],
    defaults=Defaults(history=History(limit=2, summaries=2)),
    compaction=Compaction(every=2, keep=3),
)
class Desk: ...


async def test_the_worked_example_is_what_happens(agboss_app: MakeApp) -> None:
    told = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if re.match(r"\| \d", line)
    ]
    seen: list[list[str]] = []
    thread: str | None = None
    async with agboss_app(Desk, models=None) as app:
        for number in range(1, 9):
            cells = [NOTHING] * 3
            if thread is not None:
                view = await app.memory.view(thread)
                summaries = ", ".join(
                    f"{row.first_tern}–{row.last_tern}" for row in view.messages if row.type == "SUMMARY"
                )
                raw = ", ".join(str(row.last_tern) for row in view.messages if row.type == "CHAT" and row.last_tern)
                gone = ", ".join(f"{gap.first}–{gap.last}" for gap in view.left_out)
                cells = [summaries or NOTHING, raw or NOTHING, gone or NOTHING]
            result = await app.execute(f"The code of room {number} is {number}00.", thread=thread)
            thread = result.thread
            seen.append([str(number), *cells, result.memory or NOTHING])
    assert told == seen
