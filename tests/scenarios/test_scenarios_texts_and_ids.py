"""Faults of classes O, P, Q and S: hostile texts, hostile ids, order and time, whose memory it is."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from desks import MODEL, Helper, Models, desk, raw_turns, sum_up, talk, yes

from agboss import (
    AgbossError,
    AnswerFinish,
    InjectionToken,
    InvalidInputError,
    ModelRequest,
    TaskStart,
    UnknownThreadError,
    agent,
    chain,
    create_app,
    injectable,
    provide,
    tool,
    workflow,
)
from agboss.testing import ScriptedModels, call_tool
from agboss_memory import BaseMemoryStrategy, MemoryContext, MemoryStore, MemoryTurn, MemoryUpdate, MemoryView, Tern
from agboss_memory.messages import as_utc

IDS = [
    "../evil",
    "/etc/x",
    "a/b",
    "a\\b",
    "..",
    "CON",
    "x" * 512,
    "\u00e9",
    "e\u0301",
    "A",
    "a",
    "a:b",
    " ",
    "%2e%2e",
    "'; --",
]


@tool
def hostile(nested: bool) -> object:
    """Gives text that databases do not like."""
    bad = "a\x00b \ud800 \x10"
    return {"deep": [{"text": bad}]} if nested else bad


@agent(name="careful", model=MODEL, tools=[hostile])
class Careful: ...


@workflow(name="careful-desk", flow=[chain(TaskStart, Careful, AnswerFinish)])
class CarefulDesk: ...


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_b094_b096_nul_and_surrogates_of_a_tool_are_kept(kind: str, tmp_path: Path) -> None:
    """A tool result with NUL and lone surrogates, plain and inside JSON, is stored and read back in every store."""
    models = ScriptedModels()
    models.llm(Careful).then_return(call_tool(hostile, nested=False), call_tool(hostile, nested=True), "ok")
    url = "memory://" if kind == "memory" else f"sqlite:///{tmp_path}/a.db"
    async with create_app(CarefulDesk, store=url, models=models) as app:
        first = await app.execute("go")
        results = [m.content for m in (await app.threads.export(first.thread)).messages if m.role == "tool"]
    assert results[0] == "a\x00b \ud800 \x10"
    assert "\\u0000" in results[1]
    assert "\\ud800" in results[1]


async def test_b098_a_range_that_can_never_be_summarised_does_not_burn_calls_for_ever() -> None:
    """The provider always refuses turns 1–2: four tries, then skipped; later ranges are summarised."""

    async def refuse_first(request: ModelRequest) -> str:
        if "task 1." in request.text.partition("Turns to summarise:")[2]:
            raise ValueError("400: always")
        return "In short."

    models = Models(yes, refuse_first)
    async with create_app(desk(every=2, keep=9), store="memory://", models=models) as app:
        await talk(app, 12)
        summaries = await app.memory.summaries("t")
    assert [(item.first, item.last) for item in summaries] == [(3, 4), (5, 6), (7, 8), (9, 10), (11, 12)]
    assert models.calls.count("compaction") == 4 + 5


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_b099_every_id_is_its_own_thread_and_touches_no_file(kind: str, tmp_path: Path) -> None:
    """Ids that look like paths, reserved names, other cases and other normal forms: all apart, nothing outside."""
    url = "memory://" if kind == "memory" else f"sqlite:///{tmp_path}/folder/a.db"
    async with create_app(desk(every=None), store=url, models=Models(yes, sum_up)) as app:
        for number, thread in enumerate(IDS):
            assert (await app.execute(f"mine {number}", thread=thread, create_thread=True)).tern == 1
        for number, thread in enumerate(IDS):
            assert [tern.task for tern in (await app.threads.get(thread)).terns] == [f"mine {number}"]
        await app.threads.delete("A")
        assert [tern.task for tern in (await app.threads.get("a")).terns] == ["mine 10"]
        for thread in ("", "x" * 513, "a\x00", "\ud800"):
            with pytest.raises(InvalidInputError):
                await app.execute("hi", thread=thread, create_thread=True)
    assert not await asyncio.to_thread((tmp_path.parent / "evil").exists)
    assert not list(await asyncio.to_thread(lambda: [p for p in tmp_path.iterdir() if p.name != "folder"]))


async def test_b101_workflow_thread_and_agent_names_are_never_joined() -> None:
    """Thread ids that hold separators in two workflows of one store: separate histories."""
    store, seen = MemoryStore(), list[ModelRequest]()

    async def watch(request: ModelRequest) -> str:
        seen.append(request)
        return "Yes."

    for name, thread in (("a", "b:c"), ("a-b", "c"), ("a", "b/c"), ("a", "b")):
        async with create_app(desk(every=None, name=name), store=store, models=Models(watch, sum_up)) as app:
            await talk(app, 2, thread=thread)
    assert [raw_turns(request) for request in seen] == [[], [1]] * 4


FACTS = InjectionToken[dict[str, list[str]]]("FACTS")


@injectable(deps=[FACTS])
class Facts(BaseMemoryStrategy):
    """Keeps facts by owner, written once per key."""

    def __init__(self, facts: dict[str, list[str]]) -> None:
        self.facts = facts

    def build_context(self, context: MemoryContext) -> MemoryView:
        return MemoryView(recalled=tuple(self.facts.get(str(context.owner), ())))

    async def update_memory(self, turn: MemoryTurn) -> MemoryUpdate:
        if turn.idempotency_key not in KEYS:
            KEYS.add(turn.idempotency_key)
            self.facts.setdefault(str(turn.owner), []).append(turn.tern.task)
        return MemoryUpdate()


KEYS: set[str] = set()


@agent(name="knowing", model=MODEL, memory_strategy=Facts)
class Knowing: ...


async def test_b103_b163_facts_of_one_owner_are_not_shown_to_another() -> None:
    """A strategy gets the owner in every record; what one owner said is not recalled for another."""
    KEYS.clear()
    seen: list[str] = []

    async def watch(request: ModelRequest) -> str:
        seen.append(request.messages[0].content)
        return "Yes."

    facts: dict[str, list[str]] = {}
    models = Models(watch, sum_up)
    app = create_app(desk(Knowing, every=None), store="memory://", models=models, providers=[provide(FACTS, facts)])
    async with app:
        await app.execute("I am Ann.", owner="ann")
        await app.execute("Who am I?", owner="bob")
        await app.execute("Who am I?", owner="ann")
    assert "Ann" not in seen[1]
    assert "<recalled>\nI am Ann.\n</recalled>" in seen[2]


async def test_b163_idempotency_keys_of_strategies_differ_between_threads_workflows_and_lives() -> None:
    """One fact store under two workflows, and a thread that was deleted and made again: no fact is lost."""
    KEYS.clear()
    facts: dict[str, list[str]] = {}
    store = MemoryStore()
    for name in ("one", "two"):
        workflow_ = desk(Knowing, every=None, name=name)
        async with create_app(
            workflow_, store=store, models=Models(yes, sum_up), providers=[provide(FACTS, facts)]
        ) as app:
            await app.execute(f"{name} first", thread="t", create_thread=True)
            await app.execute(f"{name} other", thread="t/1", create_thread=True)
            await app.threads.delete("t")
            await app.execute(f"{name} again", thread="t", create_thread=True)
    assert facts["None"] == [f"{name} {what}" for name in ("one", "two") for what in ("first", "other", "again")]


async def test_b104_with_a_frozen_clock_turns_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every turn at the same moment: history is in the order of admission, summaries by number."""
    frozen = datetime(2026, 1, 1, tzinfo=UTC)
    for module in ("agboss.admitting", "agboss.outcome", "agboss.tern.update_memory"):
        monkeypatch.setattr(sys.modules[module], "utc_now", lambda: frozen)
    seen: list[ModelRequest] = []

    async def watch(request: ModelRequest) -> str:
        seen.append(request)
        return "Yes."

    async with create_app(desk(every=2, limit=5), store="memory://", models=Models(watch, sum_up)) as app:
        await talk(app, 10)
        terns = (await app.threads.get("t")).terns
        assert {tern.started_at for tern in terns} == {frozen}
        assert [(item.first, item.last) for item in await app.memory.summaries("t")] == [
            (n, n + 1) for n in range(1, 10, 2)
        ]
    assert raw_turns(seen[-1]) == [5, 6, 7, 8, 9]


