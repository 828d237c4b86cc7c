"""Fourth stage: run one node, an agent or an action."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from decimal import Decimal
from typing import Any

from agboss.agents import AgentJob, Listener, NodeAnswer, ViewBuilder, run_agent
from agboss.components.action import ActionContext, ActionSpec
from agboss.components.tool import ToolContext
from agboss.errors import AgbossError, TernFailedError
from agboss.flow.graph import Node
from agboss.run import LiveTern, as_answer, as_model
from agboss_memory.contract import MemoryView
from agboss_memory.records import Record
from agboss_memory.render import user_message
from agboss_memory.wording import told


class DispatchRequest(Record, kw_only=True):
    """Which node runs.

    Attributes:
        live: The Tern.
        node: The node.
        build_view: Gives an agent's view; made by the runner. None for an action.
        listener: Hears text and tools, or None.
        goes_on: Whether another node may follow.
    """

    live: LiveTern
    node: Node
    build_view: ViewBuilder | None = None
    listener: Listener | None = None
    goes_on: bool = False


def dispatch(request: DispatchRequest) -> Awaitable[NodeAnswer]:
    """Run the node.

    Raises:
        OutputError: Its input or output does not satisfy the declared model.
        TernFailedError: An action raised.
        ModelError, LimitExceededError, StrategyError: From the agent's loop.
    """
    name = request.node.spec.name
    if request.build_view is not None:
        return run_agent(_job(request, name, request.build_view))
    return _action(request, name)


def _job(request: DispatchRequest, name: str, build_view: ViewBuilder) -> AgentJob:
    live = request.live
    plan = live.plan.agents[name]
    if plan.spec.input is not None:
        as_model(plan.spec.input, live.value, name)
    return AgentJob(
        plan=plan,
        task=live.task if plan.config is None else user_message(MemoryView(), live.task, live.answers).content,
        attachments=live.attachments,
        build_view=build_view,
        context=ToolContext(
            thread_id=live.thread, owner=live.owner, tern=live.number, agent=name, metadata=live.metadata
        ),
        meter=live.meter,
        warn=live.warnings,
        now=live.started_at,
        log=live.messages,
        journal=live.journal,
        step=live.step(name),
        goes_on=request.goes_on,
        listener=request.listener,
    )


async def _action(request: DispatchRequest, name: str) -> NodeAnswer:
    live = request.live
    plan = live.plan.actions[name]
    value = live.value if plan.spec.input is None else as_model(plan.spec.input, live.value, name)

    def report(usd: Decimal, what: str) -> None:
        live.meter.book_tool(name, usd, what, step)

    limit, step = live.plan.history_limit, f"{live.step(name)}.action"
    context = ActionContext(
        thread_id=live.thread,
        owner=live.owner,
        tern=live.number,
        agent=name,
        metadata=live.metadata,
        report=report,
        task=live.task,
        input=value,
        answers=live.answers,
        history=live.window.terns[-limit:] if limit else (),
    )
    done = live.journal.finished(step)
    if done is not None:
        return NodeAnswer(text=done, value=_value(plan.spec, done))
    try:
        made = plan.make().run(context)
        result = await made if inspect.isawaitable(made) else made
    except AgbossError:
        raise
    except Exception as error:
        raise TernFailedError(
            "action.failed", f"action {name!r} failed: {told(error)}", "mend the action", action=name
        ) from error
    if plan.spec.output is not None:
        result = as_model(plan.spec.output, result, name)
    answer = as_answer(result)
    if plan.spec.output is not None or isinstance(result, str):  # an object of any other kind cannot be made again
        await live.journal.keep(step, "action", answer)
    return NodeAnswer(text=answer, value=result)


def _value(spec: ActionSpec, answer: str) -> Any:
    return answer if spec.output is None else as_model(spec.output, answer, spec.name)
