"""Agents: the list, one of them, and the forms for those that are defined by files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anyio import to_thread
from starlette.responses import Response

from agboss.admin.marking import Mark, marks
from agboss.admin.page import Page, Visit
from agboss.admin.sessions import Note
from agboss.admin.showing import pretty, url
from agboss.app import AgentInfo, AgentRuntime
from agboss.definitions import AgentDefinition, DefinedTool, parse_definition, unknown_agent, with_memory
from agboss.errors import AgbossError, InvalidInputError
from agboss.server.problems import Problem, ServerError, problem_of
from agboss.server.served import Served
from agboss_memory.records import Record

TEXTS = ("description", "systemPrompt", "model")
"""Fields of the form that are plain text."""


class Card(Record, kw_only=True):
    """An agent in the list.

    Attributes:
        name: Its name.
        info: What is known of it, None = it does not work.
        problem: Why it does not.
    """

    name: str
    info: AgentInfo | None = None
    problem: Problem | None = None


async def show_list(visit: Visit) -> Response:
    """``/admin/agents``."""
    return visit.render("agents.html", cards=await _cards(visit.served))


async def _cards(served: Served) -> list[Card]:
    if served.runtime is None:
        return [Card(name=one.name, info=one) for one in await served.agents()]
    cards = [await _card(served, definition.name) for definition in served.runtime.agents()]
    return cards + [Card(name=one.file, problem=problem_of(one.error)) for one in served.runtime.problems()]


async def _card(served: Served, name: str) -> Card:
    try:
        if served.runtime is None:
            agents: Sequence[AgentInfo] = await served.agents()
        else:
            async with served.app(name) as app:
                agents = await app.agents()
    except AgbossError as error:
        return Card(name=name, problem=problem_of(error))
    info = next((one for one in agents if one.name == name), None)
    if info is None:
        raise unknown_agent(name, [one.name for one in agents])
    return Card(name=name, info=info)


async def show(visit: Visit) -> Response:
    """``/admin/agents/{agent}``."""
    name = visit.call.path("agent")
    runtime = visit.served.runtime
    definition = None if runtime is None else runtime.agent(name)
    return await _page(visit, name, definition)


async def _page(
    visit: Visit,
    name: str,
    definition: AgentDefinition | None,
    entered: dict[str, str] | None = None,
    status: int = 200,
    **told: Any,
) -> Response:
    card = await _card(visit.served, name)
    values = entered if entered is not None or definition is None else _values(definition)
    shown: dict[str, Any] = {"refusal": None, "marks": ()}
    return visit.render("agent.html", status, card=card, definition=definition, values=values, **(shown | told))


def _values(definition: AgentDefinition) -> dict[str, str]:
    told = definition.to_dict()
    texts = {name: _as_browser(told[name] or "") for name in TEXTS}
    return texts | {"memory": _prefilled(definition), "version": definition.version}


def _prefilled(definition: AgentDefinition) -> str:
    return pretty(definition.effective_memory.model_dump(mode="json"))


def _as_browser(text: str) -> str:
    """A text as it comes back from a form that nobody touched."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")


async def save(visit: Visit) -> Response:
    """The edit form: everything is saved, or nothing."""
    name, runtime = visit.call.path("agent"), _runtime(visit)
    definition = runtime.agent(name)
    entered = {field: visit.field(field) for field in (*TEXTS, "memory", "version")}
    try:
        _check_version(definition, entered["version"])
        edited = _edited(definition, entered)
        if edited == definition:
            return visit.redirect(url("agents", name), Note(text="Nothing has changed."))
        await to_thread.run_sync(runtime.save, edited)
    except AgbossError as error:
        problem = problem_of(error)
        found = _marks(error, entered["memory"])
        return await _page(visit, name, definition, entered, problem.status, refusal=problem, marks=found)
    return visit.redirect(url("agents", name), Note(text="Saved. It counts from the next turn on."))


def _marks(error: AgbossError, memory: str) -> tuple[Mark, ...]:
    """Problems of the form; places are marked in the memoryConfig, whose text may hold them."""
    return marks(error, memory if memory.strip() else "null")


def _edited(definition: AgentDefinition, entered: dict[str, str]) -> AgentDefinition:
    stored = definition.to_dict()
    changed: dict[str, Any] = {
        field: entered[field] for field in TEXTS if entered[field] != _as_browser(stored[field] or "")
    }
    if "model" in changed:
        changed["model"] = entered["model"].strip() or None
    edited = parse_definition(stored | changed) if changed else definition
    same = entered["memory"].strip() == _prefilled(definition)
    return edited if same else with_memory(edited, entered["memory"])


def _check_version(definition: AgentDefinition, version: str) -> None:
    if version != definition.version:
        text = f"agent {definition.name!r} was changed by somebody else meanwhile"
        raise ServerError("server.changed", text, "copy what you wrote, load the page again", status=409)


async def show_tool(visit: Visit) -> Response:
    """``/admin/agents/{agent}/tools/{tool}``."""
    definition = _runtime(visit).agent(visit.call.path("agent"))
    tool = _tool(definition, visit.call.path("tool"))
    return visit.render("tool.html", definition=definition, tool=tool, entered=str(tool.max_result_chars), refusal=None)


async def save_tool(visit: Visit) -> Response:
    """The form of a tool."""
    runtime = _runtime(visit)
    definition = runtime.agent(visit.call.path("agent"))
    tool = _tool(definition, visit.call.path("tool"))
    entered = visit.field("maxResultChars").strip()
    try:
        _check_version(definition, visit.field("version"))
        edited = _with_tool(definition, tool, entered)
        await to_thread.run_sync(runtime.save, edited)
    except AgbossError as error:
        problem = problem_of(error)
        return visit.render(
            "tool.html", problem.status, definition=definition, tool=tool, entered=entered, refusal=problem
        )
    return visit.redirect(url("agents", definition.name), Note(text=f"Tool {tool.name} saved."))


def _with_tool(definition: AgentDefinition, tool: DefinedTool, entered: str) -> AgentDefinition:
    digits = entered.removeprefix("-")
    if entered and not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        text = f"Max result chars is {entered!r:.80}"
        raise InvalidInputError("definition.invalid", text, "use a whole number; 0 = the tool's own setting")
    stored = definition.to_dict()
    most = int(entered) if entered else tool.max_result_chars
    tools = [one | {"maxResultChars": most} if one["name"] == tool.name else one for one in stored["tools"]]
    return parse_definition(stored | {"tools": tools})


def _tool(definition: AgentDefinition, name: str) -> DefinedTool:
    found = next((tool for tool in definition.tools if tool.name == name), None)
    if found is None:
        text = f"agent {definition.name!r} has no tool {name!r:.80}"
        raise ServerError("server.not-found", text, "choose one from the agent's page", status=404)
    return found


def _runtime(visit: Visit) -> AgentRuntime:
    runtime = visit.served.runtime
    if runtime is None:
        text = "the agents of this server are declared in code"
        raise ServerError("server.no-definitions", text, "serve a folder of definitions", status=404)
    return runtime


PAGES = (
    Page(path="/agents", handler=show_list),
    Page(path="/agents/{agent}", handler=show),
    Page(path="/agents/{agent}", handler=save, method="POST"),
    Page(path="/agents/{agent}/tools/{tool}", handler=show_tool),
    Page(path="/agents/{agent}/tools/{tool}", handler=save_tool, method="POST"),
)
