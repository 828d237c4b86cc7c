"""The ASGI application: routes, border and life of the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response

from agboss.app import AgentRuntime, App
from agboss.errors import AgbossError, InvalidInputError
from agboss.server import agents, health, memory, pauses, spending, terns, threads
from agboss.server.doors import ag_ui, openai, vercel
from agboss.server.endpoint import Call, Endpoint, Service
from agboss.server.guard import Guard
from agboss.server.metrics import Metrics
from agboss.server.openapi import openapi
from agboss.server.problems import json_response, tell_error, tell_http
from agboss.server.recovery import Recovery
from agboss.server.runs import Runs
from agboss.server.served import Served, ServedApp, ServedRuntime
from agboss.server.settings import GRACE, LOOPBACK_HOSTS, MAX_BODY, RATE, ServerSettings, make_settings
from agboss_memory.wording import quoted

ENDPOINTS: tuple[Endpoint, ...] = (
    *health.ENDPOINTS,
    *threads.ENDPOINTS,
    *terns.ENDPOINTS,
    *pauses.ENDPOINTS,
    *memory.ENDPOINTS,
    *agents.ENDPOINTS,
    *spending.ENDPOINTS,
    *openai.ENDPOINTS,
    *ag_ui.ENDPOINTS,
    *vercel.ENDPOINTS,
)


def make_server(
    target: App | AgentRuntime,
    *,
    tokens: Mapping[str, str] | None = None,
    allowed_hosts: Sequence[str] = LOOPBACK_HOSTS,
    allowed_origins: Sequence[str] = (),
    max_body: int = MAX_BODY,
    rate_limit: int = RATE,
    grace: float = GRACE,
    recover: bool = True,
) -> Starlette:
    """An ASGI application that serves an App, or the agents of an AgentRuntime. Opens nothing before its start.

    Args:
        target: What is served. Opened when the server starts, closed when it stops.
        tokens: Owner by bearer token; each sees its own threads only. None = no token is asked for and nobody owns
            anything: only for loopback.
        allowed_hosts: Names that requests may call the server by; ``*`` = any. Default: names of loopback.
        allowed_origins: Origins such as ``https://example.org`` whose pages may call. Default: none but its own.
        max_body: Largest body of a request in bytes. Default 1,000,000.
        rate_limit: Requests per minute of one owner, or of one address without an owner; 0 = no bound. Default 600.
        grace: Seconds that running Terns get when the server stops, then their memory work; then they are cancelled.
            Default 10.
        recover: Go on with Terns that a killed process left, in the background after the start. Default True.

    Raises:
        InvalidInputError: An argument is not acceptable.
    """
    if not isinstance(recover, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInputError("server.bad-setting", f"recover={quoted(recover)}", "use True or False")
    settings = make_settings(tokens, allowed_hosts, allowed_origins, max_body, rate_limit, grace)
    metrics = Metrics()
    service = Service(served=_served(target), runs=Runs(metrics), metrics=metrics, settings=settings)
    document = _document()
    recovery = Recovery(service.served) if recover else None

    async def end(within: float) -> None:
        """Let the Terns end within some seconds, and begin no other."""
        ending = [service.runs.finish(within), *([] if recovery is None else [recovery.finish(within)])]
        await asyncio.gather(*ending)

    application = Starlette(
        routes=[one.route(service) for one in (*ENDPOINTS, document)],
        middleware=_middleware(settings, metrics),
        exception_handlers={AgbossError: tell_error, HTTPException: tell_http},
        lifespan=_lifespan(service, recovery, end),
    )
    application.state.service = service
    application.state.end = end
    return application


def _served(target: Any) -> Served:
    if isinstance(target, App):
        return ServedApp(target)
    if isinstance(target, AgentRuntime):
        return ServedRuntime(target)
    text = f"make_server got a {type(target).__name__}"
    raise InvalidInputError("server.bad-setting", text, "pass create_app(...) or AgentRuntime(...)")


def _middleware(settings: ServerSettings, metrics: Metrics) -> list[Middleware]:
    guard = Middleware(Guard, settings=settings, metrics=metrics)
    if not settings.allowed_origins:
        return [guard]
    cors = Middleware(
        CORSMiddleware,
        allow_origins=sorted(settings.allowed_origins),
        allow_methods=["GET", "POST", "PUT", "DELETE"],
        expose_headers=["ETag", "X-Agboss-Thread"],
        allow_headers=["Authorization", "Content-Type", "Idempotency-Key", "If-Match", "Last-Event-ID"],
    )
    return [cors, guard]


def _document() -> Endpoint:
    told = openapi(ENDPOINTS)

    async def show(_: Call) -> Response:
        return json_response(told)

    return Endpoint(method="GET", path="/openapi.json", name="openapi", about="This document.", handler=show)


def _lifespan(service: Service, recovery: Recovery | None, end: Callable[[float], Awaitable[None]]) -> Any:
    @asynccontextmanager
    async def life(_: Starlette) -> AsyncGenerator[None]:
        await service.served.open()
        if recovery is not None:
            recovery.start()
        try:
            yield
        finally:
            await end(service.settings.grace)
            await service.served.close(service.settings.grace)

    return life
