"""One turn as a person follows it: progress while a model works, the answer as it is written, then its lines."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Any

from agboss.app import App, RunStream
from agboss.app.declared import declared
from agboss.app.streaming import direct_agents
from agboss.cli.output import Output, visible
from agboss.events import Answered, NodeStarted, RouteChosen, RunEvent, TextDelta, ToolFinished, ToolStarted
from agboss.flow import Graph, compile_flow
from agboss.pauses import Decision
from agboss.run import RunResult
from agboss_memory.messages import TernStatus
from agboss_memory.records import Record

if TYPE_CHECKING:
    from rich.status import Status

_CENT = Decimal("0.01")


class Ruling(Record, kw_only=True):
    """A decision of a person: about the call ``pause_id`` of a thread, None = the only one."""

    thread: str
    decision: Decision
    pause_id: str | None = None
    owner: str | None = None


async def take_turn(app: App, graph: Graph, out: Output, task: Any, thread: str | None) -> RunResult:
    """Run one Tern and print its answer; a terminal sees it while it is written. Raises what the run raises."""
    if not out.is_terminal:
        return _printed(out, await app.execute(task, thread=thread))
    return await _watched(app.stream(task, thread=thread), graph, out)


async def take_decision(app: App, graph: Graph, out: Output, ruling: Ruling) -> RunResult:
    """Go on with a paused Tern as ``take_turn`` runs one. Raises what the run raises."""
    thread, decision, pause_id, owner = ruling.thread, ruling.decision, ruling.pause_id, ruling.owner
    if not out.is_terminal:
        return _printed(out, await app.resume(thread, decision, pause_id=pause_id, owner=owner))
    return await _watched(app.stream_resume(thread, decision, pause_id=pause_id, owner=owner), graph, out)


def _printed(out: Output, result: RunResult) -> RunResult:
    if not out.as_json and result.status is not TernStatus.PAUSED:
        out.line(result.answer)
    return result


async def _watched(stream: RunStream, graph: Graph, out: Output) -> RunResult:
    shown = _Turn(out, direct_agents(graph))
    try:
        async with stream as run:
            shown.working("thinking")
            async for event in run:
                shown.take(event)
            return await run.result()
    finally:
        shown.rest()
        out.end_line()


def tell(out: Output, result: RunResult, *, thread: bool = True) -> None:
    """The lines below an answer: thread, status unless answered, memory when the Tern compacted, spend."""
    if thread:
        out.field("thread", result.thread)
    if result.status is not TernStatus.ANSWERED:
        out.field("status", result.status)
    if result.memory:
        out.field("memory", result.memory)
    out.field("spend", money(result.spend))


def graph_of(workflow: Any) -> Graph:
    """The flow of a checked workflow."""
    return compile_flow(declared(workflow).flow)[0]


def money(usd: Decimal | None) -> str:
    """US dollars with as many digits as say something; ``unknown`` for None."""
    if usd is None:
        return "unknown"
    if usd == 0 or usd >= _CENT:
        return f"${usd.quantize(_CENT, ROUND_HALF_UP)}"
    digits = max(4, 1 - usd.adjusted())
    return f"${usd:.{digits}f}"


class _Turn:
    def __init__(self, out: Output, direct: frozenset[str]) -> None:
        self._out = out
        self._direct = direct
        self._shown = ""
        self._status: Status | None = None

    def take(self, event: RunEvent) -> None:
        match event:
            case TextDelta() if event.certain and event.node in self._direct:
                self._write(event.text)
            case Answered():
                self._answer(event.answer)
            case NodeStarted():
                self.working(f"{event.node} is thinking")
            case RouteChosen():
                self.working(f"{event.node} chose {event.next}")
            case ToolStarted():
                self.working(f"{event.node} uses {event.tool}")
            case ToolFinished():
                self.working(f"{event.node} is thinking")
            case _:
                pass

    def _answer(self, answer: str) -> None:
        if answer.startswith(self._shown):
            self._write(answer.removeprefix(self._shown))
        else:
            self._out.end_line()
            self._write(answer)
        self._out.end_line()
        self.working("remembering")

    def _write(self, text: str) -> None:
        if text:
            self.rest()
            self._shown += text
            self._out.write(text)

    def working(self, text: str) -> None:
        console = self._out.progress_console
        if console is None:
            return
        self._out.end_line()
        text = visible(text)
        if self._status is None:
            self._status = console.status(text, spinner="dots")
            self._status.start()
        else:
            self._status.update(text)

    def rest(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None
