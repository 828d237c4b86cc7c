"""What can be wrong with a call: each is a typed error with a stable code and a remedy, and nothing is stored."""

from __future__ import annotations

import pickle
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from desks import MODEL, Helper, Models, desk, sum_up, yes
from pydantic import BaseModel

from agboss import (
    AgbossError,
    AnswerFinish,
    Compaction,
    DeclarationError,
    InvalidInputError,
    ModelKeyError,
    ModelSpec,
    Start,
    StoreCorruptError,
    StoreLockedError,
    StoreVersionError,
    TaskStart,
    TernConflictError,
    ThreadOwnerError,
    UnknownThreadError,
    WorkflowSettings,
    agent,
    chain,
    create_app,
    workflow,
    workflow_start,
)
from agboss.testing import MakeApp, MockLlm
from agboss_memory import MemoryStore, SlidingWindowStrategy
from agboss_memory.stores.sqlite.store import SqliteStore


class Question(BaseModel):
    text: str
    depth: int = 1


@workflow_start()
class Ask(Start[Question]): ...


@workflow(name="ask-desk", flow=[chain(Ask, Helper, AnswerFinish)])
class AskDesk: ...


def checked(error: AgbossError, code: str) -> None:
    """Every error says what to do, keeps its code, and survives a pickle."""
    assert error.code == code
    assert error.message
    assert error.hint
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.code, again.message, again.hint) == (type(error), code, error.message, error.hint)


CALLS: list[tuple[str, type[AgbossError], tuple[Any, ...], dict[str, Any]]] = [
    ("run.unknown-thread", UnknownThreadError, ("hi",), {"thread": "nobody"}),
    ("run.thread-owner", ThreadOwnerError, ("hi",), {"thread": "mine", "owner": "eve"}),
    ("run.thread-owner", ThreadOwnerError, ("hi",), {"thread": "mine"}),
    ("run.thread-owner", ThreadOwnerError, ("hi",), {"thread": "mine", "create_thread": True}),
    ("run.wrong-start", InvalidInputError, (AnswerFinish, "hi"), {}),
    ("run.wrong-start", InvalidInputError, (Question, "hi"), {}),
    ("run.wrong-start", InvalidInputError, (Ask, {"text": "hi"}), {}),
    ("run.wrong-start", InvalidInputError, ("hi", "there"), {}),
    ("run.invalid-input", InvalidInputError, (TaskStart, 7), {}),
    ("run.invalid-input", InvalidInputError, (TaskStart, None), {}),
    ("run.invalid-input", InvalidInputError, (), {}),
    ("run.bad-id", InvalidInputError, ("hi",), {"thread": ""}),
    ("run.bad-id", InvalidInputError, ("hi",), {"thread": "a\x00b", "create_thread": True}),
    ("run.bad-id", InvalidInputError, ("hi",), {"thread": "\ud800", "create_thread": True}),
    ("run.bad-id", InvalidInputError, ("hi",), {"thread": "x" * 5000, "create_thread": True}),
    ("run.bad-id", InvalidInputError, ("hi",), {"thread": 7, "create_thread": True}),
    ("run.bad-id", InvalidInputError, ("hi",), {"owner": ""}),
    ("run.bad-id", InvalidInputError, ("hi",), {"idempotency_key": ""}),
    ("run.bad-timeout", InvalidInputError, ("hi",), {"timeout": 0}),
    ("run.bad-timeout", InvalidInputError, ("hi",), {"timeout": -1.0}),
    ("run.bad-timeout", InvalidInputError, ("hi",), {"timeout": float("nan")}),
    ("run.bad-timeout", InvalidInputError, ("hi",), {"timeout": "1"}),
    ("run.bad-timeout", InvalidInputError, ("hi",), {"timeout": True}),
    ("run.bad-metadata", InvalidInputError, ("hi",), {"metadata": [1]}),
    ("run.bad-metadata", InvalidInputError, ("hi",), {"metadata": "x"}),
    ("run.bad-metadata", InvalidInputError, ("hi",), {"metadata": {"a": float("nan")}}),
    ("run.bad-metadata", InvalidInputError, ("hi",), {"metadata": {"a": [{"b": float("-inf")}]}}),
    ("run.bad-metadata", InvalidInputError, ("hi",), {"metadata": {"x": object()}}),
    ("run.bad-metadata", InvalidInputError, ("hi",), {"metadata": {"x": "\ud800"}}),
    (
        "run.idempotency-conflict",
        TernConflictError,
        ("other",),
        {"thread": "mine", "owner": "me", "idempotency_key": "k"},
    ),
]


