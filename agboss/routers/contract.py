"""The seam to routers: one request, one result."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Protocol

from agboss_memory.messages import AttachmentRecord, TernStatus, UsageRecord
from agboss_memory.records import Record, field


class RouteOption(Record, kw_only=True):
    """A route as a router sees it.

    Attributes:
        name: Name of the component.
        description: What it is for.
        examples: Tasks that it should get.
    """

    name: str
    description: str = ""
    examples: tuple[str, ...] = ()


class RouteRequest(Record, kw_only=True):
    """One decision.

    Attributes:
        router: Name of the router component.
        task: The current task as text.
        options: The routes, sorted by name; at least two.
        past: The rendered past (summaries, previous turns) for routers that are not local, else empty.
        last_answer: Answer of the node that ran before, empty at the first visit.
        last_status: Its status, None at the first visit.
        visit: How often this router has been asked in this Tern, from 1.
        thread_id: The thread.
        owner: Its owner.
        metadata: What the caller attached to the Tern, as JSON text.
        attachments: Files that came with the task.
    """

    router: str
    task: str
    options: tuple[RouteOption, ...]
    past: str = ""
    last_answer: str = ""
    last_status: TernStatus | None = None
    visit: int = 1
    thread_id: str = ""
    owner: str | None = None
    metadata: str | None = None
    attachments: tuple[AttachmentRecord, ...] = ()


class RouteResult(Record, kw_only=True):
    """A decision.

    Attributes:
        next: Name of the chosen option.
        probabilities: Per option, when the router gives them; sums to about 1.
        confidence: (m - 1/n) / (1 - 1/n) for top probability m of n options; None when unknown.
        reported_confidence: The server's own figure, which means different things on different servers.
        usage: Calls that were made.
        cost: US dollars of those calls, None when unknown.
        source: Kind of router that decided, or ``single`` when there was one option.
    """

    next: str
    probabilities: Mapping[str, float] = field(default_factory=dict[str, float])
    confidence: float | None = None
    reported_confidence: float | None = None
    usage: tuple[UsageRecord, ...] = ()
    cost: Decimal | None = None
    source: str = ""


class Router(Protocol):
    """Chooses one of the options. Raises RouterError; must let cancellation through."""

    async def route(self, request: RouteRequest) -> RouteResult:
        """Decide. The result is checked by the runner: it must name an option."""
        ...
