"""The end of a Tern: it is stored, memory works on it, and its place is given to the next one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from agboss.errors import AgbossError, StoreLockedError
from agboss.outcome import Outcome, failed, keep_questions, result_of
from agboss.run import LiveTern, one_line
from agboss.runtime import Interrupt, Place, Runtime, running_task
from agboss.tern import MemoryReport, MemoryRequest, Recorded, book_rest, record, update_memory
from agboss_memory.stores.contract import PendingWork, ThreadRef
from agboss_memory.stores.views import ViewRecord

logger = logging.getLogger("agboss")

RECORD_TRIES = 3
"""How often the final transaction is tried while the store is locked; each try waits for the store's own time-out."""

_NOTHING_DONE = MemoryReport()


async def record_tern(runtime: Runtime, live: LiveTern, outcome: Outcome, place: Place) -> tuple[Outcome, Recorded]:
    """The final transaction. A locked store is tried again; an answer that cannot be stored is not lost on the way.

    A cancellation that comes before it ends the Tern as cancelled.
    """
    tries = RECORD_TRIES
    place.held = live  # until the store says that the lease has ended
    while True:
        tries -= 1
        try:
            if outcome.asks:
                await keep_questions(live, outcome)
            recorded = await record(outcome.to_record(live, runtime.windows))
        except asyncio.CancelledError as error:
            if isinstance(outcome.error, asyncio.CancelledError):
                runtime.unbooked.keep(live)
                raise
            outcome = failed(live, error, stopped="", timeout=None)
        except AgbossError as error:
            if isinstance(error, StoreLockedError) and tries > 0 and not runtime.ending:
                continue
            runtime.unbooked.keep(live)
            if isinstance(outcome.error, asyncio.CancelledError):  # that is what the caller waits for
                live.warn(f"the cancelled turn could not be stored: {one_line(error.message)}")
                raise outcome.error from error
            error.run = result_of(live, outcome, MemoryReport())
            raise
        else:
            if not recorded.held:
                place.held = None
            return outcome, recorded


async def record_views(live: LiveTern, views: list[ViewRecord]) -> None:
    """Keep what was shown. The Tern is stored: a fault is told, not raised."""
    try:
        await live.store.write_views(live.key, tuple(views))
    except AgbossError as error:
        live.warn(f"what the models were shown could not be recorded: {one_line(error.message)}")


async def remember(runtime: Runtime, live: LiveTern, recorded: Recorded) -> MemoryReport:
    """Memory work after the commit. A fault of the store, or a cancellation, leaves the rest to the next Tern.

    When the App was asked to cancel it, the Tern's result is told all the same.
    """
    if not (recorded.strategies or live.pending or recorded.due or live.compacted):
        return _NOTHING_DONE
    fresh = tuple(PendingWork(tern=live.number, strategy=name) for name in recorded.strategies)
    retried = tuple(work for work in live.pending if work.attempts > 0)
    if not (fresh or retried or recorded.due or live.compacted) or runtime.ending:
        return _NOTHING_DONE
    if live.journal.asked:  # later Terns may have passed it while it waited
        ref = ThreadRef(workflow=live.plan.name, thread=live.thread, any_owner=True)
        live.window = (await live.store.thread(ref, live.plan.window)).window
    request = MemoryRequest(
        live=live,
        windows=runtime.windows,
        work=(*retried, *fresh),
        due=recorded.due,
        tern=recorded.tern,
        messages=recorded.messages,
    )
    stop = runtime.remembering[live.thread] = Interrupt(live, running_task())
    report = None
    try:
        try:
            report = await update_memory(request)
            if stop.reason:
                await asyncio.sleep(0)  # a store that was writing held the cancellation back: it comes here
        finally:
            runtime.remembering.pop(live.thread, None)
            stop.end()
            if report is None:
                await _book_rest(runtime, live)
    except asyncio.CancelledError:
        if not stop.reason:
            raise
        if report is None:
            live.warn("memory work was cancelled; what is left of it is tried again after the next turn")
    except AgbossError as error:
        live.warn(f"memory work is left to the next turn: {one_line(error.message)}")
    return report or _NOTHING_DONE


async def _book_rest(runtime: Runtime, live: LiveTern) -> None:
    """Book what broken-off memory work has spent. The Tern is stored: a fault is told, not raised."""
    try:
        await book_rest(live)
    except AgbossError as error:
        runtime.unbooked.keep(live)
        live.warn(f"the cost of memory work is stored later: {one_line(error.message)}")


async def leave(place: Place) -> None:
    """Let the next ones in: those of other processes too, whatever became of the Tern or of its memory work."""
    live, place.held = place.held, None
    try:
        if live is not None:
            await live.store.release(live.key, live.fence, live.number)
    except AgbossError as error:
        logger.warning("other processes have to wait for the end of a lease: %s", error.message)
    finally:
        place.close()


async def release_after(work: Coroutine[Any, Any, MemoryReport], place: Place) -> None:
    """Finish memory work of a run that has returned, then let the thread's next Tern in."""
    try:
        await work
    finally:
        await leave(place)
