"""One run: its result, and the Tern while it is alive."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import agboss.events as events
from agboss.components.border import is_model
from agboss.errors import OutputError
from agboss.pauses import Pause
from agboss_memory.messages import AttachmentRecord, Message, Summary, TernStatus, UsageRecord
from agboss_memory.records import Record, Struct
from agboss_memory.render import span
from agboss_memory.stores.contract import PendingWork, Store, Window

if TYPE_CHECKING:
    from pydantic import BaseModel

    from agboss.journal import Journal
    from agboss.models.meter import Meter
    from agboss.plan import Plan
    from agboss_memory.stores.views import ViewRecord

logger = logging.getLogger("agboss")

LONGEST_CAUSE = 500
"""Characters of an error that are kept with a Tern or a block."""


class CompactionReport(Record, kw_only=True):
    """What a Tern's compaction wrote.

    Attributes:
        summaries: The summaries of this Tern, oldest first.
        active: Active summaries of the thread after each of them, capped at ``keep``.
        keep: How many summaries readers may see.
        conversations: Summaries of agents' own conversations, written in this Tern.
    """

    summaries: tuple[Summary, ...] = ()
    active: tuple[int, ...] = ()
    keep: int = 0
    conversations: tuple[Summary, ...] = ()

    def __str__(self) -> str:
        lines = [f"messages {span(summary.first, summary.last)} → summary" for summary in self.conversations]
        lines += [
            f"turns {span(summary.first, summary.last)} → summary {active}/{self.keep}"
            for summary, active in zip(self.summaries, self.active, strict=True)
        ]
        return "; ".join(lines)


class RunResult(Record, kw_only=True):
    """What one Tern gave.

    Attributes:
        thread: Id of the thread; pass it to continue.
        tern: Number of the Tern in it.
        status: How it ended.
        answer: The answer as text; empty when there is none.
        output: The instance of a typed finish or agent output, None for plain text.
        finish: Name of the finish that was reached, empty when none was.
        path: Names of the nodes that ran, in order.
        usage: One record per model call or reported cost, memory work included.
        spend: US dollars, None when a price is unknown.
        memory: One line when this Tern compacted, else None.
        compaction: The same as a record.
        pause: What the Tern waits for first; None unless paused.
        pauses: All that it waits for, in the order of the calls.
        warnings: One line each; every one is also a log record.
    """

    thread: str
    tern: int
    status: TernStatus
    answer: str = ""
    output: Any = None
    finish: str = ""
    path: tuple[str, ...] = ()
    usage: tuple[UsageRecord, ...] = ()
    spend: Decimal | None = None
    memory: str | None = None
    compaction: CompactionReport | None = None
    pause: Pause | None = None
    pauses: tuple[Pause, ...] = ()
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON-ready values."""
        from pydantic_core import to_jsonable_python

        return to_jsonable_python(
            {name: getattr(self, name) for name in self.__dataclass_fields__}, fallback=str, serialize_unknown=True
        )


class Warnings(Struct, eq=False):
    """The warnings of one Tern. They know no Tern, so that nothing that warns keeps one alive in a circle.

    Attributes:
        thread: Id of the thread.
        number: Number of the Tern.
        emit: Receives events, None when nobody listens.
        lines: One line each.
    """

    thread: str
    number: int
    emit: Callable[[events.RunEvent], None] | None = None
    lines: tuple[str, ...] = ()

    def __call__(self, text: str) -> None:
        """Add a warning; the same line is added once."""
        if text not in self.lines:
            self.lines += (text,)
            logger.warning("thread %s, turn %d: %s", self.thread, self.number, text, extra={"warning": text})
            if self.emit is not None:
                self.emit(events.Warned(text=text))


class LiveTern(Struct, kw_only=True, eq=False):
    """A Tern between admission and its end: what the stages share. Everything else is a frozen record.

    Attributes:
        plan: The assembled workflow.
        store: Where the log is.
        thread: Id of the thread.
        key: The store's key of the thread.
        number: Number of the Tern.
        fence: Carried by every write.
        owner: The thread's owner.
        task: The task as text.
        start: Name of the start.
        value: What the newest node gave: the start's input at first.
        metadata: JSON text of the caller, or None.
        started_at: Aware UTC.
        window: The newest part of the thread before this Tern.
        meter: Bounds and books all calls.
        journal: Finished calls, for a run that has to go on elsewhere.
        warnings: What went wrong without ending it.
        emit: Receives events, None when nobody listens.
        attachments: Files that came with the task.
        pending: Memory work that an earlier Tern left.
        resumes: How often the Tern was taken over from a process that is gone.
        stalled: How often it was since its last new step.
        stop: It was asked to end before it was taken over.
        path: Names of the nodes that ran.
        answers: Name and answer of each agent and action that ran.
        agent: The agent that answered last.
        messages: What the agents said.
        visits: How often each router was asked.
        heard: What was streamed of the answer so far, None = nothing.
        compacted: Summaries of agents' own conversations that were written.
        views: What model calls were shown, None = it is not recorded.
    """

    plan: Plan
    store: Store
    thread: str
    key: int
    number: int
    fence: int
    owner: str | None
    task: str
    start: str
    value: Any
    started_at: datetime
    window: Window
    meter: Meter
    journal: Journal
    warnings: Warnings
    metadata: str | None = None
    emit: Callable[[events.RunEvent], None] | None = None
    attachments: tuple[AttachmentRecord, ...] = ()
    pending: tuple[PendingWork, ...] = ()
    resumes: int = 0
    stalled: int = 0
    stop: bool = False
    path: list[str] = []
    answers: tuple[tuple[str, str], ...] = ()
    agent: str = ""
    messages: list[Message] = []
    visits: dict[str, int] = {}
    heard: list[str] | None = None
    compacted: tuple[Summary, ...] = ()
    views: list[ViewRecord] | None = None

    def step(self, node: str) -> str:
        """Begins the names of a node's steps: the same in every run of the Tern."""
        return f"{node}.{self.path.count(node)}"

    def warn(self, text: str) -> None:
        """Add a warning; the same line is added once."""
        self.warnings(text)

    def hear(self, text: str) -> None:
        """Note a piece of the answer that a listener has got: it is kept if the Tern is cancelled now."""
        if self.heard is None:
            self.heard = []
        self.heard.append(text)


def one_line(text: str) -> str:
    """``text`` on one line of at most ``LONGEST_CAUSE`` characters: what is shown of an error."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_CAUSE else line[: LONGEST_CAUSE - 1] + "…"


def as_answer(value: Any) -> str:
    """A node's output as text."""
    if isinstance(value, str):
        return value
    return value.model_dump_json() if is_model(value) else str(value)


def as_model(model: type[BaseModel], value: Any, node: str) -> BaseModel:
    """``value`` as an instance of ``model``: itself, its fields, or its JSON. Raises OutputError that names the node."""
    if isinstance(value, model):
        return value
    from pydantic import ValidationError

    try:
        if isinstance(value, str):
            return model.model_validate_json(value)
        return model.model_validate(value.model_dump() if is_model(value) else value)
    except ValidationError as error:
        raise OutputError(
            "run.model-mismatch",
            f"node {node!r} wants a {model.__name__} and got {type(value).__name__}: "
            + "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()[:3]),
            f"let the node before give a {model.__name__} (output={model.__name__})",
            node=node,
        ) from error
