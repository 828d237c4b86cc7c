"""Having a thread for memory work outside a Tern: because a person asked for it, or because a dead process left it."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from agboss.app.progress import ProgressTeller, ToldMeter
from agboss.container import CURRENT, TernScope
from agboss.errors import AgbossError
from agboss.journal import Journal
from agboss.run import LiveTern, Warnings
from agboss.runtime import Runtime, spent_today
from agboss.tern import book_rest
from agboss.units import new_id
from agboss_memory.contract import utc_now
from agboss_memory.stores.admissions import MemoryClaim
from agboss_memory.stores.contract import ThreadState

logger = logging.getLogger("agboss")


@asynccontextmanager
async def held(runtime: Runtime, key: int) -> AsyncGenerator[ThreadState | None]:
    """Have a thread, whose line in this process is ours, before all processes; None when another one has it."""
    claim = MemoryClaim(key=key, holder=runtime.holder, now=utc_now(), window=runtime.plan.window)
    state = await runtime.store.hold(claim)
    try:
        yield state
    finally:
        if state is not None:
            runtime.windows.drop(state.info.id)
            try:
                await runtime.store.release(key, state.fence, state.info.terns)
            except AgbossError as error:
                logger.warning("other processes have to wait for the end of a lease: %s", error.message)


@asynccontextmanager
async def carried(
    runtime: Runtime, state: ThreadState, why: str, teller: ProgressTeller | None = None
) -> AsyncGenerator[LiveTern]:
    """The newest Tern as the one that carries the work's cost, which is booked whatever becomes of the work.

    Args:
        runtime: What runs share.
        state: The thread.
        why: Begins the keys of what is booked; the Tern's own run has booked under the plain ones.
        teller: Tells how far the work is.
    """
    warnings = Warnings(state.info.id, state.info.terns, None if teller is None else teller.take)
    meter = ToldMeter(
        runtime.plan.limits,
        runtime.plan.cost_of,
        warnings,
        prefix=f"{why}-{new_id()}.",
        memory_timeout=runtime.memory_timeout,
    )
    meter.teller = teller
    live = LiveTern(
        plan=runtime.plan,
        store=runtime.store,
        thread=state.info.id,
        key=state.key,
        number=state.info.terns,
        fence=state.fence,
        owner=state.info.owner,
        task="",
        start="",
        value="",
        started_at=utc_now(),
        window=state.window,
        meter=meter,
        journal=Journal(runtime.store, state.key, state.info.terns, state.fence, meter),
        warnings=warnings,
        emit=warnings.emit,
    )
    day = await spent_today(runtime, live.started_at.date().isoformat())
    if day is not None:
        meter.bound_by(day)
    token = CURRENT.set(TernScope(thread_id=live.thread, meter=meter))
    try:
        yield live
    finally:
        CURRENT.reset(token)
        try:
            await book_rest(live)
        except AgbossError as error:
            runtime.unbooked.keep(live)
            live.warn(f"the cost of memory work is stored later: {error.message}")
