"""Faults of classes T, U, V and W: shared objects, containers, decorators, the event loop."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from desks import MODEL, Models, desk, sum_up, talk, yes
from pydantic import BaseModel, ValidationError

from agboss import (
    AnswerFinish,
    App,
    AssemblyError,
    Compaction,
    DeclarationError,
    Finish,
    History,
    InjectionToken,
    ModelRequest,
    ModelSpec,
    RunLimits,
    Start,
    TaskStart,
    agent,
    chain,
    create_app,
    injectable,
    provide,
    tool,
    workflow,
    workflow_finish,
    workflow_start,
)
from agboss.components.metadata import component_of
from agboss.testing import ScriptedModels, call_tool
from agboss_memory import BaseMemoryStrategy, MemoryContext, MemoryStore, MemoryView, SlidingWindowStrategy
from agboss_memory.tokens import vocabulary


class Meddling(BaseMemoryStrategy):
    """Tries to change what it is given."""

    def build_context(self, context: MemoryContext) -> MemoryView:
        for record in (context, *context.history):
            with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
                record.task = "changed"  # type: ignore[misc]
        assert isinstance(context.history, tuple)
        return MemoryView(history=context.history[-1:])


@agent(name="meddler", model=MODEL, memory_strategy=Meddling)
class Meddler: ...


async def test_b118_a_strategy_cannot_change_what_others_hold() -> None:
    """Records are frozen: a strategy that shortens a turn in place fails, the log and other views stay."""
    async with create_app(desk(Meddler, every=None), store="memory://", models=Models(yes, sum_up)) as app:
        await talk(app, 3)
        assert [tern.task for tern in (await app.threads.get("t")).terns] == ["task 1.", "task 2.", "task 3."]


@agent(name="forgetting", model=MODEL, memory_strategy=SlidingWindowStrategy(turns=1))
class Forgetting: ...


async def test_b120_a_strategy_that_drops_turns_changes_nothing_that_is_stored() -> None:
    """A window that drops old turns in a turn that adds one: exactly the new one is stored."""
    async with create_app(desk(Forgetting, every=None), store="memory://", models=Models(yes, sum_up)) as app:
        for number in range(1, 6):
            await talk(app, 1, first=number)
            stored = await app.threads.export("t")
            assert len(stored.thread.terns) == number
            assert len(stored.messages) == 2 * number


NAME = InjectionToken[str]("NAME")
SEEN: list[str] = []


@injectable(deps=[NAME])
class Naming(BaseMemoryStrategy):
    def __init__(self, name: str) -> None:
        self.name = name

    def build_context(self, context: MemoryContext) -> MemoryView:
        SEEN.append(self.name)
        return MemoryView()


@agent(name="named", model=MODEL, memory_strategy=Naming)
class Named: ...


async def test_b122_two_apps_do_not_share_what_they_provide() -> None:
    """Two workflows bind one token to different values: each strategy gets its own, also side by side."""
    SEEN.clear()
    apps = [
        create_app(
            desk(Named, every=None), store="memory://", models=Models(yes, sum_up), providers=[provide(NAME, name)]
        )
        for name in ("one", "two")
    ]
    for app in (*apps, *apps):
        await app.execute("hi")
    assert SEEN == ["one", "two", "one", "two"]
    for app in apps:
        await app.aclose()


class Word(BaseModel):
    word: str


@tool
@injectable(scope="tern")
class Collect:
    """Collects words, per turn."""

    def __init__(self) -> None:
        self.words: list[str] = []

    async def run(self, args: Word) -> str:
        self.words.append(args.word)
        await asyncio.sleep(0)
        return " ".join(self.words)


@agent(name="collector", model=MODEL, tools=[Collect])
class Collector: ...


@workflow(name="collect-desk", flow=[chain(TaskStart, Collector, AnswerFinish)])
class CollectDesk: ...


async def test_b124_objects_of_a_turn_are_not_mixed_between_turns() -> None:
    """Twenty turns at once with a tool that keeps a list: what lives for a turn is the turn's own."""

    class Calling:
        async def generate(self, request: ModelRequest) -> Any:
            from agboss import ModelReply
            from agboss_memory import ToolCall

            results = [message for message in request.messages if message.role == "tool"]
            await asyncio.sleep(0)
            if len(results) == 2:
                return ModelReply(text=results[-1].content)
            word = request.messages[0].content + str(len(results))
            call = ToolCall(id=f"c{len(results)}", name="collect", arguments=Word(word=word).model_dump_json())
            return ModelReply(tool_calls=(call,))

    async with create_app(CollectDesk, store="memory://", models={MODEL: Calling()}) as app:
        results = await asyncio.gather(*[app.execute(f"w{number}-") for number in range(20)])
    assert [result.answer for result in results] == [f"w{number}-0 w{number}-1" for number in range(20)]


