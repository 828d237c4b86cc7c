"""The desk itself: who is asked for what."""

from __future__ import annotations

from agboss import (
    AnswerFinish,
    Compaction,
    Defaults,
    History,
    Limits,
    ModelDefaults,
    ModelSpec,
    Rule,
    RulesRouter,
    RunLimits,
    TaskStart,
    agent,
    chain,
    from_,
    provide,
    router,
    workflow,
)

from .orders import ORDERS, PaperOrderBook, look_up_order


@agent(
    description="Knows every order, parcel and delivery",
    prompt="Answer questions about orders. Look an order up before you say anything about it; never guess.",
    tools=[look_up_order],
    examples=["Where is order 4711?", "My parcel has not arrived"],
)
class OrderDesk: ...


@agent(
    description="Knows the shop: returns, opening hours, payment",
    prompt="Answer questions about the shop. Returns are free for 30 days. The shop is open from 9 to 18, not on Sundays.",
    examples=["How do I return shoes?", "When are you open?"],
)
class Advisor: ...


@router(
    router=RulesRouter(
        rules=(
            Rule(to=OrderDesk, words=("order", "orders", "parcel", "delivery", "arrived")),
            Rule(to=OrderDesk, pattern=r"\b47\d\d\b"),
        ),
        otherwise=Advisor,
    )
)
class Reception:
    """Sends a task to the one who knows."""


@workflow(
    name="help-desk",
    version="1.0.0",
    flow=[chain(TaskStart, Reception), from_(Reception).routes(OrderDesk, Advisor, then=AnswerFinish)],
    defaults=Defaults(
        models=ModelDefaults(model=ModelSpec("openai:gpt-5-mini")),
        history=History(limit=6, summaries=2),
    ),
    compaction=Compaction(every=4, keep=2),
    limits=Limits(per_run=RunLimits(model_calls=6, tool_calls=4)),
    providers=[provide(ORDERS, PaperOrderBook())],
)
class HelpDesk: ...