CLOCK = """
import asyncio, sys
from desks import Models, desk, sum_up, talk, yes
from agboss import create_app

async def main():
    async with create_app(desk(every=2), store=sys.argv[1], models=Models(yes, sum_up)) as app:
        await talk(app, 2)
        for tern in (await app.threads.get("t")).terns:
            print(tern.started_at.utcoffset(), tern.started_at.timestamp(), tern.finished_at.utcoffset())

asyncio.run(main())
"""


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
async def test_b106_moments_are_aware_utc_whatever_the_zone_of_the_host(zone: str, tmp_path: Path) -> None:
    """A process in another zone writes, this one reads: aware UTC, the same moments."""
    url = f"sqlite:///{tmp_path}/a.db"
    here = os.pathsep.join((str(Path(__file__).parents[1]), str(Path(__file__).parents[2])))
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", CLOCK, url],
        env={**os.environ, "TZ": zone, "PYTHONPATH": here},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    async with create_app(desk(every=2), store=url, models=Models(yes, sum_up)) as app:
        terns = (await app.threads.get("t")).terns
        summaries = await app.memory.summaries("t")
    assert [line[0] for line in lines] == ["0:00:00", "0:00:00"]
    assert [tern.started_at.timestamp() for tern in terns] == [float(line[1]) for line in lines]
    assert abs((datetime.now(UTC) - terns[0].started_at).total_seconds()) < 600
    assert all(item.created_at.tzinfo is UTC for item in summaries)


