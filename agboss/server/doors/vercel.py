"""Vercel's AI SDK: the UI message stream that ``useChat`` reads. The id of the chat is that of the thread."""

from __future__ import annotations

from typing import Any, cast

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import from_json, to_json
from starlette.responses import Response

from agboss.events import Ended, NodeFinished, NodeStarted, Paused, ToolFinished, ToolStarted
from agboss.pauses import Decision
from agboss.server.doors.asking import begin, question
from agboss.server.endpoint import Call, Endpoint
from agboss.server.log import LoggedEvent, TernLog
from agboss.server.pauses import decide
from agboss.server.problems import Problem, ServerError
from agboss.server.sse import STREAM, EventStream
from agboss.server.terns import GONE
from agboss.server.threads import AGENT

VERSION_HEADER = "x-vercel-ai-ui-message-stream"


class ChatInput(BaseModel):
    """What is read of a request of ``useChat``."""

    id: str = Field(min_length=1, max_length=512)
    messages: list[dict[str, Any]]
    trigger: str = "submit-message"


async def chat(call: Call) -> Response:
    """``POST /api/chat``."""
    asked = await call.model(ChatInput)
    if asked.trigger != "submit-message":
        text = f"trigger {asked.trigger!r:.80} is not taken: nothing that was said is taken back"
        raise ServerError("server.bad-body", text, "send the message again", status=400)
    agent, decisions = call.text("agent"), _decisions(asked.messages)
    if decisions:
        log = await decide(call, asked.id, agent, decisions)
    else:
        log = await begin(call, question(asked.messages, "parts"), agent=agent, thread=asked.id, create=True)
    return Response(status_code=GONE) if log is None else _Parts(log)


class _Approval(BaseModel):
    """What ``addToolApprovalResponse`` puts into a part."""

    id: str = Field(min_length=1, max_length=512)
    approved: bool
    reason: str | None = None


def _decisions(messages: list[dict[str, Any]]) -> dict[str, Decision]:
    """Approvals and denials in the newest message; a client that decides sends the agent's message back."""
    newest = messages[-1] if messages else {}
    parts: Any = newest.get("parts") if newest.get("role") == "assistant" else None
    found: dict[str, Decision] = {}
    for one in cast("list[Any]", parts) if isinstance(parts, list) else ():
        part = cast("dict[str, Any]", one) if isinstance(one, dict) else {}
        if part.get("state") == "approval-responded":
            try:
                told = _Approval.model_validate(part.get("approval"))
            except ValidationError as error:
                text = "a part with the state 'approval-responded' has no approval"
                raise ServerError("server.bad-body", text, "send id and approved", status=400) from error
            found[told.id] = Decision(approved=told.approved, reason="" if told.approved else told.reason or "")
    return found


class _Parts(EventStream):
    """Our events as parts of one UI message."""

    def __init__(self, log: TernLog) -> None:
        super().__init__(log)
        self.headers[VERSION_HEADER] = "v1"
        self._begun = False
        self._text = ""
        self._texts = 0

    def piece(self, event: LoggedEvent) -> str:
        """See ``EventStream.piece``."""
        told: list[str] = []
        if not self._begun:
            self._begun = True
            told.append(_part("start", messageId=f"{self.log.thread}-{self.log.tern}"))
        told += self._more(event.text) if event.text else []
        told += self._told(event.source)
        return "".join(told)

    def last_piece(self) -> str:
        """See ``EventStream.last_piece``."""
        return "data: [DONE]\n\n"

    def _told(self, event: Any) -> list[str]:
        match event:
            case NodeStarted():
                return [_part("start-step")]
            case NodeFinished():
                return [*self._end_text(), _part("finish-step")]
            case ToolStarted():
                names = {"toolCallId": event.call_id, "toolName": event.tool}
                return [*self._end_text(), _part("tool-input-available", **names, input=_arguments(event.arguments))]
            case ToolFinished():
                if event.ok:
                    return [_part("tool-output-available", toolCallId=event.call_id, output=event.result)]
                return [_part("tool-output-error", toolCallId=event.call_id, errorText=event.result)]
            case Paused():
                names = {"toolCallId": event.call_id, "toolName": event.tool}
                return [
                    *self._end_text(),
                    _part("tool-input-available", **names, input=event.arguments),
                    _part("tool-approval-request", approvalId=event.pause_id, toolCallId=event.call_id),
                ]
            case Ended():
                return [*self._end_text(), _part("finish")]
            case Problem():
                return [*self._end_text(), _part("error", errorText=event.detail)]
            case _:
                return []

    def _more(self, text: str) -> list[str]:
        told: list[str] = []
        if not self._text:
            self._texts += 1
            self._text = f"text-{self._texts}"
            told.append(_part("text-start", id=self._text))
        return [*told, _part("text-delta", id=self._text, delta=text)]

    def _end_text(self) -> list[str]:
        ended, self._text = self._text, ""
        return [_part("text-end", id=ended)] if ended else []


def _arguments(text: str) -> Any:
    """The arguments as a value; text that is no JSON as it is."""
    try:
        return from_json(text)
    except ValueError:
        return text


def _part(kind: str, **fields: Any) -> str:
    return f"data: {to_json({'type': kind, **fields}).decode()}\n\n"


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/api/chat",
        name="vercelChat",
        about="Vercel's AI SDK: a message of useChat, answered as a UI message stream. A new id makes a thread.",
        handler=chat,
        query=(AGENT,),
        body=ChatInput,
        media=STREAM,
        problems=(404, 409, 500, 502, 503, 504),
    ),
)
