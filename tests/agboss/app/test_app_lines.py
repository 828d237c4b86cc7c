"""Lines within a process and tickets over processes: nobody blocks anybody, no ticket is left, no repeat interrupts."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agboss import (
    App,
    AppStateError,
    ModelReply,
    ModelRequest,
    ModelUsage,
    TernStatus,
    ThreadBusyError,
    agent,
    create_app,
    tool,
)
from agboss.errors import StoreLockedError
from agboss_memory import MemoryStore, SqliteStore, Store, ToolCall
from agboss_memory.stores.contract import Admission, Admitted, Enqueue
from agboss_memory.testing.store_requests import admission, later

KINDS = ("memory", "sqlite")


class Gated:
    """Waits in the task ``hang`` until it is let go; counts its calls."""

    def __init__(self) -> None:
        self.inside = asyncio.Event()
        self.go = asyncio.Event()
        self.calls = 0

    async def generate(self, request: ModelRequest) -> ModelReply:
        self.calls += 1
        task = request.messages[-1].content.rpartition("Task:\n")[2]
        if task.endswith("pay"):
            return ModelReply(tool_calls=(ToolCall(id="c", name="pay", arguments="{}"),))
        if task == "hang":
            self.inside.set()
            await self.go.wait()
        return ModelReply(text=f"ok {task}", usage=ModelUsage(input_tokens=1, output_tokens=1))


@pytest.fixture
async def model() -> Gated:
    global stub
    stub = Gated()
    return stub


paid: list[str] = []
stub: Gated


@tool(needs_approval=True)
async def pay() -> str:
    """Pay."""
    paid.append("once")
    stub.inside.set()
    await stub.go.wait()
    return "paid"


@agent(name="writer", model="ollama:x", prompt="Write.", tools=[pay])
class Writer: ...


def stores(kind: str, folder: Path) -> tuple[Store, Store]:
    """Two stores on one log, as two processes have them."""
    if kind == "memory":
        one = MemoryStore()
        return one, one
    return tuple(SqliteStore(folder / "log.db", synchronous="NORMAL") for _ in range(2))  # type: ignore[return-value]


def app_of(store: Store, model: Gated, **settings: Any) -> App:
    return create_app(Writer, store=store, models={"ollama:x": model}, **settings)


async def tickets(app: App) -> int:
    """Tickets that are left in the store."""
    store: Any = (await app._lifecycle.runtime()).store  # pyright: ignore[reportPrivateUsage]
    if isinstance(store, MemoryStore):
        return len(store._tickets._tickets)  # pyright: ignore[reportPrivateUsage]

    def count(connection: sqlite3.Connection) -> int:
        return connection.execute("SELECT count(*) FROM tickets").fetchone()[0]

    return await store._connection.read(count)


@pytest.mark.parametrize("kind", KINDS)
async def test_two_users_of_one_thread_never_block_each_other(kind: str, tmp_path: Path, model: Gated):
    async with app_of(stores(kind, tmp_path)[0], model, queue_timeout=20) as app:
        await app.execute("first", thread="t", create_thread=True)

        async def talk(name: str, pause: int) -> None:
            for number in range(25):
                for _ in range(pause * (number % 7)):
                    await asyncio.sleep(0)
                await app.execute(f"{name}{number}", thread="t")

        async with asyncio.timeout(15):
            await asyncio.gather(talk("a", 0), talk("b", 1), talk("c", 3))
        assert (await app.execute("last", thread="t")).tern == 77
        assert await tickets(app) == 0


class SlowTickets(MemoryStore):
    """A ticket takes a while; meanwhile the thread becomes free."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.given = asyncio.Event()

    async def enqueue(self, request: Enqueue) -> int:
        ticket = await super().enqueue(request)
        self.asked.set()
        await self.given.wait()
        return ticket


