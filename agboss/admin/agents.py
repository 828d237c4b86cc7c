"""Agents: the list, one of them, and the forms for those that are defined by files."""

from __future__ import annotations

from collections.abc import Sequence

from anyio import to_thread
from starlette.responses import Response

from agboss.admin.editing import AgentForm, Refused, edited, form_of, refused, sent_form
from agboss.admin.page import Page, Visit
from agboss.admin.sessions import Note
from agboss.admin.showing import url
from agboss.app import AgentInfo, AgentRuntime
from agboss.definitions import AgentDefinition, DefinedTool, unknown_agent
from agboss.errors import AgbossError
from agboss.server.problems import Problem, ServerError, problem_of
from agboss.server.served import Served
from agboss_memory.records import Record, replace


class Card(Record, kw_only=True):
    """An agent in the list.

    Attributes:
        name: Its name.
        info: What is known of it, None = it does not work.
        problem: Why it does not.
        file: Its file, when that is no definition.
    """

    name: str
    info: AgentInfo | None = None
    problem: Problem | None = None
    file: str = ""


async def show_list(visit: Visit) -> Response:
    """``/admin/agents``."""
    return visit.render("agents.html", cards=await _cards(visit.served), editable=visit.served.runtime is not None)


async def _cards(served: Served) -> list[Card]:
    if served.runtime is None:
        return [Card(name=one.name, info=one) for one in await served.agents()]
    cards = [await _card(served, definition.name) for definition in served.runtime.agents()]
    return cards + [
        Card(name=one.file.removesuffix(".json"), problem=problem_of(one.error), file=one.file)
        for one in served.runtime.problems()
    ]


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
    name, runtime = visit.call.path("agent"), visit.served.runtime
    if runtime is None:
        card = await _card(visit.served, name)
        return visit.render("agent.html", card=card, definition=None, form=None, refused=None)
    definition = runtime.agent(name)
    return await _page(visit, runtime, definition, form_of(definition, runtime.tools(), definition.version))


async def _page(
    visit: Visit,
    runtime: AgentRuntime,
    definition: AgentDefinition,
    form: AgentForm,
    why: Refused | None = None,
) -> Response:
    status = 200 if why is None else why.problem.status
    card = await _card(visit.served, definition.name)
    return visit.render("agent.html", status, card=card, definition=definition, form=form, refused=why)


async def save(visit: Visit) -> Response:
    """The edit form: everything is saved, or nothing."""
    name, runtime = visit.call.path("agent"), defined(visit)
    definition = runtime.agent(name)
    form = sent_form(visit.fields, form_of(definition, runtime.tools(), definition.version))
    try:
        check_version(definition, form.version)
        made = edited(definition, form)
        if made == definition:
            return visit.redirect(url("agents", name), Note(text="Nothing has changed."))
        await to_thread.run_sync(lambda: runtime.save(made, expected=form.version))
    except AgbossError as error:
        return await _page(visit, runtime, definition, form, refused(error, form))
    return visit.redirect(url("agents", name), Note(text="Saved. It counts from the next Tern on."))


def check_version(definition: AgentDefinition, version: str) -> None:
    """Raises ServerError when a form was made from another version."""
    if version != definition.version:
        text = f"agent {definition.name!r} was changed by somebody else meanwhile"
        raise ServerError("definition.changed", text, "copy what you wrote, load the page again", status=409)


async def show_tool(visit: Visit) -> Response:
    """``/admin/agents/{agent}/tools/{tool}``."""
    runtime = defined(visit)
    definition = runtime.agent(visit.call.path("agent"))
    tool = _tool(definition, visit.call.path("tool"))
    return _tool_page(visit, runtime, definition, tool, str(tool.max_result_chars))


def _tool_page(
    visit: Visit,
    runtime: AgentRuntime,
    definition: AgentDefinition,
    tool: DefinedTool,
    entered: str,
    why: Refused | None = None,
) -> Response:
    return visit.render(
        "tool.html",
        200 if why is None else why.problem.status,
        definition=definition,
        tool=tool,
        about=runtime.tools().get(tool.name),
        entered=entered,
        refused=why,
    )


async def save_tool(visit: Visit) -> Response:
    """The form of a tool."""
    runtime = defined(visit)
    definition = runtime.agent(visit.call.path("agent"))
    tool = _tool(definition, visit.call.path("tool"))
    entered = visit.field("maxResultChars").strip()
    opened = form_of(definition, runtime.tools(), definition.version)
    rows = tuple(replace(row, chars=entered) if row.name == tool.name else row for row in opened.tools)
    form = replace(opened, tools=rows)
    try:
        check_version(definition, visit.field("version"))
        made = edited(definition, form)
        await to_thread.run_sync(lambda: runtime.save(made, expected=definition.version))
    except AgbossError as error:
        return _tool_page(visit, runtime, definition, tool, entered, refused(error, form))
    return visit.redirect(url("agents", definition.name), Note(text=f"Tool {tool.name} saved."))


def _tool(definition: AgentDefinition, name: str) -> DefinedTool:
    found = next((tool for tool in definition.tools if tool.name == name), None)
    if found is None:
        text = f"agent {definition.name!r} has no tool {name!r:.80}"
        raise ServerError("server.not-found", text, "choose one from the agent's page", status=404)
    return found


def defined(visit: Visit) -> AgentRuntime:
    """Where definitions are. Raises ServerError when agents are declared in code."""
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
