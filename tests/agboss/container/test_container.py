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
    action,
    chain,
    create_app,
    injectable,
    provide,
    provide_class,
    provide_factory,
    workflow,
)
from agboss.testing import MakeApp

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