async def test_who_came_first_is_served_first_also_while_it_gets_its_ticket(model: Gated):
    store = SlowTickets()
    async with app_of(store, model, queue_timeout=20) as app:
        first = asyncio.create_task(app.execute("hang", thread="t", create_thread=True))
        await model.inside.wait()
        second = asyncio.create_task(app.execute("second", thread="t"))
        await store.asked.wait()
        model.go.set()
        await first
        third = asyncio.create_task(app.execute("third", thread="t"))
        await asyncio.sleep(0)
        store.given.set()
        assert ((await second).tern, (await third).tern) == (2, 3)
        assert await tickets(app) == 0


async def test_a_ticket_that_a_locked_store_does_not_give_is_done_without(model: Gated):
    class Locked(MemoryStore):
        async def enqueue(self, request: Enqueue) -> int:
            raise StoreLockedError("store.locked", "another process writes", "try again")

    async with app_of(Locked(), model) as app:
        first = asyncio.create_task(app.execute("hang", thread="t", create_thread=True))
        await model.inside.wait()
        second = asyncio.create_task(app.execute("second", thread="t"))
        await asyncio.sleep(0)
        model.go.set()
        assert ((await first).tern, (await second).tern) == (1, 2)


@pytest.mark.parametrize("gives_up", ["cancelled", "timed out"])
async def test_who_gives_up_while_the_store_is_locked_is_told_what_it_waits_for(gives_up: str, model: Gated):
    class Locked(MemoryStore):
        async def leave(self, ticket: int) -> None:
            raise StoreLockedError("store.locked", "another process writes", "try again")

    async with app_of(Locked(), model, queue_timeout=0.01 if gives_up == "timed out" else 60) as app:
        first = asyncio.create_task(app.execute("hang", thread="t", create_thread=True))
        await model.inside.wait()
        second = asyncio.create_task(app.execute("second", thread="t"))
        await asyncio.sleep(0)
        if gives_up == "cancelled":
            second.cancel()
        with pytest.raises(asyncio.CancelledError if gives_up == "cancelled" else ThreadBusyError):
            await second
        model.go.set()
        await first


async def left_running(store: Store, thread: str = "t") -> None:
    """A Tern whose process is gone."""
    await store.open()
    await store.admit(admission("hi", workflow="writer", thread=thread, start="task-start", now=later(-1000)))
    await store.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("policy", ["enqueue", "interrupt"])
async def test_recoveries_at_once_leave_no_ticket_and_cancel_nothing(
    kind: str, policy: Any, tmp_path: Path, model: Gated
):
    one, two = stores(kind, tmp_path)
    await left_running(one)
    async with app_of(one, model, thread_policy=policy) as a, app_of(two, model, thread_policy=policy) as b:
        found = await asyncio.gather(a.recover(), a.recover(), b.recover())
        assert [result.status for results in found for result in results] == [TernStatus.ANSWERED]
        assert await tickets(a) == 0
        assert (await b.execute("on", thread="t")).tern == 2


@pytest.mark.parametrize("kind", KINDS)
async def test_a_waiter_that_is_cancelled_before_its_admission_leaves_no_ticket(
    kind: str, tmp_path: Path, model: Gated, monkeypatch: pytest.MonkeyPatch
):
    async with app_of(stores(kind, tmp_path)[0], model) as app:
        runtime = await app._lifecycle.runtime()  # pyright: ignore[reportPrivateUsage]
        first = asyncio.create_task(app.execute("hang", thread="t", create_thread=True))
        await model.inside.wait()
        second = asyncio.create_task(app.execute("second", thread="t"))
        await settled(second)
        assert await tickets(app) == 1
        admit = runtime.store.admit

        async def cancelled(request: Admission) -> Admitted:
            second.cancel()
            await asyncio.sleep(0)
            return await admit(request)

        monkeypatch.setattr(runtime.store, "admit", cancelled)
        model.go.set()
        await first
        with pytest.raises(asyncio.CancelledError):
            await second
        assert await tickets(app) == 0


