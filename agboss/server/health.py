"""Whether the server lives, whether it can work, and what it has done."""

from __future__ import annotations

from starlette.responses import Response

from agboss.errors import AgbossError
from agboss.server.endpoint import Call, Endpoint
from agboss.server.problems import ServerError, json_response
from agboss_memory.records import Record

HINT = "see whether the store and the folder of definitions are there; the server goes on when they are back"


class Health(Record, kw_only=True):
    """``ok``."""

    status: str = "ok"


async def healthz(_: Call) -> Response:
    """``GET /healthz``: the process answers."""
    return json_response(Health())


async def readyz(call: Call) -> Response:
    """``GET /readyz``: agents and store can be reached, and the server is not about to stop."""
    try:
        if not call.service.runs.stopping:
            await call.service.served.check()
            return json_response(Health())
    except AgbossError as error:
        raise ServerError("server.not-ready", "what is served cannot be reached", HINT, status=503) from error
    raise ServerError("server.stopping", "the server is stopping", "try again later", status=503)


async def metrics(call: Call) -> Response:
    """``GET /metrics``."""
    return Response(call.service.metrics.text(), media_type="text/plain; version=0.0.4")


ENDPOINTS = (
    Endpoint(
        method="GET", path="/healthz", name="healthz", about="The process answers.", handler=healthz, gives=Health
    ),
    Endpoint(
        method="GET",
        path="/readyz",
        name="readyz",
        about="Agents and store can be reached.",
        handler=readyz,
        gives=Health,
        problems=(503,),
    ),
    Endpoint(
        method="GET",
        path="/metrics",
        name="metrics",
        about="Counters in the text format of Prometheus.",
        handler=metrics,
        media="text/plain",
    ),
)
