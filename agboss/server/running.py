"""Serve until the process is asked to stop."""

from __future__ import annotations

import math
from collections.abc import Callable

import uvicorn
from starlette.applications import Starlette

from agboss.server.settings import ServerSettings, check_address


async def run_server(
    application: Starlette,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    started: Callable[[str], None] | None = None,
) -> None:
    """Serve ``make_server(...)`` with uvicorn until SIGTERM or Ctrl-C; running Terns get the grace time.

    Args:
        application: What ``make_server`` gave.
        host: Address to bind. One that other machines can reach needs tokens.
        port: Port; 0 = a free one.
        started: Gets the server's URL once it listens.

    Raises:
        InvalidInputError: ``server.no-token``: other machines can reach ``host`` and no token is set.
    """
    settings: ServerSettings = application.state.service.settings
    check_address(host, tokens=bool(settings.owners))
    config = uvicorn.Config(
        application,
        host=host,
        port=port,
        lifespan="on",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=math.ceil(settings.grace),
    )
    await _Server(config, started).serve()


class _Server(uvicorn.Server):
    """Tells when and where it listens."""

    def __init__(self, config: uvicorn.Config, started: Callable[[str], None] | None) -> None:
        super().__init__(config)
        self._tell = started

    async def startup(self, sockets: object = None) -> None:
        await super().startup(sockets)  # type: ignore[arg-type]
        if self._tell is None or not self.started:
            return
        place = self.servers[0].sockets[0].getsockname()
        name = f"[{place[0]}]" if ":" in place[0] else place[0]
        self._tell(f"http://{name}:{place[1]}")
