"""A memory strategy of one's own: this agent sees the last two turns and nothing else.

Run it without a key:  python examples/quick_responder.py --offline
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys

from agboss import AgbossError, AnswerFinish, App, TaskStart, agent, chain, create_app, workflow
from agboss_memory import SlidingWindowStrategy


class LastTwoTurns(SlidingWindowStrategy):
    """Short and cheap: two turns, no summaries."""

    def __init__(self) -> None:
        super().__init__(turns=2, summaries=0)


@agent(
    description="Answers at once, from the last two turns",
    prompt="Answer the task in one sentence. Use the previous turns.",
    model="openai:gpt-5-mini",
    memory_strategy=LastTwoTurns,
)
class QuickResponder: ...


@workflow(name="quick-desk", version="1.0.0", flow=[chain(TaskStart, QuickResponder, AnswerFinish)])
class QuickDesk: ...


CONVERSATION = (
    "The meeting is on Monday.",
    "When is the meeting?",
    "The room is number 12.",
    "Bring the printed contract.",
    "When is the meeting?",
)


async def converse(app: App) -> None:
    """Five turns; at the last one the first is two turns too old."""
    thread: str | None = None
    for number, task in enumerate(CONVERSATION, start=1):
        result = await app.execute(task, thread=thread)
        thread = result.thread
        print(f"{number}. {task}\n   {result.answer}")
    if thread is not None:
        view = await app.memory.view(thread)
        shown = [row.last_tern for row in view.messages if row.last_tern]
        print(f"\nthread: {thread}")
        print(f"The next turn will see turns {shown}; left out: {[(gap.first, gap.last) for gap in view.left_out]}")


async def main(*, offline: bool) -> int:
    """Hold the conversation; 1 when a model cannot be used."""
    logging.getLogger("agboss").setLevel(logging.ERROR)
    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        reconfigure(encoding="utf-8")  # whatever the locale says
    try:
        async with create_app(QuickDesk, offline=offline) as app:
            await converse(app)
    except AgbossError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--offline", action="store_true", help="built-in stand-ins for all models; needs no key")
    sys.exit(asyncio.run(main(offline=parser.parse_args().offline)))
