"""What an agent is shown of a thread, piece by piece, with the reason of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agboss.agents import AgentPlan
from agboss.app.rows import mapped_rows
from agboss.conversing import PreviewConversation
from agboss.tern import BuiltContext, ContextRequest
from agboss_memory.contract import ConversationLog, LeftOut, MemoryView
from agboss_memory.explain import ExplainedRow, RowType, explained
from agboss_memory.fit import effective_window
from agboss_memory.messages import EPOCH, MessageState, ToolCall
from agboss_memory.records import Record, field, replace
from agboss_memory.render import Row
from agboss_memory.stores.contract import ThreadState
from agboss_memory.tokens import count_async, load_counter

SUMMARY_NUMBER = -100
"""``sequence_num`` of the first summary; the next ones count down."""

SYSTEM_NUMBER = -1
"""``sequence_num`` of the system prompt."""


class MemoryRow(Record, kw_only=True):
    """One row of a view.

    Attributes:
        type: ``CHAT``, ``TOOL_CALL``, ``TOOL_RESULT`` or ``SUMMARY``.
        role: system, user, assistant or tool.
        sequence_num: Number of the message, of the Tern in turn memory; -100, -101, ... for summaries; 0 for headings,
            placeholders and the task.
        sent_at_ms: When it was said, in milliseconds since 1970 UTC; 0 = nobody said it.
        tokens: Text tokens of what the model reads.
        content: What was said, as stored; empty for a summary of Terns.
        compressed: Whether something else is sent in its place.
        compressed_content: What is sent then.
        compressed_token_count: Tokens of that.
        state: ``live``, ``compressed``, ``evicted``, ``cut``, ``summary`` or ``placeholder``.
        reason: The state in words.
        first_tern: First Tern that it shows or stands for; 0 = none.
        last_tern: Last one.
        tool_calls: What an assistant message calls; name and arguments reach the model beside the content.
    """

    type: RowType
    role: str
    sequence_num: int
    tokens: int
    content: str
    sent_at_ms: int = 0
    compressed: bool = False
    compressed_content: str | None = None
    compressed_token_count: int | None = None
    state: MessageState = "live"
    reason: str = ""
    first_tern: int = 0
    last_tern: int = 0
    tool_calls: tuple[ToolCall, ...] = ()

    @property
    def shown(self) -> str:
        """The text as the model reads it."""
        return self.content if self.compressed_content is None else self.compressed_content


class WorkingMemory(Record, kw_only=True):
    """What an agent sees of a thread.

    Attributes:
        thread: Id of the thread.
        agent: Name of the agent.
        kind: The memoryConfig kind, ``turns`` for turn memory, else the class name of the strategy.
        config: The memoryConfig in wire spelling; for others the numbers that shape the view.
        system_prompt: The system text, with summaries when the kind places them there.
        system_prompt_tokens: Tokens of it, those of summaries with a row of their own not among them.
        messages: The view, summaries first, then in the order in which the model reads it.
        left_out: Ranges of turns or messages in no row, with the reason.
        total_tokens: Text tokens of system text and rows, each counted once.
        token_counter_name: Name of the counter.
        context_window_tokens: The model's window in tokens, None when unknown.
        reply_reserve_tokens: Tokens of the window that are kept free for the answer.
        warnings: What went wrong without stopping the view.
    """

    thread: str
    agent: str
    kind: str
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    system_prompt: str = ""
    system_prompt_tokens: int = 0
    messages: tuple[MemoryRow, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    total_tokens: int = 0
    token_counter_name: str = ""
    context_window_tokens: int | None = None
    reply_reserve_tokens: int = 0
    warnings: tuple[str, ...] = ()


async def working_memory(
    agent: AgentPlan, request: ContextRequest, state: ThreadState, built: BuiltContext
) -> WorkingMemory:
    """A built view as rows with tokens. The task of the request is shown as a row unless it is empty."""
    counter = agent.counter()
    await load_counter(counter)
    if isinstance(request.log, PreviewConversation) and agent.config is not None:
        return await _window_memory(agent, state, _without_task_to_come(built, request.log), request.log)
    rows = await mapped_rows(request, built.view)
    system, *texts = await count_async(counter, [built.system, *(row.text for row in rows)])
    counts = [tokens if row.tokens is None else row.tokens for row, tokens in zip(rows, texts, strict=True)]
    reach = agent.reach
    return WorkingMemory(
        thread=state.info.id,
        agent=agent.name,
        kind=agent.strategy_name,
        config={"turns": reach.terns, "summaries": reach.summaries, "messages": reach.messages},
        system_prompt=built.system,
        system_prompt_tokens=system,
        messages=_numbered(rows, counts),
        left_out=left_out(built.view, state.info.terns),
        total_tokens=system + sum(counts),
        token_counter_name=counter.name,
        context_window_tokens=agent.model.window,
        reply_reserve_tokens=agent.model.reply_reserve,
        warnings=built.view.warnings,
    )


def _without_task_to_come(built: BuiltContext, log: PreviewConversation) -> BuiltContext:
    """The request without the message that stands for the next task: nobody has said it yet."""
    if not log.to_come:
        return built
    said = tuple(one for one in built.view.messages or () if one.number != log.to_come)
    sent = tuple(one for one in built.messages if one.number != log.to_come)
    left = tuple(one for one in built.view.left_out if one.unit != "messages" or one.first < log.to_come)
    return replace(built, view=replace(built.view, messages=said, left_out=left), messages=sent)


async def _window_memory(
    agent: AgentPlan, state: ThreadState, built: BuiltContext, log: ConversationLog
) -> WorkingMemory:
    addendum = built.view.system_addendum
    told = await explained(
        built.view,
        log,
        kind=agent.strategy_name,
        config={} if agent.config is None else agent.config.model_dump(mode="json", by_alias=True),
        system=built.system[: -len(addendum)].rstrip("\n") if addendum else built.system,
        counter=agent.counter(),
        window=effective_window(agent.model.window),
        sent=built.messages,
    )
    return WorkingMemory(
        thread=state.info.id,
        agent=agent.name,
        kind=told.kind,
        config=told.config,
        system_prompt=built.system,
        system_prompt_tokens=told.system_tokens,
        messages=tuple([await _explained_row(row, log) for row in told.rows]),
        left_out=told.left_out,
        total_tokens=told.total_tokens,
        token_counter_name=told.counter,
        context_window_tokens=agent.model.window,
        reply_reserve_tokens=agent.model.reply_reserve,
        warnings=told.warnings,
    )


async def _explained_row(row: ExplainedRow, log: ConversationLog) -> MemoryRow:
    first = await log.message(row.first) if row.first else None
    last = first if row.last == row.first else await log.message(row.last)
    changed = row.state not in ("live", "placeholder") or row.shown != row.content
    return MemoryRow(
        type=row.type,
        role=row.role,
        sequence_num=row.number,
        tokens=row.tokens,
        content=row.content,
        sent_at_ms=0 if row.said_at == EPOCH else int(row.said_at.timestamp() * 1000),
        compressed=changed,
        compressed_content=row.shown if changed else None,
        compressed_token_count=row.tokens if changed else None,
        state=row.state,
        reason=row.reason,
        first_tern=0 if first is None else first.tern,
        last_tern=0 if last is None else last.tern,
        tool_calls=row.tool_calls,
    )


def _numbered(rows: Sequence[Row], counts: Sequence[int]) -> tuple[MemoryRow, ...]:
    made: list[MemoryRow] = []
    summaries = 0
    for row, tokens in zip(rows, counts, strict=True):
        plain = MemoryRow(
            type="CHAT",
            role="user",
            sequence_num=row.tern,
            tokens=tokens,
            content=row.text,
            reason=_TURN_REASONS.get(row.kind, ""),
            first_tern=row.tern,
            last_tern=row.tern,
        )
        summary = row.summary
        if summary is not None:
            plain = replace(
                plain,
                type="SUMMARY",
                sequence_num=SUMMARY_NUMBER - summaries,
                sent_at_ms=int(summary.created_at.timestamp() * 1000),
                content="",
                compressed=True,
                compressed_content=row.text,
                compressed_token_count=tokens,
                state="summary",
                first_tern=summary.first,
            )
            summaries += 1
        made.append(plain)
    return tuple(made)


_TURN_REASONS = {
    "turn": "one of the turns that the agent sees raw",
    "summary": "stands for older turns",
    "recalled": "recalled by the strategy",
    "task": "the task",
    "file": "a file of the task; the model gets it as it is",
}


def left_out(view: MemoryView, terns: int) -> tuple[LeftOut, ...]:
    """Ranges of turns 1..``terns`` that the view shows neither raw nor in a summary, oldest first.

    What the view names itself keeps its reason; the rest is beyond the reach of the strategy.
    """
    shown = sorted(
        [(tern.number, tern.number) for tern in view.history]
        + [(summary.first, summary.last) for summary in view.summaries]
    )
    named = sorted((one.first, one.last, one.reason) for one in view.left_out if one.unit == "turns")
    gaps: list[LeftOut] = []
    number = 1
    for first, last in (*shown, (terns + 1, terns + 1)):
        for left, right, reason in named:
            left, right = max(left, number), min(right, first - 1)
            if left <= right:
                _add(gaps, number, left - 1, "beyond_reach")
                _add(gaps, left, right, reason)
                number = right + 1
        _add(gaps, number, first - 1, "beyond_reach")
        number = max(number, last + 1)
    return tuple(gaps)


def _add(gaps: list[LeftOut], first: int, last: int, reason: str) -> None:
    if first > last:
        return
    if gaps and gaps[-1].last == first - 1 and gaps[-1].reason == reason:
        first = gaps.pop().first
    gaps.append(LeftOut(first=first, last=last, reason=reason))
