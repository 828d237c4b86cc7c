"""``agboss check`` and ``agboss describe``: what a workflow is, before anything runs. Neither needs a key."""

from __future__ import annotations

from typing import Any

import typer

from agboss.app.assembly import OFFLINE_MODEL, Assembly
from agboss.app.declared import declared
from agboss.cli.options import Session, command
from agboss.components.agent import AgentSpec
from agboss.components.model_spec import ModelSpec
from agboss.components.router import RouterSpec
from agboss.components.settings import JevRouter, LlmRouter
from agboss.errors import ModelKeyError
from agboss.models import key_problem
from agboss.routers.jev_server import decision_key


def register(cli: typer.Typer) -> None:
    """Add the commands."""
    command(cli, "check")(check)
    command(cli, "describe")(describe)


def check(session: Session) -> None:
    """Check a workflow: every problem at once, or what was found good. Missing keys are notes."""
    workflow = session.workflow()
    session.open_app(workflow)
    assembly = Assembly(declared(workflow), offline=session.offline)
    found = _found(assembly)
    notes = [] if session.offline else _missing_keys(assembly)
    if session.out.as_json:
        session.out.document({"ok": True, **found, "notes": notes})
        return
    out = session.out
    out.line(f"ok: {found['workflow']} {found['version']}", "bold green")
    out.line(f"  components  {', '.join(found['components'])}")
    for who, model in found["models"].items():
        out.line(f"  model       {who}: {model}")
    for name, memory in found["memory"].items():
        out.line(f"  memory      {name}: {memory}")
    if found["compaction"]:
        out.line(f"  compaction  {found['compaction']}")
    for note in notes:
        out.line(f"note: {note}", "yellow")


def describe(session: Session) -> None:
    """Draw the flow as a Mermaid flowchart."""
    app = session.open_app()
    if session.out.as_json:
        session.out.document({"workflow": app.name, "mermaid": app.describe()})
    else:
        session.out.line(app.describe().rstrip())


def _found(assembly: Assembly) -> dict[str, Any]:
    spec = assembly.spec
    compaction = spec.compaction
    return {
        "workflow": spec.name,
        "version": spec.version,
        "components": [f"{node.spec.kind} {node.spec.name}" for node in assembly.graph.nodes.values()],
        "models": {who: OFFLINE_MODEL if assembly.offline else model.model for who, model in _models(assembly).items()},
        "memory": {f"agent {agent.name}": _memory(agent) for agent in assembly.agents()},
        "compaction": None
        if compaction is None
        else f"every {compaction.every} turns, {compaction.keep} summaries kept",
    }


def _memory(agent: AgentSpec) -> str:
    """What an agent remembers with: the kind of its window memory, its own strategy, or turns."""
    if agent.memory is not None and agent.memory.config is not None:
        return agent.memory.config.kind
    return "turns" if agent.strategy is None else agent.strategy.name


def _models(assembly: Assembly) -> dict[str, ModelSpec]:
    """Every chat model of the flow, by who uses it."""
    found: dict[str, ModelSpec | None] = {f"agent {item.name}": assembly.model_of(item) for item in assembly.agents()}
    for name, settings in _routers(assembly).items():
        if isinstance(settings, LlmRouter):
            found[f"router {name}"] = settings.model
    found["compaction"] = assembly.compaction_model()
    return {who: model for who, model in found.items() if model is not None}


def _routers(assembly: Assembly) -> dict[str, Any]:
    specs = [node.spec for node in assembly.graph.of_kind("router")]
    return {spec.name: assembly.router_settings(spec) for spec in specs if isinstance(spec, RouterSpec)}


def _missing_keys(assembly: Assembly) -> list[str]:
    problems = [key_problem(model) for model in _models(assembly).values()]
    for settings in _routers(assembly).values():
        if isinstance(settings, JevRouter):
            try:
                decision_key(settings)
            except ModelKeyError as error:
                problems.append(error)
    return list(dict.fromkeys(f"{error.message}; {error.hint}" for error in problems if error is not None))
