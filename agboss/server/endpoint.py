"""One route: what the router, the metrics and the OpenAPI document know of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, TypeVar
from urllib.parse import unquote

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agboss.server.guard import owner_of
from agboss.server.metrics import ROUTE, Metrics
from agboss.server.problems import ServerError
from agboss.server.runs import Runs
from agboss.server.served import Served
from agboss.server.settings import ServerSettings
from agboss_memory.config import wire_pointers, wire_problems
from agboss_memory.records import Record

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

LARGEST_NUMBER = 2**62
"""Largest number of a path, query or header."""


class Query(Record, kw_only=True):
    """A parameter of the query or a header.

    Attributes:
        name: As it is written.
        about: What it means.
        kind: ``text`` or ``number``.
        least: Smallest number.
        place: ``query`` or ``header``.
    """

    name: str
    about: str
    kind: Literal["text", "number"] = "text"
    least: int = 0
    place: Literal["query", "header"] = "query"


class Service(Record, kw_only=True):
    """What handlers may use."""

    served: Served
    runs: Runs
    metrics: Metrics
    settings: ServerSettings


class Call:
    """One request as a handler reads it."""

    def __init__(self, request: Request, service: Service) -> None:
        self.request = request
        self.service = service
        self.owner = owner_of(request)

    def path(self, name: str) -> str:
        """A part of the path. See ``guard.routable``."""
        return unquote(self.request.path_params[name])

    def text(self, name: str) -> str | None:
        """A parameter of the query."""
        return self.request.query_params.get(name)

    def number(self, name: str, *, least: int = 0, default: int | None = None) -> int | None:
        """A whole number of the query. Raises ServerError."""
        return whole(name, self.request.query_params.get(name), least=least, default=default)

    async def model(self, kind: type[M]) -> M:
        """The body as a model; an empty one as a model without fields. Raises ServerError."""
        content = await self.request.body()
        try:
            return kind.model_validate(from_json(content) if content.strip() else {})
        except ValidationError as error:
            raise ServerError(
                "server.bad-body",
                "the body is not valid: " + wire_problems(error),
                "see /openapi.json",
                status=400,
                problems=wire_pointers(error),
            ) from error
        except ValueError as error:
            raise ServerError("server.bad-json", f"the body is no JSON: {error}", "send JSON", status=400) from error


Handler = Callable[[Call], Awaitable[Response]]


class Endpoint(Record, kw_only=True):
    """A route.

    Attributes:
        method: HTTP method.
        path: Template of the path.
        name: Operation id.
        about: What it does, in a line.
        handler: Answers it.
        query: Parameters of query and headers.
        body: Pydantic model of the body, None = none is read.
        raw_body: Name of the schema of a body that the handler reads itself.
        gives: Record class of the answer, None = ``schema`` says it.
        or_gives: Record class of the other answer that it may have.
        schema: JSON Schema of the answer without ``gives``.
        many: Further media types of the answer.
        status: HTTP status of success.
        media: Media type of the answer.
        foreign_errors: The handler tells errors in a form of its own.
        problems: Statuses that it may fail with, besides those of every route.
    """

    method: str
    path: str
    name: str
    about: str
    handler: Handler
    query: tuple[Query, ...] = ()
    body: type[BaseModel] | None = None
    raw_body: str = ""
    gives: type[Any] | None = None
    or_gives: type[Any] | None = None
    schema: Mapping[str, Any] = MappingProxyType({"type": "string"})
    many: tuple[str, ...] = ()
    status: int = 200
    media: str = "application/json"
    foreign_errors: bool = False
    problems: tuple[int, ...] = ()

    def route(self, service: Service) -> Route:
        """The route as the router takes it."""

        async def answer(request: Request) -> Response:
            request.scope[ROUTE] = self.path
            return await self.handler(Call(request, service))

        return Route(self.path, answer, methods=[self.method], name=self.name)


def whole(name: str, text: str | None, *, least: int = 0, default: int | None = None) -> int | None:
    """A whole number from text. Raises ServerError."""
    if text is None:
        return default
    digits = text.removeprefix("-")
    value = int(text) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None
    if value is None or not least <= value <= LARGEST_NUMBER:
        what = f"{name}={text!r:.80} is not acceptable"
        raise ServerError("server.bad-query", what, f"use a whole number, {least} or more", status=400)
    return value


def some_task(given: T, files: Sequence[object] = ()) -> T:
    """A task as it was sent; text without files must say something. The start's model checks fields itself.

    Raises:
        ServerError: The task is empty.
    """
    if isinstance(given, str) and not given.strip() and not files:
        raise ServerError(
            "server.no-task", "the task is empty", "say in input, or in the newest message, what to do", status=400
        )
    return given
