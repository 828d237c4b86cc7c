"""The records of the log: what was said, who said it, what it cost.

All are frozen, slotted and keyword-only. They are what stores keep and what strategies read; nothing here changes
after it was made. They hold values alone and so can never stand in a circle: the garbage collector need not look at
them (``gc=False``), however many are kept.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Literal

from agboss_memory.records import Record

MediaKind = Literal["image", "audio", "video", "document", "file"]
Role = Literal["system", "user", "assistant", "tool"]
UsageSource = Literal["api", "price-table", "tool", "free", "unknown"]
UsagePurpose = Literal["answer", "route", "compaction", "memory", "tool"]
SummaryState = Literal["active", "retired", "superseded"]
BlockState = Literal["open", "due", "done", "skipped", "retired"]
MessageState = Literal["live", "compressed", "evicted", "cut", "summary", "placeholder"]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def as_utc(moment: datetime) -> datetime:
    """The same moment, aware and in UTC. A naive one is read as UTC."""
    if moment.tzinfo is UTC:
        return moment
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


MOST_COUNT = 10**12
"""The greatest whole number of a record, such as the tokens of one call. The sums that a store keeps hold millions of them."""

MOST_USD = 1_000_000
"""The greatest cost of one call, in US dollars: sums of many still fit a store's columns."""


class TernStatus(StrEnum):
    """Where a Tern stands. All but ``running`` and ``paused`` are finished.

    Attributes:
        finished: Whether nothing more will happen to the Tern.
    """

    finished: bool

    RUNNING = "running"
    ANSWERED = "answered"
    FAILED = "failed"
    GUARDED = "guarded"
    CANCELLED = "cancelled"
    PAUSED = "paused"

    def __init__(self, value: str) -> None:
        self.finished = value not in ("running", "paused")


class ToolCall(Record, kw_only=True, gc=False):
    """A request of the model to run a tool.

    Attributes:
        id: The provider's id of the call; its result carries the same.
        name: The tool's name as the model wrote it.
        arguments: The arguments as JSON text, byte for byte as the model wrote them.
    """

    id: str
    name: str
    arguments: str = "{}"


class ThinkingPart(Record, kw_only=True, gc=False):
    """A reasoning block of a model. Passed back byte-identical or dropped whole, never shortened.

    Attributes:
        text: The readable reasoning; may be empty when the provider only sends a signed block.
        signature: The provider's signature, opaque.
        provider: Which provider made it; another provider never receives it.
        data: Further opaque fields as JSON text.
    """

    text: str = ""
    signature: str = ""
    provider: str = ""
    data: str = ""


_TEXT_LIKE = frozenset({"application/json", "application/xml", "application/yaml", "application/x-yaml"})
_PAPERS = ("application/pdf", "application/rtf", "application/msword", "application/vnd.ms-", "application/vnd.o")
"""Beginnings of the media types of office documents; ``vnd.o``: OOXML and OpenDocument."""


def media_kind(media_type: str) -> MediaKind:
    """What a media type is to a model: ``image``, ``audio``, ``video``, ``document``, or ``file`` for anything else."""
    family = media_type.partition("/")[0]
    if family in ("image", "audio", "video"):
        return family
    return "document" if is_text(media_type) or media_type.startswith(_PAPERS) else "file"


def is_text(media_type: str) -> bool:
    """Whether files of the type are text that people read."""
    return media_type.startswith("text/") or media_type in _TEXT_LIKE


class AttachmentRecord(Record, kw_only=True, gc=False):
    """A file that came with a task, as the log keeps it. Its bytes are in the ``FileStore``, under the id.

    Attributes:
        name: The file's name as it was given. It is text of a user and never a path.
        media_type: Such as ``image/png``.
        size: Bytes.
        id: SHA-256 of the bytes, 64 hexadecimal digits: the same content has the same id.
    """

    name: str
    media_type: str
    size: int
    id: str

    @property
    def kind(self) -> MediaKind:
        """What it is to a model."""
        return media_kind(self.media_type)


class MediaPart(Record, kw_only=True, gc=False):
    """A file as it is sent to a model, beside the text of its message.

    Attributes:
        name: The file's name.
        media_type: Such as ``image/png``.
        data: The bytes.
    """

    name: str
    media_type: str
    data: bytes

    def __repr__(self) -> str:
        return f"MediaPart(name={self.name!r}, media_type={self.media_type!r}, size={self.size})"

    @property
    def kind(self) -> MediaKind:
        """What it is to a model."""
        return media_kind(self.media_type)

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.data)


