"""What each model call was shown, recorded when an App is asked to: composition, no text."""

from __future__ import annotations

import json

from agboss.tern import BuiltContext
from agboss_memory.contract import LeftOut
from agboss_memory.records import Record
from agboss_memory.stores.views import ViewRecord


class ShownPiece(Record, kw_only=True):
    """One Tern, message or summary of a recorded view.

    Attributes:
        kind: ``turn``, ``message`` or ``summary``.
        first: Number of the Tern or message; the first one that a summary covers; 0 for what stands in no log.
        last: The same, or the last one that a summary covers.
        state: ``live``, ``compressed``, ``evicted``, ``cut``, ``summary`` or ``placeholder``.
        tokens: Its text tokens, None when they were not counted.
    """

    kind: str
    first: int
    last: int
    state: str = "live"
    tokens: int | None = None


class RecordedCall(Record, kw_only=True):
    """One model call and what it was shown.

    Attributes:
        agent: Name of the agent.
        call: Which call of its model in the Tern, from 0.
        pieces: What was shown, summaries first.
        left_out: What was not, with the reason.
        tools: Names of tools that this view alone offered.
    """

    agent: str
    call: int
    pieces: tuple[ShownPiece, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    tools: tuple[str, ...] = ()


def recorded(agent: str, tern: int, call: int, built: BuiltContext) -> ViewRecord:
    """The composition of a built view, as it is stored."""
    view = built.view
    pieces = [["summary", one.first, one.last, "summary", one.tokens] for one in view.summaries]
    if view.messages is None:
        pieces += [["turn", one.number, one.number, "live", one.tokens] for one in view.history]
    else:
        said = (one for one in view.messages if one.state != "summary")
        pieces += [["message", one.number, one.number, one.state, one.tokens] for one in said]
    left = [[one.first, one.last, one.reason, one.unit] for one in view.left_out]
    content = {"pieces": pieces, "left_out": left, "tools": list(built.tools)}
    return ViewRecord(tern=tern, agent=agent, call=call, composition=json.dumps(content))


def recorded_call(view: ViewRecord) -> RecordedCall:
    """A stored composition as a record."""
    content = json.loads(view.composition)
    return RecordedCall(
        agent=view.agent,
        call=view.call,
        pieces=tuple(
            ShownPiece(kind=kind, first=first, last=last, state=state, tokens=tokens)
            for kind, first, last, state, tokens in content["pieces"]
        ),
        left_out=tuple(
            LeftOut(first=first, last=last, reason=reason, unit=unit)
            for first, last, reason, unit in content["left_out"]
        ),
        tools=tuple(content["tools"]),
    )
