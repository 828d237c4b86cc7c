"""Code of other people whose errors, values and results cannot be read: told by kind and by name, as any other fault."""

from __future__ import annotations

import logging
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NoReturn

import pytest
from desks import MODEL, FaultyStore, Models, desk, sum_up, yes
from hypothesis import given
from hypothesis import strategies as st

from agboss import (
    ActionContext,
    AgbossError,
    AnswerFinish,
    FunctionRouter,
    InvalidInputError,
    RouterError,
    StrategyError,
    TaskStart,
    TernFailedError,
    ToolContext,
    action,
    agent,
    chain,
    create_app,
    from_,
    provide_factory,
    router,
    tool,
    workflow,
)
from agboss.routers import RouteResult
from agboss.testing import MakeApp, MockLlm, call_tool
from agboss_memory import (
    BaseMemoryStrategy,
    CompressReport,
    LlmMessageMapper,
    MemoryUpdate,
    MemoryView,
    UsageRecord,
)
from agboss_memory.wording import quoted, text_of, told


class Wordless(Exception):
    """Neither its text nor its repr can be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    def __repr__(self) -> str:
        raise SystemExit(3)


class Numbered(Exception):
    """Its text is none."""

    def __str__(self) -> str:
        return 5  # type: ignore[return-value]


class Shy:
    """A value whose repr raises."""

    def __repr__(self) -> str:
        raise KeyError("no repr")


ERRORS = [Wordless, Numbered]


class TestWords:
    """The functions that all messages are made with."""

    @pytest.mark.parametrize("kind", ERRORS)
    def test_an_error_without_text_is_told_by_its_kind(self, kind: type[Exception]) -> None:
        assert told(kind()) == kind.__name__
        assert text_of(kind()) == ""
        assert told(ValueError("no such day")) == "ValueError: no such day"
        assert told(ValueError()) == "ValueError"

    def test_a_value_without_repr_is_told_by_its_type(self) -> None:
        assert quoted(Shy()) == "<Shy that cannot be shown>"
        assert quoted(Wordless()) == "<Wordless that cannot be shown>"
        assert quoted(10**5000) == "<int that cannot be shown>"
        assert quoted("x" * 500, 10) == "'xxxxxxxxx"

    @given(st.one_of(st.none(), st.text(), st.integers(), st.floats(), st.lists(st.text())))
    def test_all_else_is_told_as_python_does(self, value: Any) -> None:
        assert quoted(value) == repr(value)[:80]
        assert text_of(value) == str(value)


@tool
async def look(what: str) -> str:
    """Look."""
    _fail()


@tool(needs_approval=lambda args, ctx: _fail())
async def guarded(what: str) -> str:
    """Look after a question."""
    return "seen"


FAULT: dict[str, type[Exception]] = {"kind": Wordless}


def _fail() -> NoReturn:
    error = FAULT["kind"]()
    raise error


@agent(name="seer", model=MODEL, prompt="x", tools=[look, guarded])
class Seer: ...


@pytest.fixture(params=ERRORS)
def fault(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(FAULT, "kind", request.param)
    return request.param.__name__


class TestErrorsWithoutText:
    """Wherever an exception becomes text, its kind stands for a text that cannot be had."""

    async def test_of_a_tool(self, agboss_app: MakeApp, mock_llm: MockLlm, fault: str) -> None:
        script = mock_llm(Seer).then_return(call_tool(look, what="a"), "Nothing.")
        async with agboss_app(Seer) as app:
            assert (await app.execute("hi", thread="t", create_thread=True)).answer == "Nothing."
        assert script.requests[1].messages[-1].content == f"Error: tool look failed: {fault}"

    async def test_of_a_guard(self, agboss_app: MakeApp, mock_llm: MockLlm, fault: str) -> None:
        mock_llm(Seer).then_return(call_tool(guarded, what="a"), "Done.")
        async with agboss_app(Seer) as app:
            paused = await app.execute("hi", thread="t", create_thread=True)
            assert paused.pause is not None
            assert any(line.endswith(f"a person is asked: {fault}") for line in paused.warnings)
            assert (await app.resume("t", True)).answer == "Done."

    async def test_of_a_model(self, fault: str) -> None:
        async def failing(_: Any) -> str:
            _fail()

        async with create_app(desk(every=None), store="memory://", models=Models(failing, sum_up)) as app:
            with pytest.raises(TernFailedError) as raised:
                await app.execute("hi", thread="t", create_thread=True)
            assert raised.value.code == "run.failed"
            assert raised.value.message.endswith(f"failed in 'helper': {fault}")
            (tern,) = (await app.threads.get("t")).terns
            assert tern.status == "failed"

    async def test_of_a_summariser(self, fault: str) -> None:
        async def failing(_: Any) -> str:
            _fail()

        async with create_app(desk(every=1), store="memory://", models=Models(yes, failing)) as app:
            result = await app.execute("hi", thread="t", create_thread=True)
            assert any(fault in line for line in result.warnings)

    async def test_of_a_strategy(self, fault: str) -> None:
        class Failing(BaseMemoryStrategy):
            def build_context(self, context: Any) -> MemoryView:
                if context.task == "fail":
                    _fail()
                return MemoryView()

            async def update_memory(self, turn: Any) -> MemoryUpdate:
                _fail()

            async def compress(self, context: Any) -> CompressReport:
                _fail()

        async with create_app(_with(Failing), store="memory://", models=Models(yes, sum_up)) as app:
            result = await app.execute("hi", thread="t", create_thread=True)
            assert any(line.endswith(f": {fault}") for line in result.warnings)
            with pytest.raises(StrategyError) as raised:
                await app.execute("fail", thread="t")
            assert raised.value.code == "memory.build-context"
            assert raised.value.message.endswith(f"failed in build_context: {fault}")
            with pytest.raises(StrategyError) as asked:
                await app.memory.compact("t")
            assert asked.value.code == "memory.compress"
            assert asked.value.message.endswith(f"failed in compress: {fault}")

    async def test_of_a_mapper(self, fault: str) -> None:
        class Failing(LlmMessageMapper):
            async def map(self, request: Any) -> Any:
                _fail()

        async with create_app(
            desk(every=None), store="memory://", models=Models(yes, sum_up), llm_message_mapper=Failing
        ) as app:
            with pytest.raises(StrategyError) as raised:
                await app.execute("hi", thread="t", create_thread=True)
            assert raised.value.message.endswith(fault)

    async def test_of_an_action_and_a_router(self, fault: str) -> None:
        @action(name="step")
        class Step:
            async def run(self, context: ActionContext) -> Any:
                return Answered() if context.task == "value" else _fail()

        class Answered:
            def __str__(self) -> str:
                _fail()

        def pick(request: Any) -> Any:
            return _fail() if request.task == "route" else Shy() if request.task == "shy" else Step

        @router(name="picker", router=FunctionRouter(pick))
        class Picker: ...

        @workflow(
            name="acting",
            flow=[chain(TaskStart, Picker), from_(Picker).routes(Step, AnswerFinish), chain(Step, AnswerFinish)],
        )
        class Acting: ...

        async with create_app(Acting, store="memory://", models=Models(yes, sum_up)) as app:
            for task, kind, code, end in (
                ("act", TernFailedError, "action.failed", f"action 'step' failed: {fault}"),
                ("value", TernFailedError, "run.failed", f"failed in 'step': {fault}"),
                ("route", RouterError, "router.failed", f"raised {fault}"),
                ("shy", RouterError, "router.not-a-component", "component of the flow"),
            ):
                with pytest.raises(kind) as raised:
                    await app.execute(task, thread=task, create_thread=True)
                assert raised.value.code == code
                assert raised.value.message.endswith(end)

    async def test_of_a_resource(self, fault: str) -> None:
        class Resource:
            async def __aenter__(self) -> Resource:
                return self

            async def __aexit__(self, *_: object) -> None:
                _fail()

        @workflow(
            name="holding",
            flow=chain(TaskStart, Seer, AnswerFinish),
            providers=[provide_factory(Resource, Resource, scope="tern")],
        )
        class Holding: ...

        async with create_app(Holding, store="memory://", models=Models(yes, sum_up)) as app:
            result = await app.execute("hi")
            assert result.warnings == (f"a resource of the turn could not be closed: {fault}",)

    async def test_a_route_that_is_no_text(self) -> None:
        @router(name="odd", router=FunctionRouter(lambda _: RouteResult(next=Shy())))  # type: ignore[arg-type]
        class Odd: ...

        @workflow(name="routed", flow=[chain(TaskStart, Odd), from_(Odd).routes(Seer, AnswerFinish, then=AnswerFinish)])
        class Routed: ...

        async with create_app(Routed, store="memory://", models=Models(yes, sum_up)) as app:
            with pytest.raises(AgbossError) as raised:
                await app.execute("hi")
            assert raised.value.code == "router.not-an-option"

    async def test_values_without_a_repr_at_the_border(self) -> None:
        odd: Any = Shy()
        async with create_app(desk(every=None), store="memory://", models=Models(yes, sum_up)) as app:
            named: dict[str, Any]
            for named in ({"timeout": odd}, {"create_thread": odd}, {"metadata": odd}, {"attachments": [odd]}):
                with pytest.raises(InvalidInputError) as raised:
                    await app.execute("hi", **named)
                assert "Shy" in raised.value.message
            with pytest.raises(InvalidInputError):
                await app.threads.list(limit=odd)
        with pytest.raises(InvalidInputError, match="<Shy that cannot be shown>"):
            create_app(desk(every=None), store=odd)
        with pytest.raises(InvalidInputError, match="<Shy that cannot be shown>"):
            create_app(desk(every=None), store="memory://", models={MODEL: odd})


class Broken(BaseMemoryStrategy):
    """Gives what it is told to give."""

    def __init__(self, *, view: Any = None, update: Any = None, report: Any = None) -> None:
        self.view, self.update, self.report = view, update, report

    def build_context(self, context: Any) -> Any:
        return MemoryView() if self.view is None else self.view()

    async def update_memory(self, turn: Any) -> Any:
        return self.update() if self.update else MemoryUpdate()

    async def compress(self, context: Any) -> Any:
        return self.report() if self.report else CompressReport()


def _with(strategy: Any) -> type[Any]:
    @agent(name="helper", model=MODEL, prompt="x", memory_strategy=strategy)
    class Remembering: ...

    return desk(Remembering, every=None)


async def _later() -> MemoryUpdate:
    return MemoryUpdate()


WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: None, "NoneType"),
    (dict, "dict"),
    (lambda: "text", "str"),
    (_later, "coroutine"),
    (lambda: _later, "function"),
    (lambda: MemoryUpdate, "StructMeta"),
    (Shy, "Shy"),
]


class TestResultsOfStrategies:
    """What a strategy gives back is checked where it is given, and told by the strategy's name."""

    @pytest.mark.parametrize(("make", "kind"), WRONG, ids=[kind for _, kind in WRONG])
    async def test_an_update_that_is_none(self, make: Any, kind: str, caplog: pytest.LogCaptureFixture) -> None:
        strategy = Broken(update=make)
        async with create_app(_with(strategy), store="memory://", models=Models(yes, sum_up)) as app:
            with caplog.at_level(logging.WARNING):
                result = await app.execute("hi", thread="t", create_thread=True)
            assert result.answer == "Yes."
            (line,) = result.warnings
            assert f"strategy 'Broken' gave {kind} from update_memory, not a MemoryUpdate [memory.no-update]" in line
            assert "attempt 1 of 4" in line
            assert "AttributeError" not in line
            strategy.update = None
            assert (await app.execute("again", thread="t")).warnings == ()  # the work was tried again

    @pytest.mark.parametrize(
        ("update", "told"),
        [
            (MemoryUpdate(usage=None), "usage is no tuple of UsageRecord"),  # type: ignore[arg-type]
            (MemoryUpdate(usage=("x",)), "usage is no tuple of UsageRecord"),  # type: ignore[arg-type]
            (MemoryUpdate(usage=(UsageRecord(caller="x", model="y", usd=1.5),)), "usage is no tuple"),  # type: ignore[arg-type]
            (MemoryUpdate(report={"x": 1}), "report is a dict, not a CompressReport"),  # type: ignore[arg-type]
        ],
    )
    async def test_an_update_that_cannot_be_booked(self, update: MemoryUpdate, told: str) -> None:
        strategy = Broken(update=lambda: update)
        async with create_app(_with(strategy), store=FaultyStore(), models=Models(yes, sum_up)) as app:
            (line,) = (await app.execute("hi", thread="t", create_thread=True)).warnings
            assert "strategy 'Broken' gave an update that cannot be taken" in line
            assert told in line
            strategy.update = None
            assert (await app.execute("again", thread="t")).warnings == ()

    async def test_an_update_without_async_and_one_with_costs_are_taken(self) -> None:
        class Plain(Broken):
            def update_memory(self, turn: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
                return MemoryUpdate(usage=(UsageRecord(caller="x", model="y", usd=Decimal("0.5")),))

        async with create_app(_with(Plain()), store="memory://", models=Models(yes, sum_up)) as app:
            result = await app.execute("hi", thread="t", create_thread=True)
            assert (result.warnings, result.spend) == ((), Decimal("0.5"))

    @pytest.mark.parametrize(
        ("make", "kind"),
        [(make, kind) for make, kind in WRONG if kind not in ("coroutine", "StructMeta")],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    async def test_a_view_that_is_none(self, make: Any, kind: str) -> None:
        async def nested() -> Any:
            return make()

        for view in (make, nested):
            async with create_app(_with(Broken(view=view)), store="memory://", models=Models(yes, sum_up)) as app:
                with pytest.raises(StrategyError) as raised:
                    await app.execute("hi", thread="t", create_thread=True)
                assert raised.value.code == "memory.no-view"
                assert f"'helper' gave {kind} from build_context, not a MemoryView" in raised.value.message
                assert [tern.error_code for tern in (await app.threads.get("t")).terns] == ["memory.no-view"]

    async def test_a_view_that_is_a_class_or_nobody_waited_for(self) -> None:
        async def nested() -> Any:
            return _later()

        for view, remedy in ((lambda: MemoryView, "an object"), (nested, "await what build_context returns")):
            async with create_app(_with(Broken(view=view)), store="memory://", models=Models(yes, sum_up)) as app:
                with pytest.raises(StrategyError) as raised:
                    await app.execute("hi", thread="t", create_thread=True)
                assert raised.value.code == "memory.no-view"
                assert remedy in raised.value.hint

    @pytest.mark.parametrize(
        ("fields", "told"),
        [
            ({"history": None}, "history is a NoneType, not a tuple"),
            ({"history": ("x",)}, "history holds a str, not a Tern"),
            ({"summaries": ["x"]}, "summaries holds a str, not a Summary"),
            ({"messages": "text"}, "messages is a str, not a tuple"),
            ({"messages": ({"role": "user"},)}, "messages holds a dict, not a Message"),
            ({"recalled": "one text"}, "recalled is a str, not a tuple"),
            ({"recalled": (5,)}, "recalled holds a int, not a str"),
            ({"system_addendum": 5}, "system_addendum is a int, not text"),
            ({"warnings": None}, "warnings is a NoneType, not a tuple"),
            ({"left_out": None}, "left_out is a NoneType, not a tuple"),
        ],
        ids=str,
    )
    async def test_a_view_that_cannot_be_shown(self, fields: dict[str, Any], told: str) -> None:
        async with create_app(
            _with(Broken(view=lambda: MemoryView(**fields))), store="memory://", models=Models(yes, sum_up)
        ) as app:
            with pytest.raises(StrategyError) as raised:
                await app.execute("hi", thread="t", create_thread=True)
            assert raised.value.code == "memory.no-view"
            assert raised.value.message.endswith(f"a MemoryView that cannot be shown: {told}")

    async def test_lists_in_a_view_are_taken(self) -> None:
        view = MemoryView(history=[], recalled=["a fact"], warnings=["old news"])  # type: ignore[arg-type]
        async with create_app(_with(Broken(view=lambda: view)), store="memory://", models=Models(yes, sum_up)) as app:
            result = await app.execute("hi", thread="t", create_thread=True)
            assert result.warnings == ("agent 'helper': old news",)

    @pytest.mark.parametrize(("make", "kind"), WRONG, ids=[kind for _, kind in WRONG])
    async def test_a_report_that_is_none(self, make: Any, kind: str) -> None:
        async with create_app(_with(Broken(report=make)), store="memory://", models=Models(yes, sum_up)) as app:
            await app.execute("hi", thread="t", create_thread=True)
            with pytest.raises(StrategyError) as raised:
                await app.memory.compact("t")
            assert raised.value.code == "memory.no-report"
            assert f"gave {kind} from compress, not a CompressReport" in raised.value.message
            assert (await app.execute("again", thread="t")).answer == "Yes."


def test_a_tool_context_takes_no_cost_that_cannot_be_read() -> None:
    with pytest.raises(InvalidInputError) as raised:
        ToolContext().report_cost(Shy())  # type: ignore[arg-type]
    assert raised.value.code == "tool.bad-cost"
