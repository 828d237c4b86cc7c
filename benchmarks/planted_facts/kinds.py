"""Our memory as it is measured: the last text that the model would see, and what it could fetch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from agboss_memory import Memory, MemoryContext, MemoryStore, MemoryView, Message, Summary, Tern, ToolCall, TurnMemory
from agboss_memory.compaction import SummaryTask, summarise
from agboss_memory.contract import Budget
from agboss_memory.fit import FitRequest, fit
from agboss_memory.messages import Block
from agboss_memory.render import user_message
from agboss_memory.testing import QuarterCounter
from benchmarks.planted_facts.summariser import Extractive

QUESTION = "What do you know?"
SYSTEM = "You are an assistant."
KINDS: dict[str, dict[str, Any] | None] = {
    "turns": None,
    "auto_compact": {"kind": "auto_compact"},
    "auto_compact, eviction": {"kind": "auto_compact", "toolResultEviction": {"afterTurns": 1, "aboveTokens": 60}},
    "summarizing_window": {
        "kind": "summarizing_window",
        "autoSummarize": True,
        "minToolResultCompressTokens": 60,
        "toolResultThresholdRatio": 0.01,
    },
    "windowed": {"kind": "windowed"},
    "full": {"kind": "full"},
    "none": {"kind": "none"},
}
_STUB = re.compile(r"\bm-\d+\b")

Turns = Sequence[tuple[str, str | None, str]]
"""What a user says, what a tool says in the turn or None, and what the assistant answers."""


async def seen(kind: str, turns: Turns, window: int) -> tuple[str, str]:
    """What the model sees after these turns, and what it can fetch by the ids that it sees."""
    config = KINDS[kind]
    return await (_of_turns(turns, window) if config is None else _of_messages(config, turns, window))


async def _of_messages(config: dict[str, Any], turns: Turns, window: int) -> tuple[str, str]:
    counter = QuarterCounter()
    memory = Memory(
        MemoryStore(),
        config,
        model=Extractive(counter),
        counter=counter,
        window=window,
        summary_window=8 * window,
        system=SYSTEM,
    )
    for number, (task, found, answer) in enumerate(turns):
        await memory.remember("t", [Message(role="user", content=task)])
        if found is not None:
            call = ToolCall(id=f"c{number}", name="look")
            await memory.remember(
                "t",
                [
                    Message(role="assistant", tool_calls=(call,)),
                    Message(role="tool", tool_call_id=call.id, tool_name="look", content=found),
                ],
            )
        await memory.view("t")
        await memory.remember("t", [Message(role="assistant", content=answer)])
        await memory.after_turn("t")
    await memory.remember("t", [Message(role="user", content=QUESTION)])
    view = await memory.view("t")
    texts = [message.content for message in view.messages]
    stubs = [m.content for m in view.messages if m.state in ("compressed", "evicted")] if view.offers_fetch else []
    ids = {found for stub in stubs for found in _STUB.findall(stub)}
    fetched = [await memory.fetch_tool_result("t", one) for one in sorted(ids)]
    return "\n".join([view.system, *texts]), "\n".join(fetched)


async def _of_turns(turns: Turns, window: int, every: int = 5, keep: int = 10) -> tuple[str, str]:
    """Turn memory keeps tasks and answers; what a tool said is in neither."""
    counter = QuarterCounter()
    model = Extractive(counter)
    terns = [Tern(number=n, task=task, answer=answer) for n, (task, _, answer) in enumerate(turns, 1)]
    summaries: list[Summary] = []
    blocks: list[Block] = []

    async def ask(system: str, said: Sequence[tuple[str, str]]) -> tuple[str, bool]:
        text = said[-1][1].partition("Turns to summarise:\n")[2]
        return model.shorten(text, 128), True

    starts = range(0, len(terns) + 1, every)
    for begin, end in pairwise(starts):
        before = terns[max(begin - every, 0) : begin]
        task = SummaryTask(terns=terns[begin:end], before=before, max_tokens=128, window=8 * window)
        text, tokens = await summarise(task, ask, counter)
        summaries.append(Summary(first=begin + 1, last=end, text=text, tokens=tokens))
        blocks.append(Block(first=begin + 1, last=end, state="done"))
    strategy = TurnMemory(turns=10, summaries=keep, every=every)
    budget = Budget(window=window, reply_reserve=window // 8, counter=counter)
    context = MemoryContext(
        thread_id="t",
        task=QUESTION,
        history=tuple(terns[-(strategy.reach.terns or 0) :]),
        summaries=tuple(summaries[-keep:]),
        blocks=tuple(blocks),
        budget=budget,
    )
    view: MemoryView = strategy.build_context(context)
    fitted = fit(FitRequest(agent="a", view=view, task=QUESTION, fixed=(SYSTEM,), budget=budget))
    return user_message(fitted.view, fitted.task).content, ""
