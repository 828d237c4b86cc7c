"""What a memory strategy is: the base class and the frozen records that pass through it.

A strategy decides what an agent sees of the past. ``build_context`` runs before the agent's loop, ``update_memory``
after each Tern, ``compress`` when a person asks for it. Strategy objects hold no state of a thread: everything they
need comes in the record.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload, runtime_checkable

from agboss_memory.messages import Block, Message, Summary, Tern, UsageRecord
from agboss_memory.records import Record, field

if TYPE_CHECKING:
    from pydantic import BaseModel

ModelT = TypeVar("ModelT", bound="BaseModel")


def utc_now() -> datetime:
    """The current moment, aware and in UTC."""
    return datetime.now(UTC)


@runtime_checkable
class TokenCounter(Protocol):
    """Counts text tokens. One object serves all strategies of an agent, so that no two disagree."""

    @property
    def name(self) -> str:
        """Identifies the encoding; stored beside every count."""
        ...

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text. Never raises, whatever the text holds."""
        ...

    def truncate(self, text: str, limit: int) -> str:
        """The longest prefix of ``text`` with at most ``limit`` tokens."""
        ...


class Reach(Record, kw_only=True):
    """How far a strategy reads.

    Attributes:
        terns: Newest Terns of the thread; None = the agent's ``history_limit``.
        messages: Newest messages of the agent's own conversation; 0 = none.
        summaries: Latest active summaries; None = the agent's ``history_summaries``.
    """

    terns: int | None = None
    messages: int = 0
    summaries: int | None = None


class Budget(Record, kw_only=True):
    """What fits.

    Attributes:
        window: The model's context window in tokens, None when unknown.
        reply_reserve: Tokens kept free for the answer.
        overhead: Tokens of system text and tool schemas.
        counter: The token counter of the agent's model.
        calibration: Tokens of the model's provider per token of the counter; for estimates, not for rules of a kind.
    """

    window: int | None = None
    reply_reserve: int = 0
    overhead: int = 0
    counter: TokenCounter | None = None
    calibration: float = 1.0

    def calibrated(self, window: int) -> int:
        """``window`` in tokens of the counter: what an estimate may reach, the reply reserve included as it is."""
        return (
            window
            if self.calibration == 1.0
            else self.reply_reserve + int((window - self.reply_reserve) / self.calibration)
        )

    @property
    def free(self) -> int | None:
        """Tokens left for the view, None when the window is unknown."""
        return None if self.window is None else self.window - self.reply_reserve - self.overhead


class LeftOut(Record, kw_only=True):
    """A range of the log that the view does not show, and why.

    Attributes:
        first: First Tern or message left out.
        last: Last one.
        reason: Stable word such as ``beyond_reach`` or ``over_window``.
        unit: ``turns`` or ``messages``.
    """

    first: int
    last: int
    reason: str
    unit: str = "turns"


class MemoryView(Record, kw_only=True):
    """What an agent is to see of the past.

    Attributes:
        history: Terns shown as question and answer, oldest first.
        summaries: Summaries shown before them, oldest first.
        messages: An exact list of messages instead of ``history``; None = use ``history``.
        recalled: Texts from elsewhere (facts, search hits); the framework fences them as data.
        system_addendum: Text added at the end of the system prompt.
        left_out: What the strategy knows that it left out; the runner adds the rest.
        warnings: What went wrong without stopping the view, one line each.
    """

    history: tuple[Tern, ...] = ()
    summaries: tuple[Summary, ...] = ()
    messages: tuple[Message, ...] | None = None
    recalled: tuple[str, ...] = ()
    system_addendum: str = ""
    left_out: tuple[LeftOut, ...] = ()
    warnings: tuple[str, ...] = ()


class Conversation(Record, kw_only=True):
    """The newest part of one agent's conversation in one thread.

    Attributes:
        messages: The newest page, oldest first.
        summaries: Active summaries of this conversation, oldest range first.
        last: Number of the newest message; 0 = there is none.
        live_tokens: Text tokens of all messages that no active summary covers, stubs where there are some.
        uncounted: How many messages have no count yet and are missing in ``live_tokens``.
        current: What a running Tern said and the store does not have yet, numbered as it will be stored.
    """

    messages: tuple[Message, ...] = ()
    summaries: tuple[Summary, ...] = ()
    last: int = 0
    live_tokens: int = 0
    uncounted: int = 0
    current: tuple[Message, ...] = ()


class ConversationLog(Protocol):
    """What a window strategy reads and writes: one agent's conversation in one thread, and nothing else."""

    async def newest(self, limit: int) -> Conversation:
        """The newest ``limit`` messages with what is known of the whole."""
        ...

    async def older(self, before: int, limit: int) -> tuple[Message, ...]:
        """The newest ``limit`` messages with a number below ``before``, oldest first."""
        ...

    async def message(self, number: int) -> Message | None:
        """One message, None when there is none of that number."""
        ...

    async def write_counts(self, counts: Mapping[int, int], tokenizer: str) -> None:
        """Keep text tokens by message number, as this tokenizer counts them."""
        ...

    async def compress_result(self, number: int, stub: str, tokens: int) -> bool:
        """Let a stub stand for a tool result; its content stays. False when it has one, or is no tool result."""
        ...

    async def save_summary(self, summary: Summary) -> Summary:
        """Store a summary in one transaction; active ones inside its range become superseded.

        When an active one already covers a part of the range that does not lie inside, that one is returned instead.
        """
        ...


