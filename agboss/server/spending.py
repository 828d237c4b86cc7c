"""``GET /spend``: what the owner's threads spent, by day and model."""

from __future__ import annotations

from starlette.responses import Response

from agboss.app import Spend
from agboss.server.endpoint import Call, Endpoint, Query
from agboss.server.problems import ServerError, json_response
from agboss.server.threads import AGENT


async def spend(call: Call) -> Response:
    """``GET /spend``."""
    days = call.number("days", least=1, default=30)
    agent, served = call.text("agent"), call.service.served
    if agent is not None and served.runtime is None:  # those of a folder are looked up by their name
        names = [one.name for one in await served.agents()]
        if agent not in names:
            hint = "name one of: " + ", ".join(names)
            raise ServerError("server.which-agent", f"agent {agent!r:.80} is unknown", hint, status=400)
    place = await served.new_place(agent)
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