@pytest.mark.parametrize(("code", "kind", "given", "named"), CALLS, ids=[f"{n}-{c[0]}" for n, c in enumerate(CALLS)])
async def test_a_bad_call_stores_nothing_and_the_thread_goes_on(
    code: str, kind: type[AgbossError], given: tuple[Any, ...], named: dict[str, Any]
) -> None:
    models = Models(yes, sum_up)
    async with create_app(desk(every=None), store="memory://", models=models) as app:
        await app.execute("first", thread="mine", create_thread=True, owner="me", idempotency_key="k")
        with pytest.raises(kind) as raised:
            await app.execute(*given, **named)
        checked(raised.value, code)
        with pytest.raises(kind):
            async with app.stream(*given, **named):
                pass
        assert models.calls == ["agent"]
        assert [info.id for info in await app.threads.list()] == ["mine"]
        assert (await app.execute("second", thread="mine", owner="me")).tern == 2


@pytest.mark.parametrize("value", [{"text": 7}, {}, "hi", 7, Question.model_construct(text="\ud800")])
async def test_an_input_that_is_no_model_is_refused(value: Any) -> None:
    async with create_app(AskDesk, store="memory://", models=Models(yes, sum_up)) as app:
        with pytest.raises(InvalidInputError) as raised:
            await app.execute(Ask, value)
        assert raised.value.code in ("run.invalid-input", "run.wrong-start")
        assert await app.threads.list() == ()
        assert (await app.execute(Ask, {"text": "hi", "depth": 2})).answer == "Yes."


@pytest.mark.parametrize("what", ["view", "undo", "compact", "summaries"])
async def test_memory_of_a_foreign_thread_is_refused_like_a_missing_one(what: str) -> None:
    async with create_app(desk(), store="memory://", models=Models(yes, sum_up)) as app:
        await app.execute("first", thread="mine", create_thread=True, owner="me")
        for thread, owner in (("nobody", None), ("mine", "eve")):
            with pytest.raises(UnknownThreadError) as raised:
                await getattr(app.memory, what)(thread, owner=owner)
            assert raised.value.hint
        with pytest.raises(InvalidInputError):
            await getattr(app.memory, what)("")
        with pytest.raises(InvalidInputError):
            await app.memory.view("mine", agent="nobody")


@pytest.mark.parametrize(
    "declare",
    [
        lambda: Compaction(evry=2),  # type: ignore[call-arg]
        lambda: workflow(flow=[], compaction={"evry": 2}),
        lambda: workflow(flow=[], defaults={"histroy": {"limit": 4}}),
        lambda: workflow(flow=[], defaults={"history": {"limt": 4}}),
        lambda: agent(model={"model": MODEL, "thinkng": "none"}),
        lambda: WorkflowSettings.builder().compaction({"every": 2, "kep": 1}).build(),
    ],
)
def test_unknown_keys_name_the_nearest_one(declare: Any) -> None:
    def declared() -> None:
        declare()(type("Thing", (), {}))

    with pytest.raises((ValueError, DeclarationError)) as raised:
        declared()
    assert "did you mean" in str(raised.value)


async def test_a_missing_key_shows_before_anything_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("AGBOSS_BLOCK_MODELS", raising=False)
    store = MemoryStore()
    async with create_app(desk(every=None), store=store) as app:
        with pytest.raises(ModelKeyError) as raised:
            await app.execute("hi", thread="t", create_thread=True)
        checked(raised.value, raised.value.code)
        assert "OPENAI_API_KEY" in f"{raised.value.message} {raised.value.hint}"
        assert await app.threads.list() == ()
    async with create_app(desk(every=None), store=store, models=Models(yes, sum_up)) as app:
        assert (await app.execute("hi", thread="t", create_thread=True)).answer == "Yes."


