"""OpenAI's chat completions: the model is a workflow, or a defined agent; the thread keeps the history."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from time import time
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_json
from starlette.responses import JSONResponse, Response

from agboss.errors import AgbossError
from agboss.events import Paused
from agboss.run import RunResult
from agboss.server.doors.asking import begin, question
from agboss.server.endpoint import Call, Endpoint, Query
from agboss.server.log import LoggedEvent, TernLog
from agboss.server.problems import Problem, ServerError, problem_of
from agboss.server.sse import STREAM, EventStream, until_ended
from agboss.server.terns import GONE

THREAD_HEADER = "X-Agboss-Thread"


class StreamOptions(BaseModel):
    """Whether the last chunk tells the usage."""

    include_usage: bool = False


class ChatRequest(BaseModel):
    """What is read of a request; sampling settings are the agent's own and are not."""

    model: str
    messages: list[dict[str, Any]]
    stream: bool = False
    stream_options: StreamOptions | None = None
    metadata: dict[str, str] | None = None
    n: int | None = None
    tools: list[Any] | None = None
    functions: list[Any] | None = None


def told_as_openai(handler: Callable[[Call], Awaitable[Response]]) -> Callable[[Call], Awaitable[Response]]:
    """Errors in the form that OpenAI's clients read."""

    @wraps(handler)
    async def answer(call: Call) -> Response:
        try:
            return await handler(call)
        except AgbossError as error:
            problem = problem_of(error)
            return JSONResponse({"error": _error(problem)}, problem.status)

    return answer


@told_as_openai
async def models(call: Call) -> Response:
    """``GET /v1/models``."""
    return JSONResponse({"object": "list", "data": [_model(name) for name in call.service.served.names()]})


@told_as_openai
async def model(call: Call) -> Response:
    """``GET /v1/models/{model}``."""
    return JSONResponse(_model(_known(call, call.path("model"))))


@told_as_openai
async def complete(call: Call) -> Response:
    """``POST /v1/chat/completions``."""
    asked = await call.model(ChatRequest)
    served = call.service.served
    _known(call, asked.model)
    if asked.tools or asked.functions or (asked.n or 1) != 1:
        text = "tools, functions and n are not taken: an agent has tools of its own and gives one answer"
        raise ServerError("server.bad-body", text, "leave them out", status=400)
    thread = (asked.metadata or {}).get("thread") or call.request.headers.get(THREAD_HEADER)
    agent = None if served.runtime is None else asked.model
    log = await begin(call, question(asked.messages, "content"), agent=agent, thread=thread)
    if log is None:
        return Response(status_code=GONE)
    if asked.stream:
        usage = asked.stream_options is not None and asked.stream_options.include_usage
        return _Chunks(log, asked.model, usage=usage)
    if not await until_ended(log, call.request.receive):
        return Response(status_code=GONE)
    if log.result is None:
        raise log.error or ServerError("server.unexpected", "the turn gave no result", "", status=500)
    return JSONResponse(_completion(log.result, asked.model), headers={THREAD_HEADER: log.thread})


class _Chunks(EventStream):
    """The answer piece by piece, as ``chat.completion.chunk``."""

    def __init__(self, log: TernLog, model: str, *, usage: bool) -> None:
        super().__init__(log)
        self.headers[THREAD_HEADER] = log.thread
        self._model = model
        self._usage = usage
        self._created = int(time())
        self._role: dict[str, Any] = {"role": "assistant"}

    def piece(self, event: LoggedEvent) -> str:
        """See ``EventStream.piece``."""
        if isinstance(event.source, Problem):
            return _data({"error": _error(event.source)})
        text = event.text
        if isinstance(event.source, Paused):
            text = _waiting(event.source.tool, event.source.arguments, event.source.thread, event.source.pause_id)
        return self._chunk({"content": text}) if text else ""

    def last_piece(self) -> str:
        """See ``EventStream.last_piece``."""
        result = self.log.result
        if result is None:
            return "data: [DONE]\n\n"
        usage = _data(self._object([]) | {"usage": _usage(result)}) if self._usage else ""
        return self._chunk({}, "stop") + usage + "data: [DONE]\n\n"

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": self._role | delta, "finish_reason": finish, "logprobs": None}
        self._role = {}
        return _data(self._object([choice]))

    def _object(self, choices: list[Any]) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self.log.thread}-{self.log.tern}",
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._model,
            "choices": choices,
        }


def _completion(result: RunResult, model: str) -> dict[str, Any]:
    asked = [_waiting(one.tool, one.arguments, one.thread, one.id) for one in result.pauses]
    message = {"role": "assistant", "content": "".join(asked) or result.answer, "refusal": None}
    return {
        "id": f"chatcmpl-{result.thread}-{result.tern}",
        "object": "chat.completion",
        "created": int(time()),
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}],
        "usage": _usage(result),
        "metadata": {"thread": result.thread, "status": str(result.status)},
    }


def _waiting(tool: str, arguments: dict[str, Any], thread: str, pause_id: str) -> str:
    """What a person reads who cannot decide here: these clients know no pause."""
    shown = to_json(arguments, fallback=str).decode()
    where = f"POST /threads/{thread}/resume with pauseId {pause_id!r}"
    return f"[paused] {tool}({shown}) waits for approval: {where}.\n"


def _usage(result: RunResult) -> dict[str, int]:
    sent = sum(record.input_tokens for record in result.usage)
    received = sum(record.output_tokens for record in result.usage)
    return {"prompt_tokens": sent, "completion_tokens": received, "total_tokens": sent + received}


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "agboss"}


def _known(call: Call, name: str) -> str:
    """The name of a workflow or a defined agent. Raises ServerError."""
    names = call.service.served.names()
    if name not in names:
        text = f"there is no model {name!r:.80}"
        raise ServerError("server.unknown-model", text, "the models are: " + ", ".join(names), status=404)
    return name


def _error(problem: Problem) -> dict[str, Any]:
    kind = "invalid_request_error" if problem.status < 500 else "server_error"
    text = f"{problem.detail}; {problem.hint}" if problem.hint else problem.detail
    return {"message": text, "type": kind, "param": None, "code": problem.code}


def _data(value: dict[str, Any]) -> str:
    return f"data: {to_json(value).decode()}\n\n"


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/v1/models",
        name="openaiModels",
        about="Workflows, or defined agents, as OpenAI lists models.",
        handler=models,
        schema={"type": "object"},
        foreign_errors=True,
    ),
    Endpoint(
        method="GET",
        path="/v1/models/{model}",
        name="openaiModel",
        about="One of them.",
        handler=model,
        schema={"type": "object"},
        foreign_errors=True,
        problems=(404,),
    ),
    Endpoint(
        method="POST",
        path="/v1/chat/completions",
        name="openaiChatCompletions",
        about="OpenAI's chat completions. The thread keeps the history: only the newest message is read.",
        handler=complete,
        query=(Query(name=THREAD_HEADER, about="Id of the thread; also as metadata.thread.", place="header"),),
        body=ChatRequest,
        schema={"type": "object"},
        foreign_errors=True,
        many=(STREAM,),
        problems=(404, 409, 500, 502, 503, 504),
    ),
)
