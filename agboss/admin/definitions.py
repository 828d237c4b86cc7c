"""Make a definition, from nothing or from another one, and delete one."""

from __future__ import annotations

from anyio import to_thread
from pydantic import ValidationError
from starlette.responses import Response

from agboss.admin.agents import defined
from agboss.admin.editing import AgentForm, Refused, edited, form_of, refused, sent_form
from agboss.admin.page import Page, Visit, failed
from agboss.admin.sessions import Note
from agboss.admin.showing import url
from agboss.app import AgentRuntime
from agboss.definitions import AgentDefinition, parse_definition, ready_definitions
from agboss.errors import AgbossError, InvalidInputError
from agboss.server.problems import Problem, problem_of
from agboss_memory.config import wire_pointers
from agboss_memory.records import replace

NEW = ""
"""Version of a definition that is not there yet."""


async def show_new(visit: Visit) -> Response:
    """``/admin/new-agent?from=``: an empty form, or one with what another agent has."""
    runtime = defined(visit)
    source = _source(runtime, visit.call.text("from"))
    form = replace(form_of(source, runtime.tools(), NEW), name="")
    return _page(visit, runtime, form, source)


def _source(runtime: AgentRuntime, name: str | None) -> AgentDefinition:
    """What a new agent begins with. Raises InvalidInputError for a name that nobody has."""
    if not name:
        return AgentDefinition(name="new")
    ready = next((one for one in ready_definitions() if one.name == name), None)
    known = {one.name: one for one in runtime.agents()}
    return known.get(name) or ready or runtime.agent(name)


def _page(
    visit: Visit, runtime: AgentRuntime, form: AgentForm, source: AgentDefinition, why: Refused | None = None
) -> Response:
    served = {one.name for one in runtime.agents()}
    return visit.render(
        "new_agent.html",
        200 if why is None else why.problem.status,
        form=form,
        refused=why,
        source=visit.call.text("from") or "",
        ready=[one for one in ready_definitions() if one.name not in served],
    )


async def make(visit: Visit) -> Response:
    """The form of a new agent: it is there as a whole, or not at all."""
    runtime = defined(visit)
    source = _source(runtime, visit.call.text("from"))
    form = sent_form(visit.fields, form_of(source, runtime.tools(), NEW))
    try:
        made = _made(source, form)
        await to_thread.run_sync(lambda: runtime.save(made, expected=NEW))
    except AgbossError as error:
        return _page(visit, runtime, form, source, refused(error, form))
    return visit.redirect(url("agents", made.name), Note(text=f"Agent {made.name} was made."))


def _made(source: AgentDefinition, form: AgentForm) -> AgentDefinition:
    """Raises InvalidInputError, which names the problems of the name and of all else at once."""
    problems: list[tuple[str, str]] = []
    try:
        AgentDefinition(name=form.name)
    except ValidationError as error:
        problems += wire_pointers(error)
    try:
        made = edited(source, form)
    except InvalidInputError as error:
        problems += error.data.get("problems", ())
        made = source
    if problems:
        text = "the agent definition is not valid: " + "; ".join(message for _, message in problems)
        raise InvalidInputError("definition.invalid", text, "correct the marked fields", problems=tuple(problems))
    return parse_definition(made.to_dict() | {"name": form.name})


async def confirm(visit: Visit) -> Response:
    """``/admin/agents/{agent}/delete``: what would be gone."""
    name, runtime = visit.call.path("agent"), defined(visit)
    version, problem = _stored(runtime, name)
    return visit.render("delete_agent.html", name=name, version=version, problem=problem)


def _stored(runtime: AgentRuntime, name: str) -> tuple[str, Problem | None]:
    """The version of a definition; of a file that is none, what is wrong with it. Raises when there is no such file."""
    broken = next((one for one in runtime.problems() if one.file == f"{name}.json"), None)
    if broken is not None:
        return "", problem_of(broken.error)
    return runtime.agent(name).version, None


async def delete(visit: Visit) -> Response:
    """Remove a definition, if it is still the one that was shown."""
    name, runtime = visit.call.path("agent"), defined(visit)
    version = visit.field("version")
    try:
        await to_thread.run_sync(lambda: runtime.delete(name, expected=version or None))
    except AgbossError as error:
        return visit.redirect(url("agents"), failed(error))
    return visit.redirect(url("agents"), Note(text=f"Agent {name} was deleted. Its threads are still in the store."))


PAGES = (
    Page(path="/new-agent", handler=show_new),
    Page(path="/new-agent", handler=make, method="POST"),
    Page(path="/agents/{agent}/delete", handler=confirm),
    Page(path="/agents/{agent}/delete", handler=delete, method="POST"),
)
