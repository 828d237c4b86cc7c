"""Whether a call of a tool may run: by its declaration, or as a person has decided."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable

import msgspec

from agboss.agents.tools import ArgumentsError, BoundTool, read_arguments
from agboss.components.tool import ToolContext
from agboss.journal import Journal
from agboss.pauses import Ask, Decision, PauseRequired, decision_step, pause_step
from agboss_memory.messages import ToolCall
from agboss_memory.records import Record
from agboss_memory.tool_results import capped
from agboss_memory.wording import told

LONGEST_NOTE = 2_000
"""Characters of other arguments that a model is told."""


class Permit(Record, kw_only=True):
    """What becomes of a call.

    Attributes:
        arguments: What the tool runs with, as JSON text.
        denied: What the model is told instead of a result; empty = it runs.
        note: What the model is told ahead of the result.
    """

    arguments: str
    denied: str = ""
    note: str = ""


async def permit(
    tool: BoundTool, call: ToolCall, context: ToolContext, journal: Journal, stem: str, warn: Callable[[str], None]
) -> Permit:
    """Whether the call may run, and with what.

    Args:
        tool: The tool.
        call: The call.
        context: What the tool may know.
        journal: Has questions and answers of earlier runs.
        stem: Begins the names of the agent's steps.
        warn: Receives one-line warnings.

    Raises:
        PauseRequired: A person has to decide first.
    """
    if tool.spec.needs_approval is False and not journal.asked:
        return Permit(arguments=call.arguments)
    given = journal.finished(decision_step(stem, call))
    if given is not None:
        return _decided(tool, call, msgspec.convert(given, Decision))
    earlier = journal.finished(pause_step(stem, call))
    if earlier is not None or await _needed(tool, call, context, warn):
        raise PauseRequired((Ask(stem=stem, agent=context.agent, call=call, earlier=earlier),))
    return Permit(arguments=call.arguments)


def _decided(tool: BoundTool, call: ToolCall, decision: Decision) -> Permit:
    if not decision.approved:
        reason = f": {decision.reason}" if decision.reason else "."
        text = f"Error: not run, a person denied this call of {tool.spec.name}{reason}"
        return Permit(arguments=call.arguments, denied=capped(text, tool.limit))
    if decision.arguments is None:
        return Permit(arguments=call.arguments)
    changed = json.dumps(decision.arguments)
    shown = json.dumps(decision.arguments, ensure_ascii=False)
    shown = shown if len(shown) <= LONGEST_NOTE else shown[:LONGEST_NOTE] + "…"
    return Permit(arguments=changed, note=f"[A person changed the arguments of this call to: {shown}]\n")


async def _needed(tool: BoundTool, call: ToolCall, context: ToolContext, warn: Callable[[str], None]) -> bool:
    rule = tool.spec.needs_approval
    if rule is False:
        return False
    try:
        arguments = read_arguments(tool, call.arguments)
    except ArgumentsError:
        return False  # such a call does not run: the model is told what is wrong with it
    if rule is True:
        return True
    try:
        made = rule(arguments, context)
        return bool(await made if inspect.isawaitable(made) else made)
    except Exception as error:  # whoever cannot tell must not let it run
        warn(f"needs_approval of tool {tool.spec.name!r} failed, so a person is asked: {told(error)}")
        return True
