"""Serve until the process is asked to stop."""

from __future__ import annotations

import asyncio
import math
import signal
import socket
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from threading import current_thread, main_thread
from time import monotonic

import uvicorn
from starlette.applications import Starlette

from agboss.errors import AppStateError
from agboss.server.settings import ServerSettings, check_address, check_proxy

SIGNALS = (signal.SIGINT, signal.SIGTERM)

FLUSH = 5.0
"""Seconds in which answers must have gone out when the Terns have ended; then connections are cut."""


async def run_server(
    application: Starlette,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    proxy: str = "",
    started: Callable[[str], None] | None = None,
) -> None:
    """Serve ``make_server(...)`` with uvicorn until SIGTERM or Ctrl-C; running Terns get the grace time.

    Args:
        application: What ``make_server`` gave.
        host: Address to bind. One that other machines can reach needs tokens.
        port: Port; 0 = a free one.
        proxy: Address or network (or several, with commas) of the server in front that speaks TLS: its ``X-Forwarded-For`` and
            ``X-Forwarded-Proto`` headers are believed, so that clients are told apart and cookies are sent over https
            only. Default: nobody's are.
        started: Gets the server's URL once it listens.

    Raises:
        InvalidInputError: ``server.no-token``: other machines can reach ``host`` and no token is set;
            ``server.bad-setting``: ``proxy`` is no address.
        AppStateError: ``server.cannot-listen``: the address is taken, or is none of this machine.
        AgbossError: What is served cannot be opened.
    """
    settings: ServerSettings = application.state.service.settings
    check_proxy(proxy)
    check_address(host, tokens=bool(settings.owners))
    config = uvicorn.Config(
        application,
        lifespan="off",  # entered here, so that a fault at the start is raised and not only logged
        log_level="warning",
        access_log=False,
        proxy_headers=bool(proxy),
        forwarded_allow_ips=proxy,
        server_header=False,
    )
    server = _Server(config, application.state.end, settings.grace)
    with _listening(host, port) as listener, server.stopped_by_signals():
        async with application.router.lifespan_context(application):
            if started is not None:
                started(_url(listener))
            await server.serve(sockets=[listener])


class _Server(uvicorn.Server):
    """Leaves signals to ``run_server``: uvicorn would raise them again before everything is closed.

    Args:
        config: uvicorn's own.
        end: Ends the Terns within some seconds.
        grace: Those seconds.
    """

    def __init__(self, config: uvicorn.Config, end: Callable[[float], Awaitable[None]], grace: float) -> None:
        super().__init__(config)
        self._end = end
        self._grace = grace

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the Terns first, so that whoever waits for one is told how it ended; then close the connections."""
        began = monotonic()
        ending = asyncio.ensure_future(self._end(self._grace))
        while not ending.done() and not self.force_exit:
            await asyncio.wait([ending], timeout=0.1)
        if not ending.done():
            ending.cancel()
            await asyncio.wait([ending])
            await self._end(0)
        left = max(0.0, self._grace - (monotonic() - began))  # for requests that are no Tern
        self.config.timeout_graceful_shutdown = math.ceil(left + FLUSH)
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    @contextmanager
    def stopped_by_signals(self) -> Generator[None]:
        """Within the block SIGTERM and Ctrl-C end the server; a second one does not wait for requests."""
        if current_thread() is not main_thread():
            yield
            return
        before = {one: signal.signal(one, self.handle_exit) for one in SIGNALS}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)


def _listening(host: str, port: int) -> socket.socket:
    name = host.strip("[]")
    family = socket.AF_INET6 if ":" in name else socket.AF_INET
    try:
        return socket.create_server((name, port), family=family)
    except OSError as error:
        text = f"{host}:{port} cannot be listened at: {error.strerror or error}"
        raise AppStateError(
            "server.cannot-listen", text, "choose another --port, or --port 0 for a free one"
        ) from error


def _url(listener: socket.socket) -> str:
    name, port = listener.getsockname()[:2]
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