def test_b107_a_naive_moment_is_read_as_utc() -> None:
    """A record with a naive moment beside aware ones: comparable, and read as UTC."""
    naive, aware = datetime(2026, 1, 1), datetime(2026, 1, 1, 1, tzinfo=UTC)
    assert as_utc(naive) < aware
    view = MemoryView(history=(Tern(number=1, task="a", started_at=naive), Tern(number=2, task="b", started_at=aware)))
    assert min(as_utc(tern.started_at) for tern in view.history) == as_utc(naive)
    assert replace(view.history[0], started_at=as_utc(naive)).started_at.tzinfo is UTC


async def test_b108_what_a_summary_covers_goes_by_number_not_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns 2 and 3 at the same moment, a summary of 1–2: turn 3 is still shown, nothing twice, no gap."""
    frozen = datetime(2026, 1, 1, tzinfo=UTC)
    monkeypatch.setattr("agboss.admitting.utc_now", lambda: frozen)
    async with create_app(desk(every=2, limit=1), store="memory://", models=Models(yes, sum_up)) as app:
        await talk(app, 3)
        view = await app.memory.view("t")
    assert [row.last_tern for row in view.messages if row.last_tern] == [2, 3]
    assert view.left_out == ()


async def test_b115_after_a_thread_is_gone_no_summary_of_it_comes_back() -> None:
    """Compact, delete, make the thread again: no summary, no turn of the life before."""
    models = ScriptedModels()
    models.llm(Helper).then_return("a", "b", "c")
    models.compaction.then_return("SECRET", "NEW")
    async with create_app(desk(every=1), store="memory://", models=models) as app:
        await talk(app, 1)
        await app.threads.delete("t")
        with pytest.raises(UnknownThreadError):
            await app.memory.view("t")
        await talk(app, 1)
        assert "SECRET" not in models.llm(Helper).requests[-1].text
        assert [item.text for item in await app.memory.summaries("t")] == ["NEW"]
        with pytest.raises(AgbossError):
            await app.execute("x", thread="u")
    models.llm(Helper)._steps.clear()  # pyright: ignore[reportPrivateUsage]