OlderMessages = Callable[[int, int], Awaitable[tuple[Message, ...]]]


class MemoryContext(Record, kw_only=True):
    """All that a strategy may know when it builds a view. Only ``thread_id`` is required.

    Attributes:
        thread_id: The thread.
        owner: The thread's owner, None when it has none.
        agent: Name of the agent that is about to run.
        now: Aware UTC.
        task: The current task as text.
        history: The newest ``reach.terns`` finished Terns, oldest first, whether or not summarised.
        summaries: The latest ``reach.summaries`` active summaries, oldest first.
        blocks: The blocks that touch ``history`` and what became of their summaries, oldest first.
        messages: The newest ``reach.messages`` messages of this agent's own conversation, oldest first.
        budget: Window, reply reserve, fixed overhead and counter.
        call_index: 0 before the loop; then the number of the model call within the Tern.
        previous: The view of the previous call of this Tern, None at the first.
        load_older: How ``older_messages`` reads; None = there are none.
        log: This agent's own conversation as the store keeps it; None = there is only ``messages``.
        current: What the running Tern said so far and the log does not have, the task first; () = ``task`` alone.
    """

    thread_id: str
    owner: str | None = None
    agent: str = ""
    now: datetime = field(default_factory=utc_now)
    task: str = ""
    history: tuple[Tern, ...] = ()
    summaries: tuple[Summary, ...] = ()
    blocks: tuple[Block, ...] = ()
    messages: tuple[Message, ...] = ()
    budget: Budget = Budget()
    call_index: int = 0
    previous: MemoryView | None = None
    load_older: OlderMessages | None = None
    log: ConversationLog | None = None
    current: tuple[Message, ...] = ()

    async def older_messages(self, before: int, limit: int) -> tuple[Message, ...]:
        """The ``limit`` newest messages of this agent's conversation with a number below ``before``, oldest first."""
        return () if self.load_older is None else await self.load_older(before, limit)


class MemoryTurn(Record, kw_only=True):
    """A finished Tern, as ``update_memory`` gets it.

    Attributes:
        thread_id: The thread.
        owner: The thread's owner, None when it has none.
        agent: The agent that answered.
        now: Aware UTC.
        tern: The finished Tern.
        messages: What the agents that use this strategy said in it; () for an agent that did not run.
        idempotency_key: The same at every retry for this Tern: use it to write once.
        log: The agent's own conversation as the store keeps it, or None.
        budget: Window, reply reserve and counter of the agent.
    """

    thread_id: str
    owner: str | None = None
    agent: str = ""
    now: datetime = field(default_factory=utc_now)
    tern: Tern = Tern(number=0, task="")
    messages: tuple[Message, ...] = ()
    idempotency_key: str = ""
    log: ConversationLog | None = None
    budget: Budget = Budget()


class MemoryUpdate(Record, kw_only=True):
    """What ``update_memory`` reports.

    Attributes:
        usage: Costs of its own that no ``MemoryModel`` booked.
        report: What it compressed, None when nothing was due.
    """

    usage: tuple[UsageRecord, ...] = ()
    report: CompressReport | None = None


class CompressReport(Record, kw_only=True):
    """What Compact did.

    Attributes:
        compressed_messages: Messages (window memory) or Terns (turn memory) that summaries now cover in addition.
        summaries: The summaries that were written.
        compressed_results: Tool results that a stub stands for in addition.
        error_code: Why the automatic path stopped early; empty = it did not. Compact raises instead.
        error: The same in words.
        usage: Model calls made for it, when nobody else booked them.
    """

    compressed_messages: int = 0
    summaries: tuple[Summary, ...] = ()
    compressed_results: int = 0
    error_code: str = ""
    error: str = ""
    usage: tuple[UsageRecord, ...] = ()


class MemoryModel(ABC):
    """A model that a strategy may call; ask for it in the constructor.

    Calls are limited, booked in the Tern's usage and traced. They never reach the user's stream.
    """

    @overload
    async def generate(self, prompt: str, output: None = None) -> str: ...
    @overload
    async def generate(self, prompt: str, output: type[ModelT]) -> ModelT: ...
    @abstractmethod
    async def generate(self, prompt: str, output: Any = None) -> Any:
        """Answer ``prompt`` as text, or as an instance of the pydantic model ``output``."""


class BaseMemoryStrategy(ABC):
    """Base of every memory strategy. Built once per App by the container, or given as an instance."""

    reach: Reach = Reach()

    @abstractmethod
    def build_context(self, context: MemoryContext) -> MemoryView | Awaitable[MemoryView]:
        """What the agent sees of the past. An error fails the Tern and names the strategy."""

    async def update_memory(self, turn: MemoryTurn) -> MemoryUpdate:
        """Learn from a finished Tern. An error never fails it: it is logged, counted and tried again three times."""
        return MemoryUpdate()

    async def compress(self, context: MemoryContext) -> CompressReport:
        """Make the view shorter now, because a person asked for it."""
        return CompressReport()