@asynccontextmanager
async def two_apps(kind: str, folder: Path, model: Gated, policy: str) -> AsyncGenerator[tuple[App, App]]:
    one, two = stores(kind, folder)
    async with app_of(one, model, thread_policy=policy) as a, app_of(two, model, thread_policy=policy) as b:
        yield a, b


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", [False, True], ids=["same-app", "another-app"])
@pytest.mark.parametrize("policy", ["enqueue", "interrupt", "reject"])
async def test_a_repeat_of_a_running_key_waits_for_it(
    kind: str, other: bool, policy: str, tmp_path: Path, model: Gated
):
    async with two_apps(kind, tmp_path, model, policy) as (a, b):
        first = asyncio.create_task(a.execute("hang", thread="t", create_thread=True, idempotency_key="k"))
        await model.inside.wait()
        again = asyncio.create_task(
            (b if other else a).execute("hang", thread="t", create_thread=True, idempotency_key="k")
        )
        await settled(again)
        model.go.set()
        results = await asyncio.gather(first, again)
        assert [(one.tern, one.answer) for one in results] == [(1, "ok hang")] * 2
        assert model.calls == 1
        assert await tickets(a) == 0


async def settled(task: asyncio.Task[Any]) -> None:
    """Let a Tern get as far as it can: it waits, or it has ended."""
    for _ in range(50):
        await asyncio.sleep(0.001)
        if task.done():
            return


@pytest.mark.parametrize("kind", KINDS)
async def test_a_repeat_of_an_answered_key_interrupts_nothing(kind: str, tmp_path: Path, model: Gated):
    async with two_apps(kind, tmp_path, model, "interrupt") as (a, b):
        await a.execute("paid before", thread="t", create_thread=True, idempotency_key="done")
        running = asyncio.create_task(a.execute("hang", thread="t"))
        await model.inside.wait()
        again = [asyncio.create_task(app.execute("paid before", thread="t", idempotency_key="done")) for app in (a, b)]
        for one in again:
            await settled(one)
        model.go.set()
        assert (await running).answer == "ok hang"
        assert [(await one).tern for one in again] == [1, 1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", [False, True], ids=["same-app", "another-app"])
async def test_the_same_decision_twice_interrupts_nothing(kind: str, other: bool, tmp_path: Path, model: Gated):
    paid.clear()
    async with two_apps(kind, tmp_path, model, "interrupt") as (a, b):
        asked = await a.execute("pay", thread="t", create_thread=True)
        assert asked.pause is not None
        id = asked.pause.id
        first = asyncio.create_task(a.resume("t", True, pause_id=id))
        await model.inside.wait()
        again = asyncio.create_task((b if other else a).resume("t", True, pause_id=id))
        await settled(again)
        model.go.set()
        assert {one.status for one in await asyncio.gather(first, again)} == {TernStatus.ANSWERED}
        assert paid == ["once"]


async def test_another_task_still_interrupts(model: Gated, tmp_path: Path):
    async with two_apps("sqlite", tmp_path, model, "interrupt") as (a, _):
        running = asyncio.create_task(a.execute("hang", thread="t", create_thread=True, idempotency_key="one"))
        await model.inside.wait()
        assert (await a.execute("two", thread="t", idempotency_key="two")).tern == 2
        with pytest.raises(Exception, match="cancelled"):
            await running


@pytest.mark.parametrize("ask", ["execute", "recover"])
async def test_an_app_that_closes_while_it_opens_says_so(ask: str, model: Gated):
    opens, go = asyncio.Event(), asyncio.Event()

    class OpensSlowly(MemoryStore):
        async def open(self) -> None:
            opens.set()
            await go.wait()

    app = app_of(OpensSlowly(), model)
    calls: dict[str, Callable[[], Awaitable[Any]]] = {"execute": lambda: app.execute("x"), "recover": app.recover}
    running = asyncio.ensure_future(calls[ask]())
    await opens.wait()
    closing_it = asyncio.create_task(app.aclose())
    await asyncio.sleep(0)
    go.set()
    await closing_it
    if ask == "execute":
        with pytest.raises(AppStateError) as closed:
            await running
        assert closed.value.code == "app.closed"
    else:
        assert await running == ()
