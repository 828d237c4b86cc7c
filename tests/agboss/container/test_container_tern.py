"""What lives for one Tern: opened in order, one for each, and closed however the Tern ends."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import pytest

from agboss import (
    ActionContext,
    AnswerFinish,
    InjectionToken,
    TaskStart,
    TernStatus,
    action,
    chain,
    injectable,
    provide_factory,
    workflow,
)
from agboss.testing import MakeApp

CONNECTION = InjectionToken[Any]("CONNECTION")
SESSION = InjectionToken[Any]("SESSION")


def flow_of(node: type[Any], *providers: Any) -> type[Any]:
    @workflow(name="w", flow=[chain(TaskStart, node, AnswerFinish)], providers=providers)
    class Work: ...

    return Work


class Unit:
    """A unit of work of one Tern."""

    def __init__(self, log: list[str]) -> None:
        self.log = log

    async def __aenter__(self) -> Unit:
        self.log.append("begin")
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.log.append("commit" if kind is None else f"rollback {kind.__name__}")


def unit_flow(log: list[str], run: Any) -> type[Any]:
    @injectable(scope="tern")
    class Repository:
        def __init__(self, unit: Annotated[Unit, SESSION]) -> None:
            self.unit = unit

    class Outer:
        def __init__(self, repository: Repository) -> None:
            self.unit = repository.unit

    def outer(repository: Repository) -> Outer:
        return Outer(repository)

    @action
    @injectable(deps=[CONNECTION], scope="tern")
    class Work:
        def __init__(self, outer: Outer) -> None:
            self.outer = outer

        async def run(self, ctx: ActionContext) -> str:
            return await run(self.outer.unit, ctx)

    return flow_of(
        Work,
        provide_factory(CONNECTION, outer, scope="tern"),  # stands before what it needs
        provide_factory(SESSION, lambda: Unit(log), scope="tern"),
    )


async def test_a_terns_resources_open_in_order_and_close_at_its_end(agboss_app: MakeApp) -> None:
    log: list[str] = []
    units: list[Unit] = []

    async def run(unit: Unit, ctx: ActionContext) -> str:
        units.append(unit)
        if ctx.task == "fail":
            raise ValueError("boom")
        return "ok"

    async with agboss_app(unit_flow(log, run)) as app:
        await app.execute("one")
        assert log == ["begin", "commit"]
        with pytest.raises(Exception, match="boom"):
            await app.execute("fail")
    assert log == ["begin", "commit", "begin", "rollback TernFailedError"]
    assert units[0] is not units[1]


async def test_a_terns_resources_close_when_it_is_cancelled(agboss_app: MakeApp) -> None:
    log: list[str] = []
    running = asyncio.Event()

    async def run(unit: Unit, ctx: ActionContext) -> str:
        running.set()
        await asyncio.Event().wait()
        return ""

    async with agboss_app(unit_flow(log, run)) as app:
        task = asyncio.create_task(app.execute("Go", thread="t", create_thread=True))
        await running.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert log == ["begin", "rollback CancelledError"]


async def test_two_terns_at_once_get_two_instances(agboss_app: MakeApp) -> None:
    log: list[str] = []
    units: list[Unit] = []
    both = asyncio.Event()

    async def run(unit: Unit, ctx: ActionContext) -> str:
        units.append(unit)
        if len(units) == 2:
            both.set()
        await both.wait()
        return "ok"

    async with agboss_app(unit_flow(log, run)) as app:
        await asyncio.gather(app.execute("a"), app.execute("b"))
    assert units[0] is not units[1]
    assert sorted(log) == ["begin", "begin", "commit", "commit"]


async def test_a_tern_whose_resource_does_not_open_is_stored_as_failed(agboss_app: MakeApp) -> None:
    def fail() -> Unit:
        raise RuntimeError("no unit")

    @action
    @injectable(scope="tern")
    class Work:
        def __init__(self, unit: Annotated[Unit, SESSION]) -> None: ...

        async def run(self, ctx: ActionContext) -> str:
            return ""

    async with agboss_app(flow_of(Work, provide_factory(SESSION, fail, scope="tern"))) as app:
        with pytest.raises(Exception, match="RuntimeError"):
            await app.execute("Go", thread="t", create_thread=True)
        assert (await app.threads.get("t")).terns[0].status is TernStatus.FAILED
