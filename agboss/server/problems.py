"""Errors as RFC 9457 problem details: a status, our stable code, what happened and what to do."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from agboss.errors import (
    AgbossError,
    AppStateError,
    AssemblyError,
    CompactionError,
    InvalidInputError,
    LeaseLostError,
    LimitExceededError,
    ModelError,
    OutputError,
    PauseError,
    RouterError,
    StoreError,
    TernCancelledError,
    TernConflictError,
    TernTimeoutError,
    ThreadBusyError,
    UnknownThreadError,
)
from agboss.server.wire import camel
from agboss_memory.records import Record

logger = logging.getLogger("agboss.server")

MEDIA_TYPE = "application/problem+json"

_NOT_FOUND = frozenset(
    {
        "definition.unknown",
        "memory.no-such-call",
        "memory.no-such-result",
        "memory.no-such-tern",
        "pause.unknown",
        "server.no-definitions",
        "server.no-events",
    }
)
_CONFLICT = frozenset({"definition.changed", "definition.exists", "definition.read-only"})
_UNAVAILABLE = frozenset({"definition.no-folder"})
_STATUS: tuple[tuple[type[AgbossError], int], ...] = (
    (UnknownThreadError, 404),
    (ThreadBusyError, 409),
    (TernConflictError, 409),
    (PauseError, 409),
    (TernCancelledError, 409),
    (LeaseLostError, 409),
    (LimitExceededError, 429),
    (TernTimeoutError, 504),
    (ModelError, 502),
    (CompactionError, 502),
    (RouterError, 502),
    (OutputError, 502),
    (StoreError, 503),
    (AppStateError, 503),
    (AssemblyError, 422),
)
_OF_HTTP = {404: "server.not-found", 405: "server.method"}


class ServerError(AgbossError):
    """A request that never reaches an App; ``data["status"]`` is the HTTP status."""


class ProblemPlace(Record, kw_only=True):
    """One problem of an input: JSON pointer and message."""

    pointer: str
    message: str


class Problem(Record, kw_only=True):
    """An error, as RFC 9457 has it.

    Attributes:
        type: ``urn:agboss:`` and the code.
        title: The status in words.
        status: The HTTP status.
        detail: What happened.
        code: Stable code of the error.
        hint: What to do about it; empty when there is nothing to add.
        problems: Places in the input, when it is not valid.
        run: The stored run, when a Tern was admitted before the error.
    """

    type: str
    title: str
    status: int
    detail: str
    code: str
    hint: str = ""
    problems: tuple[ProblemPlace, ...] = ()
    run: Any = None


def problem_of(error: AgbossError) -> Problem:
    """What a client is told. A thread of another owner is told as one that does not exist."""
    status, code, hint = status_of(error), error.code, error.hint
    detail = error.message
    if isinstance(error, UnknownThreadError):
        code, detail, hint = "run.unknown-thread", "there is no such thread", "make one with POST /threads"
    elif status >= 500 and (_foreign_cause(error) or isinstance(error, StoreError)):
        # Text of other libraries may hold keys, addresses and paths.
        detail, hint = "the request failed; the server's log names the cause", ""
        cause = error.__cause__ or error
        logger.error("%s: %s", code, type(cause).__name__)
    found = error.data.get("problems", ())
    return Problem(
        type=f"urn:agboss:{code}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        code=code,
        hint=hint,
        problems=_violations(error) if isinstance(error, AssemblyError) else _places(found),
        run=error.run,
    )


def status_of(error: AgbossError) -> int:
    """The HTTP status that an error stands for."""
    if isinstance(error, ServerError):
        return error.data["status"]
    if error.code in _NOT_FOUND:
        return 404
    if error.code in _CONFLICT:
        return 409
    if error.code in _UNAVAILABLE:
        return 503
    if isinstance(error, InvalidInputError):
        return 400
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def problem_response(error: AgbossError) -> Response:
    """The answer to a request that failed."""
    problem = problem_of(error)
    headers: dict[str, str] = dict(error.data.get("headers", {}))
    if isinstance(error, ThreadBusyError):
        headers["Retry-After"] = "1"
    return json_response(problem, problem.status, headers, MEDIA_TYPE)


def json_response(
    value: Any, status: int = 200, headers: Mapping[str, str] | None = None, media_type: str = "application/json"
) -> Response:
    """Records as JSON with camelCase names."""
    content = to_json(camel(value), fallback=str, inf_nan_mode="null")
    return Response(content, status, headers, media_type)


async def tell_error(_: Request, error: Exception) -> Response:
    """Exception handler for errors of ours."""
    return problem_response(error if isinstance(error, AgbossError) else unexpected(error))


async def tell_http(_: Request, error: Exception) -> Response:
    """Exception handler for what the router refuses."""
    if not isinstance(error, HTTPException):
        return problem_response(unexpected(error))
    status = error.status_code
    code = _OF_HTTP.get(status, "server.bad-request")
    headers = dict(error.headers or {})
    return problem_response(ServerError(code, error.detail, "see /openapi.json", status=status, headers=headers))


def unexpected(error: Exception) -> ServerError:
    """A fault of ours or of the workflow's code: told by its kind alone, the text may hold secrets."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
    logger.error("%s at %s", type(error).__name__, place)
    return ServerError("server.unexpected", "the server failed; its log names the place", "", status=500)


def _foreign_cause(error: AgbossError) -> bool:
    return error.__cause__ is not None and not isinstance(error.__cause__, AgbossError)


def _places(found: Any) -> tuple[ProblemPlace, ...]:
    return tuple(ProblemPlace(pointer=str(pointer), message=str(message)) for pointer, message in found)


def _violations(error: AssemblyError) -> tuple[ProblemPlace, ...]:
    return tuple(ProblemPlace(pointer="", message=str(one)) for one in error.exceptions)
