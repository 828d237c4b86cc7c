"""Second stage: which node runs next, where a router decides. Edges are followed by the walk itself."""

from __future__ import annotations

import msgspec

import agboss.routers as routers
from agboss.errors import RouterError
from agboss.flow.graph import Node
from agboss.plan import RouterPlan
from agboss.run import LiveTern
from agboss_memory import render
from agboss_memory.contract import MemoryContext
from agboss_memory.messages import TernStatus
from agboss_memory.records import Record
from agboss_memory.strategies import TurnMemory


class ChooseRequest(Record, kw_only=True):
    """Where the Tern stands: at a router."""

    live: LiveTern
    router: Node


class Choice(Record, kw_only=True):
    """The next node, and the decision."""

    node: Node
    route: routers.RouteResult


async def choose(request: ChooseRequest) -> Choice:
    """The next node.

    Raises:
        RouterError: The router failed, gave no route, was not sure enough, or was asked too often.
        LimitExceededError: A bound forbids asking it.
    """
    live, name = request.live, request.router.spec.name
    try:
        result = await _ask(live, live.plan.routers[name])
    except RouterError as error:
        live.meter.book_route(name, error.data.get("usage", ()))
        raise
    live.meter.book_route(name, result.usage)
    return Choice(node=live.plan.graph.nodes[result.next], route=result)


async def _ask(live: LiveTern, plan: RouterPlan) -> routers.RouteResult:
    name = plan.spec.name
    visit = live.visits.get(name, 0) + 1
    live.visits[name] = visit
    again = visit > 1 and bool(live.answers)
    if plan.local and plan.finish is not None and again:
        return routers.RouteResult(next=plan.finish, source="rule")
    if visit > plan.spec.max_visits:
        raise RouterError(
            "router.max-visits",
            f"router {name!r} was asked more than max_visits={plan.spec.max_visits} times in one Tern",
            "raise max_visits, or let a route lead to a finish",
        )
    if plan.calls_model and len(plan.options) > 1:
        live.meter.check_model(name)
    answered = live.answers[-1][1] if live.answers else ""
    route = routers.RouteRequest(
        router=name,
        task=live.task,
        options=plan.options,
        past="" if plan.local else past_text(live),
        last_answer=answered,
        last_status=TernStatus.ANSWERED if (again if plan.local else live.answers) else None,
        visit=visit,
        thread_id=live.thread,
        owner=live.owner,
        metadata=live.metadata,
        attachments=live.attachments,
    )
    step = f"{name}.{visit}.route"
    done = live.journal.finished(step)
    if done is not None:
        return msgspec.convert(done, routers.RouteResult)
    result = await routers.decide(plan.router, route, plan.settings, name_of=live.plan.graph.names.__getitem__)
    if plan.calls_model and result.usage:
        await live.journal.keep(step, "route", msgspec.to_builtins(result))
    return result


def past_text(live: LiveTern) -> str:
    """What routers see of the past."""
    plan = live.plan
    every = 0 if plan.compaction is None else plan.compaction.every
    reach = plan.history_reach
    turns, summaries = reach.terns or 0, reach.summaries or 0
    view = TurnMemory(turns=plan.history_limit, summaries=summaries, every=every).build_context(
        MemoryContext(
            thread_id=live.thread,
            now=live.started_at,
            history=live.window.terns[-turns:] if turns else (),
            summaries=live.window.summaries[-summaries:] if summaries else (),
            blocks=live.window.blocks,
        )
    )
    return render.past_text(view)