def test_b127_siblings_share_nothing() -> None:
    """A base and two heirs, each decorated: three records; an undecorated heir is no component."""

    @agent(name="a", model=MODEL)
    class Base: ...

    @agent(name="b", model=MODEL, tools=[Collect])
    class Sub1(Base): ...

    @agent(name="c", model=MODEL)
    class Sub2(Base): ...

    class Bare(Base): ...

    specs: list[Any] = [component_of(item) for item in (Base, Sub1, Sub2)]
    assert [spec.name for spec in specs] == ["a", "b", "c"]
    assert [len(spec.tools) for spec in specs] == [0, 1, 0]
    assert component_of(Bare) is None
    with pytest.raises(AssemblyError):
        create_app(Bare, store="memory://")


def test_b129_names_that_a_model_would_confuse_are_refused() -> None:
    """'Billing Agent', 'billing agent' and 'Billing-Agent' in one flow: refused, both named."""

    @agent(name="Billing Agent", model=MODEL)
    class One: ...

    @agent(name="billing agent", model=MODEL)
    class Two: ...

    @agent(name="Billing-Agent", model=MODEL)
    class Three: ...

    @workflow(name="confused", flow=[chain(TaskStart, One, Two, Three, AnswerFinish)])
    class Confused: ...

    with pytest.raises(AssemblyError) as raised:
        create_app(Confused, store="memory://")
    assert raised.value.codes.count("assembly.duplicate-name") == 2
    assert "'Billing Agent'" in str(raised.value)
    assert "'billing agent'" in str(raised.value)


class Odd(BaseModel):
    items: list[str]
    keys: dict[str, int]
    values: str = ""
    get: int = 0


@workflow_start()
class AskOdd(Start[Odd]): ...


@workflow_finish()
class DoneOdd(Finish[Odd]): ...


@agent(name="odd", model=MODEL, input=Odd, output=Odd)
class OddAgent: ...


@workflow(name="odd-desk", flow=[chain(AskOdd, OddAgent, DoneOdd)])
class OddDesk: ...


async def test_b131_fields_named_like_methods_of_dict_are_kept() -> None:
    """A typed input and output with fields items, keys, values, get: the same type and values come back."""
    given = Odd(items=["a"], keys={"b": 1}, values="v", get=2)
    models = ScriptedModels()
    models.llm(OddAgent).then_return(given)
    async with create_app(OddDesk, store="memory://", models=models) as app:
        first = await app.execute(AskOdd, given, idempotency_key="k")
        again = await app.execute(AskOdd, given, idempotency_key="k")
        (tern,) = (await app.threads.get(first.thread)).terns
    assert first.output == again.output == given
    assert type(again.output) is Odd
    assert Odd.model_validate_json(tern.task) == given
    assert tern.output is not None
    assert Odd.model_validate_json(tern.output) == given


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Compaction(every=0), "every"),
        (lambda: Compaction(every=-1), "every"),
        (lambda: Compaction(every=2, keep=-1), "keep"),
        (lambda: Compaction(every=2, keep=0), "keep"),
        (lambda: Compaction(every=2, max_tokens=0), "max_tokens"),
        (lambda: History(limit=-1), "limit"),
        (lambda: History(summaries=-1), "summaries"),
        (lambda: RunLimits(steps=0), "steps"),
        (lambda: ModelSpec(MODEL, context_window=0), "context_window"),
        (lambda: ModelSpec(MODEL, temperature=float("nan")), "temperature"),
    ],
)
def test_b133_numbers_that_make_no_sense_are_refused_where_they_stand(make: Any, field: str) -> None:
    """every=0, keep=-1 and their like: refused when declared, with the field's name."""
    with pytest.raises(ValidationError) as raised:
        make()
    assert field in str(raised.value)