class Message(Record, kw_only=True, gc=False):
    """One message of an agent's conversation.

    Attributes:
        role: Who speaks: system, user, assistant or tool.
        content: The text. Never changed after it was stored.
        tool_calls: The calls of an assistant message, in the model's order.
        tool_call_id: On a tool message, the id of the call that it answers.
        tool_name: On a tool message, the tool's name.
        thinking: Reasoning blocks of an assistant message.
        attachments: Files that came with a user message. The mapper turns them into notices, placeholders and ``media``.
        media: Files that are sent with the text. Made for the model by the mapper, in no log.
        number: Position in this agent's conversation, from 1; 0 before it is stored.
        tern: Number of the Tern it belongs to; 0 when unknown.
        agent: The agent whose conversation it is.
        created_at: Aware UTC.
        tokens: Text tokens of ``content``, arguments and the lines that stand for attachments, or None when not yet
            counted.
        tokenizer: Identifies the counter that made ``tokens``.
        compressed_content: The stub that stands for ``content``, or None.
        compressed_tokens: Tokens of the stub, or None.
        state: How a view came to show ``content``: ``live`` = as stored; ``compressed`` and ``evicted`` = a stub;
            ``cut`` = a beginning with a mark; ``summary`` and ``placeholder`` = made for the view, in no log.
    """

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    tool_name: str | None = None
    thinking: tuple[ThinkingPart, ...] = ()
    attachments: tuple[AttachmentRecord, ...] = ()
    media: tuple[MediaPart, ...] = ()
    number: int = 0
    tern: int = 0
    agent: str = ""
    created_at: datetime = EPOCH
    tokens: int | None = None
    tokenizer: str = ""
    compressed_content: str | None = None
    compressed_tokens: int | None = None
    state: MessageState = "live"

    @property
    def id(self) -> str:
        """Stable within its conversation: ``m-<number>``; empty before it is stored."""
        return f"m-{self.number}" if self.number > 0 else ""

    @property
    def synthetic(self) -> bool:
        """Whether nobody said it: it was made for a view."""
        return self.state in ("summary", "placeholder")


class UsageRecord(Record, kw_only=True, gc=False):
    """One paid or free call, as it is booked.

    Attributes:
        caller: The component that asked: an agent, a router, a strategy, ``compaction`` or a tool.
        model: Model id as configured.
        purpose: Why the call was made.
        input_tokens: Tokens sent, cached ones included.
        output_tokens: Tokens received.
        cache_read_tokens: Part of the input that the provider read from its cache.
        cache_write_tokens: Part of the input that the provider wrote to its cache.
        usd: Cost in US dollars, None when the price is unknown.
        source: Where the cost comes from: the provider's own figure, the price table, a tool, free, or unknown.
    """

    caller: str
    model: str
    purpose: UsagePurpose = "answer"
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    usd: Decimal | None = None
    source: UsageSource = "unknown"


class Tern(Record, kw_only=True, gc=False):
    """One task -> answer round of a thread.

    Attributes:
        number: 1, 2, ... per thread, given at admission and never reused.
        task: What was asked: the text, or the JSON of a typed start.
        answer: What was answered; empty when the Tern ended without one.
        status: See ``TernStatus``.
        agent: The agent that answered last, or empty.
        start: Name of the start component.
        finish: Name of the finish component that was reached, or empty.
        path: Names of the nodes in the order in which they ran.
        output: JSON of a typed output, or None.
        error: For a failed or cancelled Tern, its cause in one line that is safe to show.
        error_code: The stable code of that cause.
        usage: One record per model call or reported cost.
        version: Version of the workflow that ran it.
        config_hash: Hash of the resolved configuration and prompts.
        started_at: Aware UTC.
        finished_at: Aware UTC, None while it runs.
        tokens: Text tokens of task and answer, None when not yet counted.
        metadata: JSON text of what the caller attached, or None.
        attachments: Files that came with the task.
    """

    number: int
    task: str
    answer: str = ""
    status: TernStatus = TernStatus.ANSWERED
    agent: str = ""
    start: str = ""
    finish: str = ""
    path: tuple[str, ...] = ()
    output: str | None = None
    error: str = ""
    error_code: str = ""
    usage: tuple[UsageRecord, ...] = ()
    version: str = ""
    config_hash: str = ""
    started_at: datetime = EPOCH
    finished_at: datetime | None = None
    tokens: int | None = None
    metadata: str | None = None
    attachments: tuple[AttachmentRecord, ...] = ()


class Summary(Record, kw_only=True, gc=False):
    """A record that stands for a closed range of the log.

    Attributes:
        first: First Tern (turn memory) or message (window memory) that it covers.
        last: Last one that it covers.
        text: The summary itself.
        id: Identifier in the store; 0 before it is stored.
        kind: ``turns`` for turn memory, else the memoryConfig kind.
        agent: Owner of the summary; empty for turn memory, which is the thread's.
        state: ``active`` until undone (``retired``) or replaced (``superseded``).
        tokens: Tokens of the text, None when not yet counted: ``app.memory.summaries`` counts it.
        model: Id of the model that wrote it.
        usd: Cost of the calls that made it, None when unknown.
        prompt_hash: Hash of the summariser's prompt.
        created_at: Aware UTC.
    """

    first: int
    last: int
    text: str
    id: int = 0
    kind: str = "turns"
    agent: str = ""
    state: SummaryState = "active"
    tokens: int | None = None
    model: str = ""
    usd: Decimal | None = None
    prompt_hash: str = ""
    created_at: datetime = EPOCH


class Block(Record, kw_only=True, gc=False):
    """A closed range of Terns and what became of its summary.

    Attributes:
        first: Number of its first Tern.
        last: Number of its last Tern.
        state: ``open`` (a Tern of it is not finished), ``due``, ``done``, ``skipped`` (given up after four tries) or
            ``retired`` (its summary was undone).
        attempts: How often a summary was tried.
        error: Why the last try failed, or empty.
    """

    first: int
    last: int
    state: BlockState = "due"
    attempts: int = 0
    error: str = ""
