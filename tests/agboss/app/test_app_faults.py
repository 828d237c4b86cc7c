"""Whatever goes wrong, and at whatever await: a typed error, a thread that goes on, and every paid call booked once."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fault_desk
import pytest
from fault_desk import SQLITE_CODES, Faults, Stepped, fail, memory_or_sqlite, open_desk

from agboss import AgbossError, App, Attachment, TernStatus

STORES = ("memory", "sqlite")
FILE = Attachment(name="a.txt", media_type="text/plain", data=b"what is attached")
MOST_TERNS = 6
"""After a fault so many Terns are enough to do what it left: memory makes at most four calls in one."""

Run = Callable[[App], Awaitable[Any]]


async def ask(app: App, text: str = "Find it.", **settings: Any) -> Any:
    return await app.execute(text, thread="t", create_thread=True, attachments=[FILE], **settings)


async def listen(app: App) -> Any:
    """The same, heard as a stream."""
    async with app.stream("Find it.", thread="t", create_thread=True, attachments=[FILE]) as run:
        async for _ in run:
            pass
    return await run.result()


async def clean(app: App) -> None:
    """Nobody is inside or waiting, and the store holds no thread for anybody."""
    runtime = await app._lifecycle.runtime()  # pyright: ignore[reportPrivateUsage]
    assert len(runtime.queue) == 0
    assert runtime.running == {}
    assert await app.threads.check() == ()
    store: Any = runtime.store
    store = getattr(store, "_inner", store)
    if hasattr(store, "_connection"):
        held = "SELECT (SELECT count(*) FROM tickets), (SELECT count(*) FROM threads WHERE running OR remembering)"

        def read(opened: sqlite3.Connection) -> list[Any]:
            return opened.execute(held).fetchall()

        (row,) = await store._connection.read(read)
        assert row == (0, 0)
        assert store._tickets == {}
    else:
        assert store._tickets._tickets == {}
    assert store._running == {}


async def accounts(app: App) -> None:
    """Every call that was paid is booked once: in the Terns, in the total of the thread, and in the ledger."""
    copy = (await app.threads.export("t")).copy
    booked = [item.record for tern in copy.terns for item in tern.usage]
    booked += [item.record for item in copy.unbound]
    assert sorted((r.caller, r.purpose) for r in booked) == sorted(fault_desk.desk.paid)
    store = (await app._lifecycle.runtime()).store  # pyright: ignore[reportPrivateUsage]
    day = await store.day_spend(app.name, datetime.now(UTC).date().isoformat())
    assert day.model_calls == sum(purpose != "tool" for _, purpose in fault_desk.desk.paid)
    (info,) = await app.threads.list()
    assert info.spend == sum((r.usd or 0) for r in booked)


async def afterwards(app: App) -> None:
    """The thread goes on; at the end nothing is owed and no range was summarised twice."""
    for number in range(2, MOST_TERNS):
        result = await ask(app, f"And then {number}.")
        assert result.status is TernStatus.ANSWERED
        await (await app._lifecycle.runtime()).queue.drained()  # pyright: ignore[reportPrivateUsage]
        await clean(app)
        copy = (await app.threads.export("t")).copy
        if not copy.work and all(block.state != "due" for block in copy.blocks) and number > 2:
            break
    copy = (await app.threads.export("t")).copy
    assert [item.tern.number for item in copy.terns] == list(range(1, len(copy.terns) + 1))
    assert all(item.tern.status.finished for item in copy.terns)
    ranges = [(one.summary.agent, one.summary.kind, one.summary.first, one.summary.last) for one in copy.summaries]
    assert len(ranges) == len(set(ranges))
    assert copy.work == ()
    assert [(block.first, block.last) for block in copy.blocks if block.state == "due"] == []
    await accounts(app)


async def episode(
    kind: str, folder: Path, run: Run, *, prepare: Callable[[Faults], None], settings: dict[str, Any] | None = None
) -> tuple[Faults, Any]:
    """One Tern, then one with the fault, then two that must go well. Gives what the faulty one gave or raised."""
    folder.mkdir()  # noqa: ASYNC240
    faults = Faults()
    app = open_desk(memory_or_sqlite(kind, folder, faults), **(settings or {}))
    async with app:
        await ask(app, "Begin.")
        runtime = await app._lifecycle.runtime()  # pyright: ignore[reportPrivateUsage]
        await runtime.queue.drained()
        prepare(faults)
        try:
            outcome = await run(app)
        except (AgbossError, asyncio.CancelledError) as error:
            outcome = error
        faults.heal()
        await runtime.queue.drained()
        assert runtime.running == {}
        fault_desk.desk.at = 0
        await afterwards(app)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert left == set()
    return faults, outcome


async def counted(kind: str, folder: Path, ask: Run = ask, settings: dict[str, Any] | None = None) -> int:
    """How many store calls the Tern makes when nothing goes wrong."""
    made: list[str] = []

    async def run(app: App) -> Any:
        result = await ask(app)
        assert result.memory is not None
        made.extend(faults.calls)
        return result

    faults = Faults()

    def prepare(armed: Faults) -> None:
        nonlocal faults
        faults = armed
        armed.arm(0, None)

    await episode(kind, folder / "count", run, prepare=prepare, settings=settings)
    assert len(made) > 10
    return len(made)


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "lasting"])
@pytest.mark.parametrize(
    ("kind", "fault"),
    [*(("sqlite", fault) for fault in SQLITE_CODES), ("memory", "locked"), ("memory", "disk-full")],
)
async def test_the_store_fails_at_any_of_its_calls(tmp_path: Path, kind: str, fault: str, lasting: bool) -> None:
    for at in range(1, await counted(kind, tmp_path) + 1):
        strike = fail(fault, sqlite=kind == "sqlite")
        _, outcome = await episode(
            kind, tmp_path / str(at), ask, prepare=lambda faults, at=at, s=strike: faults.arm(at, s, lasting=lasting)
        )
        if isinstance(outcome, BaseException):
            assert isinstance(outcome, AgbossError), at
            assert outcome.code == f"store.{fault}", at
        else:
            assert outcome.status is TernStatus.ANSWERED, at


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "lasting"])
@pytest.mark.parametrize("kind", STORES)
async def test_a_key_comes_again_after_the_store_failed_at_any_of_its_calls(
    tmp_path: Path, kind: str, lasting: bool
) -> None:
    """What the store refused is in the App: neither a tool nor a model that has answered is asked again."""
    whole = Counter({("finder", "answer"): 2, ("find", "tool"): 2, ("keeper", "answer"): 1})
    for at in range(1, await counted(kind, tmp_path) + 1):
        armed: list[Faults] = []

        def prepare(faults: Faults, at: int = at, armed: list[Faults] = armed) -> None:
            armed.append(faults)
            faults.arm(at, fail("disk-full", sqlite=kind == "sqlite"), lasting=lasting)

        async def run(app: App, armed: list[Faults] = armed) -> Any:
            before = len(fault_desk.desk.paid)
            with suppress(AgbossError):
                await ask(app, idempotency_key="k")
            armed[0].heal()
            try:
                result = await ask(app, idempotency_key="k")
            except AgbossError as error:  # it could be stored as failed
                result: Any = error.run
            paid = Counter(one for one in fault_desk.desk.paid[before:] if one in whole)
            return result, paid

        _, (result, paid) = await episode(kind, tmp_path / str(at), run, prepare=prepare)
        assert result.status in (TernStatus.ANSWERED, TernStatus.FAILED), at
        assert paid == whole if result.status is TernStatus.ANSWERED else paid <= whole, at


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "lasting"])
@pytest.mark.parametrize("kind", STORES)
async def test_the_store_fails_at_any_call_of_a_stream_that_records_views(
    tmp_path: Path, kind: str, lasting: bool
) -> None:
    views: dict[str, Any] = {"record_views": True}
    for at in range(1, await counted(kind, tmp_path, listen, views) + 1):
        strike = fail("disk-full", sqlite=kind == "sqlite")
        faults, outcome = await episode(
            kind,
            tmp_path / str(at),
            listen,
            prepare=lambda faults, at=at, s=strike: faults.arm(at, s, lasting=lasting),
            settings=views,
        )
        if isinstance(outcome, BaseException):
            assert isinstance(outcome, AgbossError), at
            assert outcome.code == "store.disk-full", at
        else:
            assert outcome.status is TernStatus.ANSWERED, at
            if kind == "memory" and faults.calls[at - 1] == "write_views":
                assert any("could not be recorded" in line for line in outcome.warnings)


@pytest.mark.parametrize("late", [False, True], ids=["waiting", "woken"])
@pytest.mark.parametrize("kind", STORES)
async def test_the_listener_is_cancelled_at_any_await(tmp_path: Path, kind: str, late: bool) -> None:
    at, waits = 0, 1
    while at <= waits:
        stepped: list[Stepped] = []

        async def run(app: App, at: int = at, stepped: list[Stepped] = stepped) -> Any:
            async def steps() -> Any:
                stepped.append(Stepped(listen(app), at, late=late))
                return await stepped[0]

            return await asyncio.create_task(steps())

        _, outcome = await episode(kind, tmp_path / str(at), run, prepare=lambda faults: faults.arm(0, None))
        waits = max(waits, stepped[0].waits) if at == 0 else waits
        if at and stepped[0].waits >= at:
            assert isinstance(outcome, asyncio.CancelledError), at
        at += 1
    assert waits > 3


@pytest.mark.parametrize(
    ("late", "work"),
    [(False, "inline"), (True, "inline"), (True, "background")],
    ids=["waiting", "woken", "woken-background"],
)
@pytest.mark.parametrize("kind", STORES)
async def test_the_caller_is_cancelled_at_any_await(tmp_path: Path, kind: str, late: bool, work: str) -> None:
    at, waits = 0, 1
    while at <= waits:
        stepped: list[Stepped] = []

        async def run(app: App, at: int = at, stepped: list[Stepped] = stepped) -> Any:
            async def steps() -> Any:
                stepped.append(Stepped(ask(app), at, late=late))
                return await stepped[0]

            return await asyncio.create_task(steps())

        _, outcome = await episode(
            kind,
            tmp_path / str(at),
            run,
            prepare=lambda faults: faults.arm(0, None),
            settings={"memory_work": work},
        )
        waits = max(waits, stepped[0].waits) if at == 0 else waits
        if at and stepped[0].waits >= at:
            assert isinstance(outcome, asyncio.CancelledError), at
        at += 1
    assert waits > 10


async def error() -> None:
    raise RuntimeError("the provider is down")


async def hang() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("wrong", ["error", "hang", "cancel"])
@pytest.mark.parametrize("kind", STORES)
async def test_a_model_goes_wrong_at_any_of_its_calls(tmp_path: Path, kind: str, wrong: str) -> None:
    at, calls = 0, 1
    while at <= calls:
        begun = 0

        async def run(app: App, at: int = at) -> Any:
            nonlocal begun
            begun = fault_desk.desk.calls
            reached = asyncio.Event()

            async def stick() -> None:
                reached.set()
                await asyncio.Event().wait()

            fault_desk.desk.at = begun + at if at else 0
            fault_desk.desk.wrong = {"error": error, "hang": hang, "cancel": stick}[wrong]
            if wrong != "cancel" or not at:
                return await ask(app, timeout=0.05 if wrong == "hang" and at else None)
            task = asyncio.create_task(ask(app))
            waiting = asyncio.create_task(reached.wait())
            await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            task.cancel()
            return await task

        _, outcome = await episode(
            kind, tmp_path / str(at), run, prepare=lambda faults: faults.arm(0, None), settings={"memory_timeout": 0.05}
        )
        if at == 0:
            calls = outcome and len([u for u in outcome.usage if u.purpose != "tool"])
            assert calls >= 5
        elif wrong == "cancel":
            assert isinstance(outcome, asyncio.CancelledError), at
        else:
            assert isinstance(outcome, AgbossError) or outcome.status is TernStatus.ANSWERED, at
        at += 1