async def test_a_locked_database_is_told_and_the_thread_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    store = SqliteStore(path, timeout=0.05)
    async with create_app(desk(every=None), store=store, models=Models(yes, sum_up)) as app:
        await app.execute("one", thread="t", create_thread=True)
        other = sqlite3.connect(path, isolation_level=None)
        try:
            other.execute("BEGIN EXCLUSIVE")
            with pytest.raises(StoreLockedError) as raised:
                await app.execute("two", thread="t")
            checked(raised.value, raised.value.code)
            other.execute("ROLLBACK")
        finally:
            other.close()
        assert (await app.execute("three", thread="t")).tern == 2
        assert [tern.task for tern in (await app.threads.get("t")).terns] == ["one", "three"]


async def test_a_file_that_is_no_database_is_told_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(b"my diary, not a database. " * 100)
    app = create_app(desk(every=None), store=f"sqlite:///{path}", models=Models(yes, sum_up))
    with pytest.raises(StoreCorruptError) as raised:
        await app.execute("hi")
    checked(raised.value, raised.value.code)
    await app.aclose()
    assert path.read_bytes() == b"my diary, not a database. " * 100


def _write(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(statement)
    connection.close()


async def test_a_newer_schema_is_told_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with create_app(desk(every=None), store=f"sqlite:///{path}", models=Models(yes, sum_up)) as app:
        await app.execute("one", thread="t", create_thread=True)
    _write(path, "UPDATE schema_version SET version = version + 9000")
    app = create_app(desk(every=None), store=f"sqlite:///{path}", models=Models(yes, sum_up))
    with pytest.raises(StoreVersionError) as raised:
        await app.execute("two", thread="t")
    checked(raised.value, raised.value.code)
    await app.aclose()
    _write(path, "UPDATE schema_version SET version = version - 9000")
    async with create_app(desk(every=None), store=f"sqlite:///{path}", models=Models(yes, sum_up)) as app:
        assert (await app.execute("two", thread="t")).tern == 2


async def test_a_scripted_app_has_no_network(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Helper).then_return("ok")
    async with agboss_app(desk(every=None)) as app:
        assert (await app.execute("hi")).answer == "ok"
    assert ModelSpec(MODEL).provider == "openai"


@pytest.mark.parametrize(
    ("argument", "told"),
    [
        ({"store": 5}, "store=5 is no store"),
        ({"store": MemoryStore}, "is no store"),
        ({"models": {"a/b": 5}}, "models['a/b']=5 is no chat model"),
        ({"models": {7: Models(yes, sum_up)}}, "models has the key 7"),
    ],
)
def test_an_app_takes_no_store_or_model_that_is_none(argument: dict[str, Any], told: str) -> None:
    arguments: dict[str, Any] = {"store": "memory://", **argument}
    with pytest.raises(InvalidInputError) as raised:
        create_app(desk(every=None), **arguments)
    checked(raised.value, "app.invalid")
    assert told in raised.value.message


async def test_a_number_of_threads_or_terns_that_is_none_is_refused() -> None:
    async with create_app(desk(every=None), store="memory://", models=Models(yes, sum_up)) as app:
        await app.execute("hi", thread="t", create_thread=True)
        odd: list[Any] = [-1, "2", True, 1.5]
        for value in (0, *odd):
            with pytest.raises(InvalidInputError) as raised:
                await app.threads.list(limit=value)
            checked(raised.value, "threads.bad-count")
            assert raised.value.message == f"limit={value!r}"
        for value in odd:
            with pytest.raises(InvalidInputError) as raised:
                await app.threads.get("t", last=value)
            checked(raised.value, "threads.bad-count")
        assert (await app.threads.get("t", last=0)).terns == ()


@pytest.mark.parametrize("arguments", [{"turns": "a"}, {"turns": True}, {"turns": -1}, {"summaries": None}])
def test_a_sliding_window_takes_whole_numbers(arguments: dict[str, Any]) -> None:
    ((name, value),) = arguments.items()
    with pytest.raises(ValueError, match=f"SlidingWindowStrategy: {name}={value!r}; use a whole number, 0 or more"):
        SlidingWindowStrategy(**arguments)
