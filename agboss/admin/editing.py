"""The form of an agent's definition: what it holds, what becomes of it, and which field is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agboss.admin.marking import Mark, mark
from agboss.admin.showing import pretty
from agboss.definitions import AgentDefinition, parse_definition, with_memory
from agboss.errors import AgbossError, InvalidInputError
from agboss.server.problems import Problem, problem_of
from agboss_memory.records import Record, field

TEXTS = ("description", "systemPrompt", "model")
"""Fields that are plain text."""

_TOOL, _CHARS = "tool:", "chars:"
_TOOLS_SHOWN = "tools"
"""Field that says that the form had the list of tools: without it no tool is taken away."""


class ToolRow(Record, kw_only=True):
    """A tool in the form.

    Attributes:
        name: Its name.
        about: What it does, None = the server was not given it.
        used: Whether the agent may call it.
        chars: Max result chars, as text.
    """

    name: str
    about: str | None
    used: bool
    chars: str


class AgentForm(Record, kw_only=True):
    """What the form holds.

    Attributes:
        name: Name of a new agent.
        texts: Text by field.
        memory: The memoryConfig as JSON.
        version: Version of the definition that the form was made from; empty for a new agent.
        tools: All tools that there are, and those that the agent names.
    """

    name: str
    texts: Mapping[str, str]
    memory: str
    version: str
    tools: tuple[ToolRow, ...]


class Refused(Record, kw_only=True):
    """Why nothing was saved.

    Attributes:
        problem: The whole of it.
        fields: What is wrong with a field, by its name.
        rest: What belongs to no field.
    """

    problem: Problem
    fields: Mapping[str, tuple[Mark, ...]] = field(default_factory=dict[str, tuple[Mark, ...]])
    rest: tuple[Mark, ...] = ()


def form_of(definition: AgentDefinition, known: Mapping[str, str], version: str) -> AgentForm:
    """The form as it is opened; ``known`` = what each tool does, by its name."""
    told = definition.to_dict()
    used = {tool.name: tool.max_result_chars for tool in definition.tools}
    return AgentForm(
        name=definition.name,
        texts={name: _as_browser(told[name] or "") for name in TEXTS},
        memory=prefilled(definition),
        version=version,
        tools=tuple(
            ToolRow(name=name, about=known.get(name), used=name in used, chars=str(used.get(name, 0)))
            for name in (*used, *(name for name in known if name not in used))
        ),
    )


def sent_form(fields: Mapping[str, str], opened: AgentForm) -> AgentForm:
    """The form as it came back; ``opened`` = as it would be opened now."""
    shown = _TOOLS_SHOWN in fields
    return AgentForm(
        name=fields.get("name", "").strip(),
        texts={name: fields.get(name, "") for name in TEXTS},
        memory=fields.get("memory", ""),
        version=fields.get("version", ""),
        tools=tuple(
            ToolRow(
                name=row.name,
                about=row.about,
                used=f"{_TOOL}{row.name}" in fields if shown else row.used,
                chars=fields.get(f"{_CHARS}{row.name}", row.chars).strip(),
            )
            for row in opened.tools
        ),
    )


def prefilled(definition: AgentDefinition) -> str:
    """The memoryConfig that counts, with all its fields."""
    return pretty(definition.effective_memory.model_dump(mode="json"))


def edited(definition: AgentDefinition, form: AgentForm) -> AgentDefinition:
    """The definition as the form wants it. What was not touched keeps its stored value byte for byte.

    Raises:
        InvalidInputError: ``definition.invalid``: names every problem of the form at once.
    """
    found: list[tuple[str, str]] = []
    stored = definition.to_dict()
    changed: dict[str, Any] = {
        name: form.texts[name] for name in TEXTS if form.texts[name] != _as_browser(stored[name] or "")
    }
    if "model" in changed:
        changed["model"] = form.texts["model"].strip() or None
    tools = _tools(definition, form, found)
    if tools != stored["tools"]:
        changed["tools"] = tools
    made = definition
    try:
        made = parse_definition(stored | changed) if changed else definition
    except InvalidInputError as error:
        found += error.data.get("problems", ())
    if form.memory.strip() != prefilled(definition):
        try:
            made = with_memory(made, form.memory)
        except InvalidInputError as error:
            problems = error.data.get("problems", ())
            found += [(pointer or "/memoryConfig", message) for pointer, message in problems]
    if found:
        text = "the agent definition is not valid: " + "; ".join(message for _, message in found)
        raise InvalidInputError("definition.invalid", text, "correct the marked fields", problems=tuple(found))
    return made


def _tools(definition: AgentDefinition, form: AgentForm, found: list[tuple[str, str]]) -> list[dict[str, Any]]:
    kept = {tool.name: tool.max_result_chars for tool in definition.tools}
    tools: list[dict[str, Any]] = []
    for row in form.tools:
        if not row.used:
            continue
        digits = row.chars.removeprefix("-")
        if row.chars and not (digits.isascii() and digits.isdigit() and len(digits) < 10):
            found.append((f"/{_CHARS}{row.name}", f"{row.chars!r:.40} is no whole number; 0 = the tool's own setting"))
            continue
        tools.append({"name": row.name, "maxResultChars": int(row.chars) if row.chars else kept.get(row.name, 0)})
    return tools


def _as_browser(text: str) -> str:
    """A text as it comes back from a form that nobody touched."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")


def refused(error: AgbossError, form: AgentForm) -> Refused:
    """What stands at which field."""
    problem = problem_of(error)
    found: dict[str, tuple[Mark, ...]] = {}
    rest: tuple[Mark, ...] = ()
    memory = form.memory if form.memory.strip() else "null"
    places = [(one.pointer, one.message) for one in problem.problems] or [("", _whole(problem))]
    for pointer, message in places:
        name = _field(error, pointer, form.tools)
        one = mark(pointer, message, memory if name == "memory" else "null")
        if name:
            found[name] = (*found.get(name, ()), one)
        else:
            rest = (*rest, one)
    return Refused(problem=problem, fields=found, rest=rest)


def _whole(problem: Problem) -> str:
    return f"{problem.detail}. {problem.hint}".rstrip(" .") + "."


def _field(error: AgbossError, pointer: str, tools: Sequence[ToolRow]) -> str:
    first = pointer.removeprefix("/").partition("/")[0]
    if first == "memoryConfig":
        return "memory"
    if first in ("name", *TEXTS) or first in {f"{_CHARS}{row.name}" for row in tools}:
        return first
    if first == "tools" or error.code in ("definition.unknown-tool", "definition.duplicate-tool"):
        return "tools"
    return "name" if error.code == "definition.exists" else ""
