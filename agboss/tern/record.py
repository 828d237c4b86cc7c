"""Sixth stage: the final transaction. The Tern, its messages and its usage are written together or not at all."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Literal

from agboss.conversing import counted, shared
from agboss.run import LiveTern
from agboss.windows import Windows
from agboss_memory.compaction import plan_blocks
from agboss_memory.messages import Block, Message, Tern, TernStatus, ToolCall
from agboss_memory.records import Record, replace
from agboss_memory.stores.contract import Commit

CLOSED_CALL = "Error: not finished, the turn ended before the tool gave a result."
"""Result of a call that was still open when the Tern ended."""


_HEARD = (TernStatus.ANSWERED, TernStatus.FAILED, TernStatus.GUARDED)
"""What strategies learn from."""


class RecordRequest(Record, kw_only=True):
    """How the Tern ended.

    Attributes:
        live: The Tern.
        windows: Windows of threads in use.
        status: Its status.
        now: Aware UTC.
        answer: Its answer.
        finish: Name of the finish, or empty.
        output: JSON of the output, or None.
        error: Cause of a failure in one line that is safe to show.
        error_code: The cause's code.
    """

    live: LiveTern
    windows: Windows
    status: TernStatus
    now: datetime
    answer: str = ""
    finish: str = ""
    output: str | None = None
    error: str = ""
    error_code: str = ""


class Recorded(Record, kw_only=True):
    """What the final transaction stored and left.

    Attributes:
        tern: The Tern.
        messages: Its messages.
        due: Blocks that are due now.
        strategies: Strategies whose update is due.
        held: The lease stays for this work until it is released.
    """

    tern: Tern
    messages: tuple[Message, ...]
    due: tuple[Block, ...]
    strategies: tuple[str, ...]
    held: bool


async def record(request: RecordRequest) -> Recorded:
    """Store the Tern. Raises ThreadDeletedError or LeaseLostError; then nothing was written."""
    live = request.live
    plan = live.plan
    tern = Tern(
        number=live.number,
        task=live.task,
        answer=request.answer,
        status=request.status,
        agent=live.agent,
        start=live.start,
        finish=request.finish,
        path=tuple(live.path),
        output=request.output,
        version=plan.version,
        config_hash=plan.config_hash,
        started_at=live.started_at,
        finished_at=request.now,
        metadata=live.metadata,
        attachments=live.attachments,
    )
    if request.error or request.error_code:
        tern = replace(tern, error=request.error, error_code=request.error_code)
    strategies = plan.updating if request.status in _HEARD else ()
    every = 0 if plan.compaction is None else plan.compaction.every
    blocks = plan_blocks(live.window.planned_to, live.number, every) if every else ()
    said: list[Message] = []
    if request.status.finished:  # a paused Tern says nothing until it has ended
        said = live.messages
        if plan.sharing:
            said = [*said, *shared(live, request.status, request.answer, request.error)]
    messages = closed(said)
    if plan.counting:
        counters = {name: plan.agents[name].counter() for name in plan.counting}
        messages = await asyncio.to_thread(counted, messages, counters)
    committed = await live.store.commit(
        Commit(
            key=live.key,
            fence=live.fence,
            tern=tern,
            now=request.now,
            messages=messages,
            usage=live.meter.booked,  # booking is idempotent: a second try offers the same
            blocks=blocks,
            strategies=strategies,
            steps=live.meter.steps if request.status.finished else 0,  # all of them count when it ends
            tool_calls=live.meter.tool_calls if request.status.finished else 0,
            remembers=_remembers(request),
        )
    )
    live.meter.take()
    request.windows.after_commit(live.thread, committed.version, tern, blocks, committed.due)
    return Recorded(tern=tern, messages=messages, due=committed.due, strategies=strategies, held=committed.held)


def _remembers(request: RecordRequest) -> Literal["no", "due", "yes"]:
    """Memory works on Terns that have ended: on what is due, and on what was tried before and failed."""
    if not request.status.finished:
        return "no"
    pending = request.live.pending
    return "yes" if pending and any(work.attempts for work in pending) else "due"


def closed(messages: list[Message]) -> tuple[Message, ...]:
    """The messages as they are stored: every open call closed with a failed result, in the order of the calls."""
    if not [message for message in messages if message.tool_calls]:
        return tuple(messages)
    stored: list[Message] = []
    position = 0
    while position < len(messages):
        message = messages[position]
        stored.append(message)
        position += 1
        if not message.tool_calls:
            continue
        results: dict[str | None, Message] = {}
        while position < len(messages) and messages[position].role == "tool":
            results[messages[position].tool_call_id] = messages[position]
            position += 1
        stored.extend(results.get(call.id) or _not_finished(message, call) for call in message.tool_calls)
    return tuple(stored)


def _not_finished(message: Message, call: ToolCall) -> Message:
    return replace(
        message,
        role="tool",
        content=CLOSED_CALL,
        tool_calls=(),
        thinking=(),
        tool_call_id=call.id,
        tool_name=call.name,
    )
