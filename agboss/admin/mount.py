"""Put the pages onto a server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route

from agboss.admin import agents, deciding, definitions, login, memory, running, threads
from agboss.admin.compacting import Compactions
from agboss.admin.page import Admin, Page
from agboss.admin.sessions import Sessions
from agboss.admin.showing import ROOT, environment
from agboss.server.endpoint import Service

PAGES: tuple[Page, ...] = (
    *login.PAGES,
    *threads.PAGES,
    *running.PAGES,
    *deciding.PAGES,
    *memory.PAGES,
    *agents.PAGES,
    *definitions.PAGES,
    login.ELSEWHERE,
)
Lifespan = Callable[[Any], AbstractAsyncContextManager[Any]]


def add_admin(server: Starlette) -> Starlette:
    """Add the admin pages under ``/admin`` to what ``make_server`` gave; gives the same server.

    Without tokens everybody who reaches the server sees all threads. With tokens a browser logs in with one, and sees
    the threads of its owner. Definitions of agents belong to no owner: whoever is logged in may edit them.

    Args:
        server: What ``make_server`` gave, not started yet.
    """
    service: Service = server.state.service
    admin = Admin(
        service=service,
        sessions=Sessions(service.settings.owners),
        compactions=Compactions(service.served),
        templates=environment(),
    )
    server.router.lifespan_context = _life(server.router.lifespan_context, admin)
    server.router.routes.extend(
        [
            Route(ROOT, _to_slash),
            Mount(ROOT, routes=[page.route(admin) for page in PAGES]),
        ]
    )
    return server


def _life(inner: Lifespan, admin: Admin) -> Lifespan:
    """The server's life; what the pages have begun ends before what is served is closed."""

    @asynccontextmanager
    async def life(server: Starlette) -> AsyncGenerator[Any]:
        async with inner(server) as state:
            try:
                yield state
            finally:
                await admin.compactions.finish(admin.service.settings.grace)

    return life


async def _to_slash(_: Request) -> Response:
    return RedirectResponse(f"{ROOT}/", 307)