def test_b133_dicts_are_held_to_the_same_rules_and_agents_to_theirs() -> None:
    """The same values as a dict, and the counts of an agent: refused with the field's name."""
    with pytest.raises(DeclarationError, match="every"):
        workflow(flow=[], compaction={"every": 0})(type("Desk", (), {}))
    for fields in ({"history_limit": -1}, {"history_summaries": -1}, {"max_tool_calls": -1}):
        with pytest.raises(DeclarationError, match=next(iter(fields))):
            agent(model=MODEL, **fields)(type("Thing", (), {}))  # type: ignore[call-overload]


def test_b135_settings_with_lists_and_dicts_can_be_used_twice() -> None:
    """Equal settings with dict and list values, compiled twice: no error, the same fingerprint."""
    from agboss.app.fingerprint import fingerprint

    prints: set[str] = set()
    for _ in range(2):
        spec: Any = component_of(OddDesk)
        app = create_app(desk(Named), store="memory://", providers=[provide(NAME, "x")])
        prints.add(fingerprint(spec, app._lifecycle.assembly.graph))  # pyright: ignore[reportPrivateUsage]
    assert len(prints) == 1


APPS: list[App] = []


@tool
def nested(text: str) -> str:
    """Runs a turn from inside a turn, the wrong way."""
    return APPS[0].execute_sync(text).answer


@agent(name="nester", model=MODEL, tools=[nested])
class Nester: ...


@workflow(name="nest-desk", flow=[chain(TaskStart, Nester, AnswerFinish)])
class NestDesk: ...


async def test_b137_a_sync_run_inside_a_run_is_told_at_once() -> None:
    """A sync tool calls execute_sync: an error at once in the tool's result, no hang."""
    models = ScriptedModels()
    models.llm(Nester).then_return(call_tool(nested, text="x"), "done")
    async with create_app(NestDesk, store="memory://", models=models) as app:
        APPS[:] = [app]
        result = await asyncio.wait_for(app.execute("go"), 5)
        messages = (await app.threads.export(result.thread)).messages
    assert "NestedSyncError" in messages[2].content


async def test_b139_loading_a_vocabulary_does_not_stop_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vocabulary that takes long to load, first turn with compaction and a small window: the loop goes on."""
    loop = asyncio.get_running_loop()
    loads: list[bool] = []

    def slow(encoding: str) -> None:
        in_loop = threading.current_thread() is threading.main_thread()
        loads.append(in_loop)
        if not in_loop:
            alive = threading.Event()
            loop.call_soon_threadsafe(alive.set)
            assert alive.wait(5), "the event loop stands still"

    monkeypatch.setattr(vocabulary, "_toktok", slow)
    monkeypatch.setattr(vocabulary, "_tiktoken", lambda encoding: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    monkeypatch.setattr(vocabulary, "_loaded", {})
    agent_model = ModelSpec(MODEL, context_window=600)

    @agent(name="small", model=agent_model)
    class Small: ...

    store = MemoryStore()
    async with create_app(desk(Small, every=1, window=3000), store=store, models=Models(yes, sum_up)) as app:
        for number in range(4):
            await app.execute(f"{number} " + "word " * 300, thread="t", create_thread=True)
        await app.memory.view("t")
    assert loads
    assert not any(loads)
