"""Values of the wrong kind at the border: refused at once by name and with the remedy, and nothing is lost."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from desks import MODEL, Helper, Models, desk, sum_up, yes
from hypothesis import given
from hypothesis import strategies as st

from agboss import (
    AgbossError,
    AgentRuntime,
    App,
    Attachment,
    Compaction,
    CopyError,
    Decision,
    DeclarationError,
    FunctionRouter,
    InvalidInputError,
    JevRouter,
    StoreUrlError,
    agent,
    create_app,
    injectable,
    provide,
    provide_class,
    provide_factory,
    router,
    tool,
    workflow,
    workflow_start,
)
from agboss.components.metadata import MOST, is_count, is_seconds
from agboss.server import make_server
from agboss.testing import ScriptedModels
from agboss_memory import (
    BaseMemoryStrategy,
    LlmMessageMapper,
    Memory,
    MemoryModel,
    MemoryStore,
    SlidingWindowStrategy,
    load_thread,
    open_store,
    strategy_for,
)


@pytest.fixture(params=["memory://", "sqlite"])
async def app(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[App]:
    store = f"sqlite:///{tmp_path / 'a.db'}" if request.param == "sqlite" else request.param
    async with create_app(desk(every=None), store=store, models=Models(yes, sum_up)) as opened:
        await opened.execute("first", thread="t", create_thread=True)
        yield opened


def odd(value: Any) -> Any:
    """What no type checker would let pass."""
    return value


def refused(error: AgbossError, code: str, told: str) -> None:
    assert error.code == code
    assert told in error.message
    assert error.hint


BAD_SECONDS: list[Any] = [10**400, 10**5000, float("nan"), -1, -0.5, "5", True, [], Decimal(5)]


class TestDurations:
    """Every duration: a number that a clock can be set to, else an error that names the parameter."""

    @pytest.mark.parametrize("seconds", BAD_SECONDS, ids=range(len(BAD_SECONDS)))
    async def test_a_run_does_not_begin(self, app: App, seconds: Any) -> None:
        calls: list[Callable[[], Any]] = [
            lambda: app.execute("hi", thread="t", timeout=seconds),
            lambda: app.stream("hi", thread="t", timeout=seconds).__aenter__(),
            lambda: app.resume("t", True, timeout=seconds),
            lambda: app.stream_resume("t", Decision(approved=True), timeout=seconds).__aenter__(),
        ]
        for call in calls:
            with pytest.raises(InvalidInputError) as raised:
                await call()
            refused(raised.value, "run.bad-timeout", "timeout=")
        assert [tern.number for tern in (await app.threads.get("t")).terns] == [1]

    @pytest.mark.parametrize("seconds", BAD_SECONDS, ids=range(len(BAD_SECONDS)))
    def test_nothing_is_declared_or_made_with_it(self, seconds: Any) -> None:
        with pytest.raises(InvalidInputError) as raised:
            create_app(desk(every=None), store="memory://", queue_timeout=seconds)
        refused(raised.value, "app.invalid", "queue_timeout=")
        with pytest.raises(DeclarationError) as declared:
            tool(name="step", timeout=seconds)(lambda: None)
        refused(declared.value, "declaration.bad-timeout", "timeout=")
        with pytest.raises(InvalidInputError) as served:
            make_server(create_app(desk(every=None), store="memory://"), grace=seconds)
        refused(served.value, "server.bad-setting", "grace=")
        if isinstance(seconds, Decimal):
            return  # what pydantic takes for a float
        with pytest.raises(ValueError, match="timeout"):
            JevRouter(model="typesafe/jev-1.13", timeout=seconds)

    @given(st.one_of(st.floats(), st.integers(), st.integers(min_value=10**300, max_value=10**320), st.booleans()))
    def test_what_counts_as_seconds_can_be_a_float_above_0(self, value: Any) -> None:
        if is_seconds(value):
            assert float(value) > 0
        assert is_seconds(value, zero=True) == (is_seconds(value) or (value == 0 and not isinstance(value, bool)))


class TestFlags:
    """A flag is True or False: the text ``"no"`` would count as True."""

    @pytest.mark.parametrize("flag", ["no", "", 0, 1, None])
    async def test_no_other_value_is_one(self, app: App, flag: Any) -> None:
        with pytest.raises(InvalidInputError) as raised:
            await app.execute("hi", thread="fresh", create_thread=flag)
        refused(raised.value, "run.bad-flag", f"create_thread={flag!r}")
        with pytest.raises(InvalidInputError) as streamed:
            app.stream("hi", thread="fresh", create_thread=flag)
        refused(streamed.value, "run.bad-flag", f"create_thread={flag!r}")
        with pytest.raises(InvalidInputError) as asked:
            await app.memory.summaries("t", all_states=flag)
        refused(asked.value, "run.bad-flag", f"all_states={flag!r}")
        assert [info.id for info in await app.threads.list()] == ["t"]

    @pytest.mark.parametrize("flag", ["no", "", 0, 1, None])
    def test_no_other_value_makes_an_app(self, flag: Any) -> None:
        for name in ("offline", "record_views"):
            with pytest.raises(InvalidInputError) as raised:
                create_app(desk(every=None), store="memory://", **{name: flag})
            refused(raised.value, "app.invalid", f"{name}={flag!r}")
        with pytest.raises(InvalidInputError) as defined:
            AgentRuntime([], offline=flag)
        refused(defined.value, "app.invalid", f"offline={flag!r}")
        with pytest.raises(InvalidInputError) as served:
            make_server(create_app(desk(every=None), store="memory://"), recover=flag)
        refused(served.value, "server.bad-setting", f"recover={flag!r}")
        with pytest.raises(DeclarationError) as declared:
            agent(model=MODEL, memory_config={"kind": "full"}, shares_thread=flag)(type("Thing", (), {}))
        refused(declared.value, "declaration.invalid", f"shares_thread={flag!r}")


class TestImports:
    """``app.threads.import_`` reads lines of text."""

    @pytest.mark.parametrize("given", [None, 5, "abc", "", b"{}", {"type": "thread"}, App])
    async def test_what_has_no_lines(self, app: App, given: Any) -> None:
        with pytest.raises(InvalidInputError) as raised:
            await app.threads.import_(given)
        refused(raised.value, "copy.no-lines", type(given).__name__)
        with pytest.raises(InvalidInputError):
            load_thread(given)

    @pytest.mark.parametrize("line", [1, None, ["x"], {"type": "thread"}, object()])
    async def test_a_line_that_is_no_text(self, app: App, line: Any) -> None:
        whole = list((await app.threads.export("t")).lines())
        for number, lines in ((1, [line]), (2, [whole[0], line, *whole[1:]])):
            with pytest.raises(CopyError) as raised:
                await app.threads.import_(lines, thread="other")
            refused(raised.value, "copy.malformed", f"Line {number} ")
        assert [info.id for info in await app.threads.list()] == ["t"]

    async def test_lines_of_bytes_are_text_too(self, app: App) -> None:
        lines = [line.encode() for line in (await app.threads.export("t")).lines()]
        copied = await app.threads.import_(lines, thread="other")  # type: ignore[arg-type]
        assert [tern.task for tern in copied.terns] == ["first"]


class TestReaders:
    """What is asked for by a name or number that is not there is told, never answered with nothing."""

    @pytest.mark.parametrize("number", [2, 99, MOST])
    async def test_a_turn_that_is_not_there(self, app: App, number: int) -> None:
        for call in (app.threads.calls, app.threads.decisions):
            with pytest.raises(InvalidInputError) as raised:
                await call("t", number)
            refused(raised.value, "memory.no-such-tern", f"no turn {number}")
            assert await call("t", 1) == ()
        with pytest.raises(InvalidInputError) as explained:
            await app.memory.explain("t", tern=number)
        refused(explained.value, "memory.no-such-tern", f"no turn {number}")

    @pytest.mark.parametrize("number", [0, -1, "a", "1", True, None, 1.0, 2**63, 2**70, []])
    async def test_a_number_that_is_none(self, app: App, number: Any) -> None:
        for call in (app.threads.calls, app.threads.decisions):
            with pytest.raises(InvalidInputError) as raised:
                await call("t", number)
            refused(raised.value, "threads.bad-count", f"tern={number!r}")
        if number is None:
            return
        with pytest.raises(InvalidInputError) as explained:
            await app.memory.explain("t", tern=number)
        refused(explained.value, "memory.no-such-tern", "turn")
        with pytest.raises(InvalidInputError) as fetched:
            await app.memory.tool_result("t", number)
        refused(fetched.value, "memory.no-such-result", repr(number))
        if number == 0:
            return
        counted: list[Callable[[], Any]] = [
            lambda: app.threads.list(limit=number),
            lambda: app.threads.get("t", number),
            lambda: app.threads.terns("t", before=number),
            lambda: app.memory.message("t", number),
            lambda: app.memory.undo("t", summary=number),
            lambda: app.memory.summaries("t", limit=number),
            lambda: app.memory.explain("t", call=number),
            lambda: app.memory.what_if("t", {"kind": "full"}, last=number),
        ]
        for ask in counted:
            with pytest.raises(InvalidInputError) as refusal:
                await ask()
            refused(refusal.value, "threads.bad-count", f"={number!r}")

    @pytest.mark.parametrize("name", ["nobody", 5, [], {}, Helper])
    async def test_an_agent_that_is_not_there(self, app: App, name: Any) -> None:
        asks = app.memory.view, app.memory.compact, app.memory.undo, app.memory.summaries, app.memory.explain
        for ask in asks:
            with pytest.raises(InvalidInputError) as raised:
                await ask("t", name)
            refused(raised.value, "memory.which-agent", "is unknown")

    async def test_a_listener_that_cannot_be_called_pays_for_nothing(self, app: App) -> None:
        with pytest.raises(InvalidInputError) as raised:
            await app.memory.compact("t", progress=5)  # type: ignore[arg-type]
        refused(raised.value, "memory.bad-progress", "progress=5")

    @pytest.mark.parametrize("name", ["nobody", 5, [], {}])
    async def test_a_start_that_is_not_there(self, app: App, name: Any) -> None:
        with pytest.raises(InvalidInputError) as raised:
            app.start(name)
        refused(raised.value, "run.wrong-start", repr(name))

    @given(st.one_of(st.integers(), st.integers(min_value=2**62), st.booleans(), st.floats(), st.text()))
    def test_what_counts_fits_a_store(self, value: Any) -> None:
        if is_count(value):
            assert type(value) is int
            assert 0 <= value <= MOST < 2**63


class Answering:
    async def generate(self, request: Any) -> Any: ...


class Unfinished(BaseMemoryStrategy):
    """Has no ``build_context``."""


class OwnMapper(LlmMessageMapper): ...


class Clock: ...


class TestClassesAndObjects:
    """A class where an object is meant, and the other way round: refused where it is named, with the remedy."""

    @pytest.mark.parametrize(
        ("argument", "told", "remedy"),
        [
            ({"models": {MODEL: Answering}}, f"models['{MODEL}']", "call it: Answering(...)"),
            ({"models": ScriptedModels}, "models=", "call it: ScriptedModels()"),
            ({"store": MemoryStore}, "store=", "MemoryStore()"),
        ],
    )
    def test_of_an_app(self, argument: dict[str, Any], told: str, remedy: str) -> None:
        arguments: dict[str, Any] = {"store": "memory://", **argument}
        for make in (lambda: create_app(desk(every=None), **arguments), lambda: AgentRuntime([], **arguments)):
            with pytest.raises(InvalidInputError) as raised:
                make()
            refused(raised.value, "app.invalid", told)
            assert remedy in raised.value.hint

    @pytest.mark.parametrize(
        ("declare", "code", "told"),
        [
            (lambda: agent(model=odd(Answering)), "declaration.invalid", "call it: Answering(...)"),
            (lambda: agent(memory_strategy=odd(Unfinished)), "declaration.bad-strategy", "build_context"),
            (lambda: agent(memory_strategy=odd(Clock)), "declaration.bad-strategy", "BaseMemoryStrategy"),
            (lambda: agent(memory_strategy=odd(Clock())), "declaration.bad-strategy", "BaseMemoryStrategy"),
            (lambda: agent(tools=odd(Clock)), "declaration.invalid", "tools=[...]"),
            (lambda: agent(tools=odd("fetch_tool_result")), "declaration.invalid", "tools=[...]"),
            (lambda: agent(tools=odd(None)), "declaration.invalid", "tools=[...]"),
            (lambda: agent(tools=odd([Clock()])), "declaration.bad-tool", "run()"),
            (lambda: agent(examples=odd("one text")), "declaration.invalid", "examples=[...]"),
            (lambda: agent(examples=odd([5])), "declaration.invalid", "examples holds 5"),
            (lambda: router(router=odd(FunctionRouter)), "declaration.invalid", "call it: FunctionRouter(...)"),
            (lambda: router(router={"kind": "function", "function": Clock}), "declaration.invalid", "Clock()"),
            (lambda: workflow(flow=[], compaction=odd(Compaction)), "declaration.invalid", "call it: Compaction(...)"),
            (lambda: workflow(flow=[], providers=odd(Clock)), "declaration.invalid", "providers=[...]"),
            (lambda: workflow(flow=[], providers=odd([Clock()])), "declaration.bad-provider", "provide_class"),
            (lambda: provide(Clock, odd(Clock)), "declaration.bad-provider", "provide_class(Clock, Clock)"),
            (lambda: provide(LlmMessageMapper, odd(OwnMapper)), "declaration.bad-provider", "call it"),
        ],
    )
    def test_of_a_declaration(self, declare: Any, code: str, told: str) -> None:
        def declared() -> None:
            declare()(type("Thing", (), {}))

        with pytest.raises(DeclarationError) as raised:
            declared()
        assert raised.value.code == code
        assert told in str(raised.value)

    @pytest.mark.parametrize("value", [5, [0], object(), True, 10**5000], ids=range(5))
    @pytest.mark.parametrize(
        ("declare", "name", "fixed", "code"),
        [
            (agent, "name", {}, "declaration.bad-name"),
            (router, "name", {}, "declaration.bad-name"),
            (workflow, "name", {"flow": []}, "declaration.bad-name"),
            (tool, "name", {}, "declaration.bad-name"),
            (workflow_start, "name", {}, "declaration.bad-name"),
            (agent, "description", {}, "declaration.invalid"),
            (agent, "prompt", {}, "declaration.invalid"),
            (agent, "input", {}, "declaration.bad-model"),
            (agent, "output", {}, "declaration.bad-model"),
            (workflow, "prompt_variables", {"flow": []}, "declaration.invalid"),
            (provide_factory, "factory", {"key": Clock}, "declaration.bad-provider"),
            (provide_class, "cls", {"key": Clock}, "declaration.bad-provider"),
            (injectable, "scope", {}, "declaration.invalid"),
        ],
    )
    def test_of_a_value_that_fits_nowhere(
        self, declare: Any, name: str, fixed: dict[str, Any], code: str, value: Any
    ) -> None:
        def run(self: Any) -> str:
            """Run."""
            return ""

        def declared() -> None:
            declare(**fixed, **{name: value})(type("Thing", (), {"run": run}))

        with pytest.raises(DeclarationError) as raised:
            declared()
        refused(raised.value, code, "")
        with pytest.raises(DeclarationError) as placed:
            agent(value)
        refused(placed.value, "declaration.bad-target", "cannot be declared as agent")

    def test_of_a_url_a_path_and_a_configuration(self) -> None:
        values: list[Any] = [None, 5, [0]]
        for value in values:
            with pytest.raises(StoreUrlError):
                open_store(odd(value))
            with pytest.raises(InvalidInputError) as path:
                Attachment.from_path(odd(value))
            refused(path.value, "attachment.no-file", repr(value))
            with pytest.raises(InvalidInputError) as config:
                strategy_for(odd(value))
            refused(config.value, "memory-config.invalid", repr(value))

    @pytest.mark.parametrize(
        ("argument", "told"),
        [
            ({"window": "8000"}, "whole number"),
            ({"window": True}, "whole number"),
            ({"reply_reserve": -1}, "whole number"),
            ({"schemas": "one"}, "schemas=[...]"),
            ({"accepts": None}, "accepts=[...]"),
            ({"max_result_chars": 5}, "dict"),
            ({"store": MemoryStore}, "MemoryStore(...)"),
            ({"store": None}, "append()"),
            ({"model": MemoryModel}, "MemoryModel(...)"),
            ({"model": 5}, "generate()"),
            ({"counter": 5}, "count()"),
            ({"mapper": OwnMapper}, "OwnMapper(...)"),
        ],
    )
    def test_of_a_memory(self, argument: dict[str, Any], told: str) -> None:
        arguments: dict[str, Any] = {"store": MemoryStore(), **argument}
        with pytest.raises(InvalidInputError) as raised:
            Memory(**arguments)
        refused(raised.value, "memory.bad-argument", f"Memory: {next(iter(argument))}=")
        assert told in raised.value.hint

    async def test_a_source_that_gives_a_class(self) -> None:
        class Source(Models):
            def model_for(self, caller: Any, spec: Any) -> Any:
                return Answering

        async with create_app(desk(every=None), store="memory://", models=Source(yes, sum_up)) as app:
            with pytest.raises(AgbossError) as raised:
                await app.execute("hi", thread="t", create_thread=True)
            refused(raised.value, "model.no-model", "'helper'")
            assert await app.threads.list() == ()

    @pytest.mark.parametrize("definitions", [None, 5, {"name": "x"}, AgentRuntime])
    def test_definitions_that_are_none(self, definitions: Any) -> None:
        with pytest.raises(InvalidInputError) as raised:
            AgentRuntime(definitions)
        refused(raised.value, "app.invalid", "definitions=")

    @pytest.mark.parametrize("name", ["allowed_hosts", "allowed_origins"])
    def test_a_server_takes_lists_of_names(self, name: str) -> None:
        arguments: dict[str, Any] = {name: "example.org"}
        with pytest.raises(InvalidInputError) as raised:
            make_server(create_app(desk(every=None), store="memory://"), **arguments)
        refused(raised.value, "server.bad-setting", f"{name}='example.org'")

    def test_what_is_right_stays_right(self) -> None:
        assert provide(type, Clock).target is Clock
        agent(memory_strategy=SlidingWindowStrategy)(type("One", (), {}))
        agent(memory_strategy=SlidingWindowStrategy(turns=2))(type("Two", (), {}))
        assert FunctionRouter(odd(lambda: "a")).function
