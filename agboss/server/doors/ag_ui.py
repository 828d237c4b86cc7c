"""AG-UI: one run of an agent as typed events. The client gives ids to threads; the newest message is the task."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field
from pydantic.alias_generators import to_camel
from pydantic_core import to_json
from starlette.responses import Response

from agboss.events import Answered, Ended, NodeFinished, NodeStarted, Paused, ToolFinished, ToolStarted
from agboss.pauses import Decision
from agboss.server.doors.asking import begin, question
from agboss.server.endpoint import Call, Endpoint
from agboss.server.log import LoggedEvent, TernLog
from agboss.server.pauses import decide
from agboss.server.problems import Problem
from agboss.server.sse import STREAM, EventStream
from agboss.server.terns import GONE
from agboss.server.threads import AGENT

LONGEST_ID = 512


class Verdict(BaseModel):
    """What was decided about a call: the payload of a resumed interrupt."""

    approved: bool = True
    reason: str = ""
    arguments: dict[str, Any] | None = None


class ResumeEntry(BaseModel):
    """One interrupt that is resolved, or cancelled: then the call is denied."""

    interrupt_id: str = Field(alias="interruptId", min_length=1, max_length=LONGEST_ID)
    status: Literal["resolved", "cancelled"]
    payload: Verdict = Verdict()

    def decision(self) -> Decision:
        """The same as a decision."""
        told = self.payload
        if self.status == "cancelled" or not told.approved:
            return Decision(approved=False, reason=told.reason)
        return Decision(approved=True, arguments=told.arguments)


class RunInput(BaseModel):
    """What is read of ``RunAgentInput``; state, tools and context of the client are not."""

    thread_id: str = Field(alias="threadId", min_length=1, max_length=LONGEST_ID)
    run_id: str = Field(alias="runId")
    messages: list[dict[str, Any]]
    resume: list[ResumeEntry] = []


async def run(call: Call) -> Response:
    """``POST /ag-ui``."""
    asked = await call.model(RunInput)
    thread, agent = asked.thread_id, call.text("agent")
    if asked.resume:
        log = await decide(call, thread, agent, {one.interrupt_id: one.decision() for one in asked.resume})
    else:
        log = await begin(call, question(asked.messages, "content"), agent=agent, thread=thread, create=True)
    return Response(status_code=GONE) if log is None else _Events(log, asked.run_id)


class _Events(EventStream):
    """Our events as those of AG-UI."""

    def __init__(self, log: TernLog, run_id: str) -> None:
        super().__init__(log)
        self._run_id = run_id
        self._begun = False
        self._message = ""
        self._messages = 0
        self._interrupts: list[dict[str, Any]] = []

    def piece(self, event: LoggedEvent) -> str:
        """See ``EventStream.piece``."""
        told: list[str] = []
        if not self._begun:
            self._begun = True
            told.append(_event("RUN_STARTED", **self._ids()))
        told += self._text(event.text) if event.text else []
        told += self._told(event.source)
        return "".join(told)

    def _told(self, event: Any) -> list[str]:
        match event:
            case NodeStarted():
                return [_event("STEP_STARTED", step_name=event.node)]
            case NodeFinished():
                return [*self._end_text(), _event("STEP_FINISHED", step_name=event.node)]
            case ToolStarted():
                return [*self._end_text(), *_call(event.call_id, event.tool, event.arguments)]
            case ToolFinished():
                ids = {"message_id": f"{event.call_id}-result", "tool_call_id": event.call_id}
                return [_event("TOOL_CALL_RESULT", **ids, content=event.result, role="tool")]
            case Answered():
                return self._end_text()
            case Paused():
                self._interrupts.append(_interrupt(event))
                return [*self._end_text(), *_call(event.call_id, event.tool, to_json(event.arguments).decode())]
            case Ended():
                outcome = {"type": "interrupt", "interrupts": self._interrupts} if self._interrupts else None
                more = {} if outcome is None else {"outcome": outcome}
                return [*self._end_text(), _event("RUN_FINISHED", **self._ids(), **more)]
            case Problem():
                return [*self._end_text(), _event("RUN_ERROR", message=event.detail, code=event.code)]
            case _:
                return []

    def _text(self, text: str) -> list[str]:
        told: list[str] = []
        if not self._message:
            self._messages += 1
            self._message = f"{self.log.thread}-{self.log.tern}-{self._messages}"
            told.append(_event("TEXT_MESSAGE_START", message_id=self._message, role="assistant"))
        return [*told, _event("TEXT_MESSAGE_CONTENT", message_id=self._message, delta=text)]

    def _end_text(self) -> list[str]:
        ended, self._message = self._message, ""
        return [_event("TEXT_MESSAGE_END", message_id=ended)] if ended else []

    def _ids(self) -> dict[str, str]:
        return {"thread_id": self.log.thread, "run_id": self._run_id}


def _call(call: str, tool: str, arguments: str) -> list[str]:
    return [
        _event("TOOL_CALL_START", tool_call_id=call, tool_call_name=tool),
        _event("TOOL_CALL_ARGS", tool_call_id=call, delta=arguments),
        _event("TOOL_CALL_END", tool_call_id=call),
    ]


def _interrupt(event: Paused) -> dict[str, Any]:
    """What the client is to decide: it sends ``resume`` in its next run."""
    return {
        "id": event.pause_id,
        "reason": "tool_call",
        "message": f"May {event.node} call {event.tool}?",
        "toolCallId": event.call_id,
        "responseSchema": Verdict.model_json_schema(),
    }


def _event(kind: str, **fields: Any) -> str:
    wire = {"type": kind} | {to_camel(name): value for name, value in fields.items()}
    return f"data: {to_json(wire).decode()}\n\n"


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/ag-ui",
        name="agUiRun",
        about="AG-UI: run an agent, answered with its events. A thread that does not exist is made.",
        handler=run,
        query=(AGENT,),
        body=RunInput,
        media=STREAM,
        problems=(404, 409, 500, 502, 503, 504),
    ),
)
