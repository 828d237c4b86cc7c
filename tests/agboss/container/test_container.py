"""What the container gives, when it opens it, and when it closes it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import pytest

from agboss import (
    ActionContext,
    AnswerFinish,
    AssemblyError,
    InjectionToken,
    TaskStart,
    TernStatus,
    action,
    agent,
    chain,
    create_app,
    injectable,
    provide,
    provide_class,
    provide_factory,
    workflow,
)
from agboss.testing import MakeApp, MockLlm, reply
from agboss_memory.contract import BaseMemoryStrategy, MemoryContext, MemoryModel, MemoryTurn, MemoryUpdate, MemoryView

MODEL = "openai:gpt-5-mini"
NAME = InjectionToken[str]("NAME")
COUNT = InjectionToken[int]("COUNT")
CONNECTION = InjectionToken[Any]("CONNECTION")
SESSION = InjectionToken[Any]("SESSION")


class Clock:
    def __init__(self) -> None:
        self.ticks = 7


def flow_of(node: type[Any], *providers: Any) -> type[Any]:
    @workflow(name="w", flow=[chain(TaskStart, node, AnswerFinish)], providers=providers)
    class Work: ...

    return Work


async def answer(work: type[Any], **arguments: Any) -> str:
    async with create_app(work, store="memory://", **arguments) as app:
        return (await app.execute("Go")).answer


async def test_tokens_deps_and_classes_are_filled() -> None:
    @action
    @injectable(deps=[NAME, Clock])
    class ByDeps:
        def __init__(self, name: object, clock: object) -> None:
            self.name, self.clock = name, clock

        async def run(self, ctx: ActionContext) -> str:
            assert isinstance(self.clock, Clock)
            return f"{self.name} {self.clock.ticks}"

    assert await answer(flow_of(ByDeps, provide(NAME, "pavel"))) == "pavel 7"


async def test_local_classes_and_string_annotations_are_filled() -> None:
    class Local:
        def __init__(self, clock: Clock, name: Annotated[str, NAME]) -> None:
            self.text = f"{name} {clock.ticks}"

    @action
    class ByHints:
        def __init__(self, local: Local, size: int = 5) -> None:
            self.text = f"{local.text} {size}"

        async def run(self, ctx: ActionContext) -> str:
            return self.text

    assert await answer(flow_of(ByHints, provide(NAME, "pavel"), Local)) == "pavel 7 5"


async def test_every_kind_of_factory_opens_in_order_and_closes_in_reverse() -> None:
    log: list[str] = []

    @asynccontextmanager
    async def session(connection: Annotated[str, CONNECTION]) -> AsyncGenerator[str]:
        log.append("session opened")
        yield f"session on {connection}"
        log.append("session closed")

    @asynccontextmanager
    async def connect(name: Annotated[str, NAME]) -> AsyncGenerator[str]:
        log.append("connection opened")
        yield f"connection of {name}"
        log.append("connection closed")

    async def name(count: Annotated[int, COUNT]) -> str:
        return f"n{count}"

    @action
    class Use:
        def __init__(self, session: Annotated[str, SESSION]) -> None:
            self.session = session

        async def run(self, ctx: ActionContext) -> str:
            return self.session

    work = flow_of(
        Use,
        provide_factory(SESSION, session),
        provide_factory(CONNECTION, connect),
        provide_factory(NAME, name),
        provide_factory(COUNT, lambda: 3),
    )
    assert await answer(work) == "session on connection of n3"
    assert log == ["connection opened", "session opened", "session closed", "connection closed"]


async def test_a_failed_opening_is_told_when_everything_is_closed() -> None:
    log: list[str] = []

    @asynccontextmanager
    async def connect() -> AsyncGenerator[str]:
        log.append("opened")
        try:
            yield "c"
        finally:
            await asyncio.sleep(0)
            log.append("closed")

    def fail(connection: Annotated[str, CONNECTION]) -> str:
        raise RuntimeError("no session")

    @action
    class Use:
        def __init__(self, session: Annotated[str, SESSION]) -> None: ...

        async def run(self, ctx: ActionContext) -> str:
            return ""

    work = flow_of(Use, provide_factory(CONNECTION, connect), provide_factory(SESSION, fail))
    app = create_app(work, store="memory://")
    with pytest.raises(RuntimeError, match="no session"):
        await app.execute("Go")
    assert log == ["opened", "closed"]
    await app.aclose()


async def test_resources_close_when_a_tern_fails(agboss_app: MakeApp) -> None:
    closed = False

    @asynccontextmanager
    async def connect() -> AsyncGenerator[str]:
        nonlocal closed
        yield "c"
        closed = True

    @action
    class Fail:
        def __init__(self, connection: Annotated[str, CONNECTION]) -> None: ...

        async def run(self, ctx: ActionContext) -> str:
            raise ValueError("boom")

    async with agboss_app(flow_of(Fail, provide_factory(CONNECTION, connect))) as app:
        with pytest.raises(Exception, match="boom"):
            await app.execute("Go")
        assert not closed
    assert closed


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


@action
class Teller:
    """Tells the name."""

    def __init__(self, name: Annotated[str, NAME], clock: Clock) -> None:
        self.name, self.clock = name, clock

    async def run(self, ctx: ActionContext) -> str:
        self.clock.ticks += 1
        return f"{self.name} {self.clock.ticks}"


async def test_create_app_replaces_providers_by_key() -> None:
    class Fixed(Clock):
        def __init__(self) -> None:
            self.ticks = 0

    work = flow_of(Teller, provide(NAME, "workflow"))
    assert await answer(work, providers=[provide(NAME, "app"), provide_class(Clock, Fixed)]) == "app 1"


async def test_two_apps_never_share() -> None:
    work = flow_of(Teller, provide(NAME, "x"))
    async with create_app(work, store="memory://") as one, create_app(work, store="memory://") as two:
        assert (await one.execute("a")).answer == "x 8"
        assert (await two.execute("a")).answer == "x 8"
        assert (await one.execute("a")).answer == "x 9"


def codes(work: type[Any], **arguments: Any) -> tuple[tuple[str, ...], str]:
    with pytest.raises(AssemblyError) as caught:
        create_app(work, store="memory://", **arguments)
    return caught.value.codes, str(caught.value)


def test_a_missing_provider_shows_its_path_and_near_misses() -> None:
    other = InjectionToken[str]("NAMES")
    found, text = codes(flow_of(Teller, provide(other, "x")))
    assert found == ("di.missing-provider",)
    assert "nothing provides NAME, needed by action teller" in text
    assert "└ NAME" in text
    assert "provided under a similar name: NAMES" in text


def test_a_captive_dependency_is_refused() -> None:
    work = flow_of(Teller, provide_factory(NAME, lambda: "x", scope="tern"))
    found, text = codes(work)
    assert found == ("di.captive",)
    assert "lives for one Tern" in text


def test_a_cycle_is_refused() -> None:
    def name(count: Annotated[int, COUNT]) -> str:
        return ""

    def count(name: Annotated[str, NAME]) -> int:
        return 0

    found, text = codes(flow_of(Teller, provide_factory(NAME, name), provide_factory(COUNT, count)))
    assert "di.cycle" in found
    assert "NAME -> COUNT -> NAME" in text


def test_a_key_provided_twice_is_refused() -> None:
    found, _ = codes(flow_of(Teller, provide(NAME, "a"), provide(NAME, "b")))
    assert found == ("di.duplicate-provider",)


class Learning(BaseMemoryStrategy):
    """Asks its model after each turn."""

    def __init__(self, model: MemoryModel) -> None:
        self.model = model
        self.said: list[str] = []

    def build_context(self, context: MemoryContext) -> MemoryView:
        return MemoryView(recalled=tuple(self.said))

    async def update_memory(self, turn: MemoryTurn) -> MemoryUpdate:
        self.said.append(await self.model.generate(f"Learn: {turn.tern.task}"))
        return MemoryUpdate()


@agent(model=MODEL, memory_strategy=Learning)
class Pupil:
    """Learns."""


async def test_a_strategys_model_is_scripted_and_booked(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Pupil).then_return(reply("hello"), reply("again"))
    mock_llm(Learning).then_return(reply("a fact"), reply("more"))
    async with agboss_app(Pupil) as app:
        first = await app.execute("Hi")
        await app.execute("Hm", thread=first.thread)
    assert [(record.caller, record.purpose) for record in first.usage] == [("pupil", "answer"), ("Learning", "memory")]
    assert mock_llm(Learning).requests[0].text == "Learn: Hi"
    assert "a fact" in mock_llm(Pupil).requests[1].text


class Extractor:
    def __init__(self, model: MemoryModel) -> None:
        self.model = model


class Indirect(BaseMemoryStrategy):
    def __init__(self, extractor: Extractor) -> None:
        self.extractor = extractor

    def build_context(self, context: MemoryContext) -> MemoryView:
        return MemoryView()

    async def update_memory(self, turn: MemoryTurn) -> MemoryUpdate:
        await self.extractor.model.generate("Extract")
        return MemoryUpdate()


async def test_a_model_behind_another_class_is_scripted_under_that_class(
    agboss_app: MakeApp, mock_llm: MockLlm
) -> None:
    @agent(model=MODEL, memory_strategy=Indirect)
    class Clerk:
        """Files."""

    mock_llm(Clerk).then_return(reply("ok"))
    mock_llm(Extractor).then_return(reply("x"))
    async with agboss_app(Clerk) as app:
        result = await app.execute("Hi")
    assert [record.caller for record in result.usage] == ["clerk", "Extractor"]
