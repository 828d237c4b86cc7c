"""``GET /spend``: what the owner's threads spent, by day and model."""

from __future__ import annotations

from starlette.responses import Response

from agboss.app import Spend
from agboss.server.endpoint import Call, Endpoint, Query
from agboss.server.problems import json_response
from agboss.server.threads import AGENT


async def spend(call: Call) -> Response:
    """``GET /spend``."""
    days = call.number("days", least=1, default=30)
    place = await call.service.served.new_place(call.text("agent"))
    async with call.service.served.app(place.workflow) as app:
        return json_response(await app.spend(days or 30, owner=call.owner))


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/spend",
        name="spend",
        about="What the owner's threads spent in the last days, by day and model.",
        handler=spend,
        query=(AGENT, Query(name="days", about="UTC days, today among them; default 30.", kind="number", least=1)),
        gives=Spend,
        problems=(404,),
    ),
)
