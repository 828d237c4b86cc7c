"""A view, piece by piece: what is in it, why, how large it is, and what it stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from agboss_memory.contract import ConversationLog, LeftOut, MemoryView, TokenCounter
from agboss_memory.fit import media_tokens
from agboss_memory.messages import EPOCH, MediaPart, Message, MessageState, ToolCall
from agboss_memory.notices import part_line
from agboss_memory.records import Record
from agboss_memory.render import CONTINUED, HEADING, numbered_summaries

RowType = Literal["CHAT", "TOOL_CALL", "TOOL_RESULT", "SUMMARY"]

REASONS: Mapping[MessageState, str] = {
    "live": "within what the kind shows of the live conversation",
    "compressed": "an old, read tool result; a stub stands for it",
    "evicted": "a tool result of an earlier turn; a pointer stands for it",
    "cut": "longer than a message may be, or than the window has room for",
    "summary": "stands for older messages",
    "placeholder": "closes a call that has no result; stored nowhere",
}


class ExplainedRow(Record, kw_only=True):
    """One piece of a view.

    Attributes:
        type: What it is.
        role: Who speaks.
        number: Number of the message; -100, -101, ... for summaries; 0 for a placeholder.
        first: First message that it stands for.
        last: Last one.
        said_at: When it was said, aware UTC; the epoch for what nobody said.
        tool_calls: What the message calls; their arguments are among its tokens.
        tokens: Text tokens of what is sent; of a file that is sent, its tokens.
        content: What was said, as stored.
        shown: What is sent.
        state: How ``shown`` came about.
        reason: The same in words.
    """

    type: RowType
    role: str
    number: int
    first: int
    last: int
    tokens: int
    content: str
    shown: str
    state: MessageState
    reason: str
    said_at: datetime = EPOCH
    tool_calls: tuple[ToolCall, ...] = ()


class Explanation(Record, kw_only=True):
    """A whole view, explained.

    Attributes:
        kind: The memoryConfig kind.
        config: The configuration in wire spelling.
        system: System text without summaries.
        system_tokens: Its tokens.
        rows: Summaries first, then messages, oldest first.
        left_out: What is in no row, with the reason.
        total_tokens: Tokens of system text and rows, each counted once.
        counter: Name of the token counter.
        window: The window in tokens.
        warnings: What went wrong without stopping the view.
    """

    kind: str
    config: Mapping[str, Any]
    system: str
    system_tokens: int
    rows: tuple[ExplainedRow, ...]
    left_out: tuple[LeftOut, ...]
    total_tokens: int
    counter: str
    window: int
    warnings: tuple[str, ...] = ()


async def explained(
    view: MemoryView,
    log: ConversationLog,
    *,
    kind: str,
    config: Mapping[str, Any],
    system: str,
    counter: TokenCounter,
    window: int,
    sent: Sequence[Message] | None = None,
) -> Explanation:
    """Explain a view. Originals of what is not shown as stored are read from the log.

    ``sent`` are the view's messages as the mapper leaves them; None = as they are.
    """
    rows = _summary_rows(view, counter)
    known = {id(message) for message in view.messages or ()}
    for message in view.messages or () if sent is None else sent:
        if message.state != "summary":
            rows.append(await _row(message, log, counter, mapped=id(message) not in known))
            rows.extend(_media_row(message, part) for part in message.media)
    (system_tokens,) = counter.count([system])
    return Explanation(
        kind=kind,
        config=config,
        system=system,
        system_tokens=system_tokens,
        rows=tuple(rows),
        left_out=view.left_out,
        total_tokens=system_tokens + sum(row.tokens for row in rows),
        counter=counter.name,
        window=window,
        warnings=view.warnings,
    )


def _summary_rows(view: MemoryView, counter: TokenCounter) -> list[ExplainedRow]:
    shown = numbered_summaries(view.summaries)
    if shown:  # what leads the summaries is sent with them
        shown[0] = (HEADING if view.system_addendum else CONTINUED) + shown[0]
    return [
        ExplainedRow(
            type="SUMMARY",
            role="system" if view.system_addendum else "user",
            number=-100 - place,
            first=summary.first,
            last=summary.last,
            tokens=tokens,
            content=summary.text,
            shown=text,
            state="summary",
            reason=REASONS["summary"],
            said_at=summary.created_at,
        )
        for place, (summary, text, tokens) in enumerate(zip(view.summaries, shown, counter.count(shown), strict=True))
    ]


def _media_row(message: Message, part: MediaPart) -> ExplainedRow:
    return ExplainedRow(
        type="CHAT",
        role=message.role,
        number=message.number,
        first=message.number,
        last=message.number,
        tokens=media_tokens(part.kind, part.size),
        content=part_line(part),
        shown=part_line(part),
        state="live",
        reason="a file of the current turn; the model gets it as it is",
        said_at=message.created_at,
    )


async def _row(message: Message, log: ConversationLog, counter: TokenCounter, *, mapped: bool) -> ExplainedRow:
    changed = (mapped or message.state != "live") and message.number
    original = await log.message(message.number) if changed else None
    tokens = message.tokens
    if tokens is None or mapped:
        tokens = sum(counter.count([message.content, *(call.arguments for call in message.tool_calls)]))
    return ExplainedRow(
        type="TOOL_RESULT" if message.role == "tool" else "TOOL_CALL" if message.tool_calls else "CHAT",
        role=message.role,
        number=message.number,
        first=message.number,
        last=message.number,
        tokens=tokens,
        content=message.content if original is None else original.content,
        shown=message.content,
        state=message.state,
        reason=REASONS[message.state],
        said_at=message.created_at,
        tool_calls=message.tool_calls,
    )
