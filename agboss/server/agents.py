"""Agents, and the memoryConfig of those that are defined by files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from anyio import to_thread
from starlette.responses import Response

from agboss.app import AgentInfo, AgentRuntime
from agboss.definitions import AgentDefinition, unknown_agent, with_memory
from agboss.errors import InvalidInputError
from agboss.server.endpoint import Call, Endpoint, Query
from agboss.server.problems import ServerError, json_response
from agboss.server.served import BrokenAgent
from agboss_memory.records import Record


class AgentList(Record, kw_only=True):
    """All agents that work, and definitions of others that do not."""

    agents: tuple[AgentInfo, ...]
    broken: tuple[BrokenAgent, ...] = ()


class StoredMemory(Record, kw_only=True):
    """The memoryConfig of an agent.

    Attributes:
        memory_config: As stored; None = the default counts.
        effective: The one that counts, with all its fields.
    """

    memory_config: Mapping[str, Any] | None
    effective: Mapping[str, Any]


async def show_list(call: Call) -> Response:
    """``GET /agents``."""
    served = call.service.served
    return json_response(AgentList(agents=await served.agents(), broken=await served.broken()))


async def show(call: Call) -> Response:
    """``GET /agents/{agent}``."""
    name, served = call.path("agent"), call.service.served
    if served.runtime is not None:
        async with served.app(name) as app:  # says why, when it is there and does not work
            agents = await app.agents()
    else:
        agents = await served.agents()
    found = next((agent for agent in agents if agent.name == name), None)
    if found is None:
        raise unknown_agent(name, [agent.name for agent in agents])
    return json_response(found)


async def show_memory(call: Call) -> Response:
    """``GET /agents/{agent}/memory-config``."""
    return _told(_runtime(call).agent(call.path("agent")))


async def save_memory(call: Call) -> Response:
    """``PUT /agents/{agent}/memory-config``: a blank body keeps what is stored, ``null`` is the default.

    With ``If-Match`` it is only saved over the version that the client has seen.
    """
    runtime = _runtime(call)
    stored = runtime.agent(call.path("agent"))
    expected = _expected(call.request.headers.get("if-match"))
    if expected is not None and stored.version not in expected:
        raise _changed(stored.name)
    definition = with_memory(stored, (await call.request.body()).decode("utf-8", "replace"))
    if definition is not stored:
        try:
            version = None if expected is None else stored.version
            await to_thread.run_sync(partial(runtime.save, definition, expected=version))
        except InvalidInputError as error:
            if error.code != "definition.changed":
                raise
            raise _changed(stored.name) from error
    return _told(definition)


def _expected(header: str | None) -> frozenset[str] | None:
    """Versions of an ``If-Match``; None = any."""
    if header is None or header.strip() == "*":
        return None
    return frozenset(tag.strip().strip('"') for tag in header.split(","))


def _changed(name: str) -> ServerError:
    text = f"agent {name!r} was changed by somebody else meanwhile"
    return ServerError("definition.changed", text, "GET it again, then save with its new ETag", status=412)


def _runtime(call: Call) -> AgentRuntime:
    runtime = call.service.served.runtime
    if runtime is None:
        text = "the agents of this server are declared in code"
        raise ServerError("server.no-definitions", text, "serve a folder of definitions", status=404)
    return runtime


def _told(definition: AgentDefinition) -> Response:
    stored = StoredMemory(
        memory_config=definition.to_dict()["memoryConfig"],
        effective=definition.effective_memory.model_dump(mode="json"),
    )
    return json_response(stored, headers={"ETag": f'"{definition.version}"'})


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/agents",
        name="listAgents",
        about="All agents that work, and definitions of others that do not.",
        handler=show_list,
        gives=AgentList,
        problems=(503,),
    ),
    Endpoint(
        method="GET",
        path="/agents/{agent}",
        name="showAgent",
        about="One agent.",
        handler=show,
        gives=AgentInfo,
        problems=(404, 503),
    ),
    Endpoint(
        method="GET",
        path="/agents/{agent}/memory-config",
        name="showMemoryConfig",
        about="The memoryConfig of an agent that is defined by a file.",
        handler=show_memory,
        gives=StoredMemory,
        problems=(404, 503),
    ),
    Endpoint(
        method="PUT",
        path="/agents/{agent}/memory-config",
        name="saveMemoryConfig",
        about="Save a memoryConfig. A blank body keeps what is stored, null means the default.",
        handler=save_memory,
        raw_body="memoryConfig",
        query=(Query(name="If-Match", about="ETag of the version that is replaced; left out = any.", place="header"),),
        gives=StoredMemory,
        problems=(404, 409, 412, 422, 503),
    ),
)
