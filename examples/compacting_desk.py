"""See memory at work: six turns, what the agent saw at each of them, and what became of the older ones.

Run it without a key:  python examples/compacting_desk.py --offline
With a key it asks the models that are named below.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import shutil
import sys
import textwrap

from agboss import (
    AgbossError,
    AnswerFinish,
    App,
    Compaction,
    Defaults,
    History,
    JevRouter,
    ModelDefaults,
    ModelSpec,
    RunResult,
    TaskStart,
    WorkflowDefinition,
    WorkflowSettings,
    WorkingMemory,
    agent,
    chain,
    create_app,
    workflow,
)


@agent(
    name="recaller",
    description="Answers from what was said",
    prompt="Answer the task from the previous turns.",
    model="moonshotai/kimi-k2.6",
)
class Recaller: ...


@workflow(
    name="compacting-desk",
    version="1.0.0",
    flow=[chain(TaskStart, Recaller, AnswerFinish)],
    defaults=Defaults(
        models=ModelDefaults(temperature=0),
        router=JevRouter(model="typesafe/jev-1.13"),
        history=History(limit=4, summaries=3),
    ),
    compaction=Compaction(every=2, keep=3, model=ModelSpec("moonshotai/kimi-k2.6", thinking="none")),
)
class CompactingDesk(WorkflowDefinition):
    def settings(self) -> WorkflowSettings:
        return WorkflowSettings.builder().build()


CONVERSATION = (
    ("My name is Pavel. I live in Brno.", "two facts"),
    ("What is my favourite tea?", "never told, so there is nothing to answer"),
    ("My train leaves at 18:40 from platform 7.", "turns 1 and 2 have a summary by now"),
    ("What is my name?", "turn 1 still shows it word by word"),
    ("Invoice 4711 is due on Friday.", "for the last time, turn 1 is shown"),
    ("Where do I live?", "turn 1 is out of sight; its summary is not"),
)


async def converse(app: App) -> None:
    """The six turns, each with what the agent saw, then all summaries."""
    print("The agent is shown the last 4 turns word by word. Every 2 turns become one")
    print("summary; the latest 3 summaries are shown before the turns.")
    warned: set[str] = set()
    thread: str | None = None
    for number, (task, remark) in enumerate(CONVERSATION, start=1):
        view = None if thread is None else await app.memory.view(thread)
        heading(f"Turn {number}: {remark}")
        print(f"Task:   {task}")
        show_view(view, task)
        result = await app.execute(TaskStart, task, thread=thread)
        show_warnings([text for text in result.warnings if text not in warned])
        warned.update(result.warnings)
        show_result(result, first=thread is None)
        thread = result.thread
    if thread is not None:
        await show_summaries(app, thread)


def show_view(view: WorkingMemory | None, task: str) -> None:
    """The message that the model reads: earlier turns as summaries, previous turns word by word, then the task."""
    rows = [] if view is None else list(view.messages)
    past = "".join(row.shown for row in rows)
    summaries = sum(row.type == "SUMMARY" for row in rows)
    turns = [row.last_tern for row in rows if row.type == "CHAT" and row.last_tern]
    raw = f"turns {turns[0]}–{turns[-1]}" if len(turns) > 1 else f"turn {turns[0]}" if turns else "no earlier turn"
    kept = "the task alone" if not rows else f"{summaries} summar{'y' if summaries == 1 else 'ies'} and {raw}"
    print(dim(f"\n  The agent sees {kept}:"))
    for line in f"{past}Task:\n{task}".split("\n") if past else [task]:
        print(dim(textwrap.fill(line, width(), initial_indent="  │ ", subsequent_indent="  │   ") or "  │"))
    print()


def show_warnings(warnings: list[str]) -> None:
    """On stderr, so that stdout holds the conversation alone."""
    sys.stdout.flush()
    for text in warnings:
        line = f"warning: {text}"
        wrapped = textwrap.fill(line, width(), subsequent_indent="         ", break_on_hyphens=False)
        print(wrapped if sys.stderr.isatty() else line, file=sys.stderr)
    if warnings and sys.stderr.isatty():
        print(file=sys.stderr)


def show_result(result: RunResult, *, first: bool) -> None:
    """The answer, and the same lines that ``agboss run`` prints below it."""
    print(f"Answer: {result.answer}")
    if first:
        print(f"thread: {result.thread}")
    if result.memory:
        print(f"memory: {result.memory}")


async def show_summaries(app: App, thread: str) -> None:
    """What is left of the conversation when its turns are out of reach."""
    heading("Summaries")
    for summary in await app.memory.summaries(thread):
        lead = f"turns {summary.first}–{summary.last}: "
        print(textwrap.fill(lead + summary.text, width(), subsequent_indent=" " * len(lead)))
    print("\nNothing was deleted: all six turns are still stored, word by word.")


def heading(text: str) -> None:
    """A line across the terminal."""
    print("\n" + styled(f"── {text} ".ljust(width(), "─"), 1))


def width() -> int:
    """Columns to fill: those of the terminal, at most 100."""
    return min(100, shutil.get_terminal_size().columns - 1)


def dim(text: str) -> str:
    """A fainter text."""
    return styled(text, 2)


def styled(text: str, code: int) -> str:
    """A bold (1) or faint (2) text, in terminals that show such things."""
    plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else "\n".join(f"\x1b[{code}m{line}\x1b[22m" for line in text.split("\n"))


async def main(*, offline: bool) -> int:
    """Hold the conversation; 1 when a model cannot be used."""
    logging.getLogger("agboss").setLevel(logging.ERROR)  # warnings are shown from the results, once
    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        reconfigure(encoding="utf-8")  # whatever the locale says
    try:
        async with create_app(CompactingDesk, offline=offline) as app:
            await converse(app)
    except AgbossError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--offline", action="store_true", help="built-in stand-ins for all models; needs no key")
    sys.exit(asyncio.run(main(offline=parser.parse_args().offline)))
