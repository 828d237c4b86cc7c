"""The border: who asks, from where, how often; and what every answer carries."""

from __future__ import annotations

import asyncio
import hmac
import math
from collections.abc import Sequence
from time import perf_counter
from urllib.parse import unquote

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agboss.server.limits import RateLimit
from agboss.server.metrics import Metrics
from agboss.server.problems import ServerError, problem_response, unexpected
from agboss.server.settings import ServerSettings, digest

OWNER = "agboss.owner"
"""Key of a scope under which the owner stands."""

OPEN_PATHS = frozenset({"/healthz", "/readyz", "/openapi.json"})
"""Paths that need no token: they tell nothing about anybody."""

UNCOUNTED_PATHS = frozenset({"/healthz", "/readyz", "/metrics"})
"""Paths that count as no request of a client: whoever watches a server asks often, and must get an answer."""

OWN_LOGIN = "/admin"
"""Below this path a browser, which sends no header, logs in by a form; see ``agboss.admin``."""

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}


def owner_of(request: Request) -> str | None:
    """Who asks; None = nobody in particular."""
    return request.scope.get(OWNER)


class Guard:
    """Middleware around everything; no exception passes it.

    Args:
        app: What it guards.
        settings: What is allowed.
        metrics: Counts requests.
    """

    def __init__(self, app: ASGIApp, settings: ServerSettings, metrics: Metrics) -> None:
        self._app = app
        self._settings = settings
        self._metrics = metrics
        self._rate = RateLimit(settings.rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(send)
        began = perf_counter()
        try:
            try:
                self._admit(scope)
                routable(scope)
                await self._app(scope, self._bounded(receive), answer)
            except ServerError as error:
                await problem_response(error)(scope, receive, answer)
            except ClientDisconnect:  # in the middle of its body
                return
            except asyncio.CancelledError:  # the server stops, and this took longer than it waits
                if not answer.status:
                    error = ServerError("server.stopping", "the server is stopping", "try again later", status=503)
                    await problem_response(error)(scope, receive, answer)
            except Exception as error:
                response = problem_response(unexpected(error))
                if answer.status:  # too late to say it
                    return
                await response(scope, receive, answer)
        finally:
            self._metrics.request(scope, answer.status, perf_counter() - began)

    def _admit(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        self._check_host(headers)
        self._check_origin(headers)
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length[:20]) > self._settings.max_body:
            raise self._too_large()
        owner = self._owner(headers)
        client: Sequence[object] = scope.get("client") or ("",)
        counted = scope["path"] not in UNCOUNTED_PATHS
        wait = self._rate.wait(f"ip:{client[0]}" if owner is None else f"owner:{owner}") if counted else 0.0
        if wait:
            raise ServerError(
                "server.too-fast",
                "too many requests",
                f"wait {wait:.1f} s",
                status=429,
                headers={"Retry-After": str(math.ceil(wait))},
            )
        if owner is None and self._settings.owners and not _open(scope["path"]):
            raise ServerError(
                "server.unauthorized",
                "a valid token is needed",
                "send 'Authorization: Bearer <token>'",
                status=401,
                headers={"WWW-Authenticate": "Bearer"},
            )
        scope[OWNER] = owner

    def _bounded(self, receive: Receive) -> Receive:
        """Takes no more of a body than is allowed, whatever length was announced."""
        taken = 0

        async def bounded() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self._settings.max_body:
                raise self._too_large()
            return message

        return bounded

    def _too_large(self) -> ServerError:
        text = f"the body has more than {self._settings.max_body} bytes"
        return ServerError("server.too-large", text, "send less", status=413)

    def _check_host(self, headers: Headers) -> None:
        allowed = self._settings.allowed_hosts
        name = _host_name(headers.get("host", ""))
        if "*" not in allowed and name not in allowed:
            # A page of another site whose name leads to this machine would be trusted otherwise.
            text = f"this server is not called {name!r:.80}"
            raise ServerError("server.bad-host", text, "use the address that it was started with", status=421)

    def _check_origin(self, headers: Headers) -> None:
        origin = headers.get("origin")
        if origin is None or origin.lower() in self._settings.allowed_origins:
            return
        if origin.partition("://")[2].lower() != headers.get("host", "").lower():
            text = f"pages of {origin!r:.80} may not call this server"
            raise ServerError("server.bad-origin", text, "name it in allowed_origins", status=403)

    def _owner(self, headers: Headers) -> str | None:
        """The owner of the token; all are compared, so that the time tells nothing."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        given = digest(token.strip())
        found: str | None = None
        for known, owner in self._settings.owners.items():
            if hmac.compare_digest(known, given):
                found = owner
        return found if scheme.lower() == "bearer" else None


def _open(path: str) -> bool:
    return path in OPEN_PATHS or path == OWN_LOGIN or path.startswith(f"{OWN_LOGIN}/")


def routable(scope: Scope) -> None:
    """Let a slash that a client has escaped stay within its part of the path; ``Call.path`` takes it out again."""
    raw = scope.get("raw_path")
    path = raw.split(b"?")[0].decode("ascii", "replace") if raw else scope["path"].replace("%", "%25")
    scope["path"] = unquote(path.replace("%25", "%2525").replace("%2F", "%252F").replace("%2f", "%252F"))


def _host_name(host: str) -> str:
    name, _, port = host.lower().rpartition(":")
    return name if port.isdigit() and name else host.lower()


class _Answer:
    """Sends with the headers that every answer carries, and remembers the status."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await self._send(message)
