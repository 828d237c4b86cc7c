"""The promises of memory as properties of turn memory: random scripts of Terns through a real App."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from desks import desk
from hypothesis import given
from hypothesis import strategies as st

from agboss import (
    AgbossError,
    App,
    CompactionError,
    ModelError,
    ModelReply,
    ModelRequest,
    ModelUsage,
    UnknownThreadError,
    create_app,
)
from agboss.models import Caller, ChatModel
from agboss_memory import MemoryStore, Tern
from agboss_memory.stores.contract import ThreadRef, WindowSpec


@dataclass
class World:
    """Models that follow a plan, and everything they were asked."""

    summaries: list[str]
    fail_next: bool = False
    requests: list[ModelRequest] = field(default_factory=list[ModelRequest])
    memory_calls: int = 0
    tokens: int = 0
    calls: int = 0

    def model_for(self, caller: Caller, spec: Any) -> ChatModel:
        return _Model(self, caller.kind)

    def wrap_router(self, caller: Caller, kind: str, router: Any) -> Any:
        return router


@dataclass
class _Model:
    world: World
    kind: str

    async def generate(self, request: ModelRequest) -> ModelReply:
        world = self.world
        if self.kind != "compaction":
            world.requests.append(request)
            if world.fail_next:
                world.fail_next = False
                raise ModelError("model.http", "no luck", "")
            return self._reply("An answer.")
        world.memory_calls += 1
        plan = world.summaries.pop(0) if world.summaries else "ok"
        if plan == "raise":
            raise ModelError("model.http", "no summary", "")
        text = {"ok": f"Summary {world.calls}.", "empty": " ", "long": "word " * 200}[plan]
        return self._reply(text)

    def _reply(self, text: str) -> ModelReply:
        self.world.calls += 1
        self.world.tokens += 8
        return ModelReply(text=text, usage=ModelUsage(input_tokens=7, output_tokens=1, free=True))


STEPS = st.sampled_from(["ok", "ok", "ok", "ok", "fail", "undo", "compact", "restart", "repeat"])
SUMMARIES = st.lists(st.sampled_from(["ok", "ok", "raise", "empty", "long"]), max_size=30)


@dataclass
class Play:
    """One thread under a script of steps."""

    world: World
    store: MemoryStore
    workflow: Any
    app: App
    every: int
    limit: int
    keep: int
    log: list[Tern] = field(default_factory=list[Tern])
    last_key: str | None = None
    last_task: str = ""
    turns: int = 0

    async def step(self, name: str) -> None:
        self.world.memory_calls = 0
        await getattr(self, name)()
        if name in ("ok", "fail", "repeat"):
            assert self.world.memory_calls <= 4, "promise 4: at most four model calls for memory"
        await self.check()

    async def ok(self) -> None:
        self.turns += 1
        self.last_key, self.last_task = f"key {self.turns}", f"task {self.turns}."
        result = await self.app.execute(
            self.last_task, thread="t", create_thread=True, owner="me", idempotency_key=self.last_key
        )
        assert result.tern == self.turns

    async def fail(self) -> None:
        self.world.fail_next = True
        with pytest.raises(ModelError) as raised:
            await self.ok()
        assert raised.value.run.tern == self.turns

    async def repeat(self) -> None:
        if self.last_key is None:
            return
        before = self.world.calls
        try:
            result = await self.app.execute(self.last_task, thread="t", owner="me", idempotency_key=self.last_key)
        except AgbossError as error:
            result = error.run
        assert result.tern == self.turns
        assert self.world.calls == before, "promise 7: a repeat calls nothing"

    async def undo(self) -> None:
        if self.turns:
            await self.app.memory.undo("t")

    async def compact(self) -> None:
        try:
            if self.turns:
                await self.app.memory.compact("t")
        except CompactionError:
            return

    async def restart(self) -> None:
        await self.app.aclose()
        self.app = create_app(self.workflow, store=self.store, models=self.world)

    async def check(self) -> None:
        if not self.turns:
            return
        terns = (await self.app.threads.get("t")).terns
        self._append_only(terns)
        await self._cover(terns)
        await self._accounted(terns)

    def _append_only(self, terns: tuple[Tern, ...]) -> None:
        said = [replace(tern, usage=()) for tern in terns]
        assert said[: len(self.log)] == self.log, "promise 6: the log only grows"
        assert [tern.number for tern in said] == list(range(1, self.turns + 1)), "promise 7: exactly once"
        self.log = said

    async def _cover(self, terns: tuple[Tern, ...]) -> None:
        view = await self.app.memory.view("t")
        raw = [row.last_tern for row in view.messages if row.last_tern and row.state == "live"]
        ranges = [
            tuple(int(part) for part in found.split("–"))
            for row in view.messages
            for found in re.findall(r'^<summary turns="([^"]+)">', row.shown)
        ]
        summarised = [number for first, last in ranges for number in range(first, last + 1)]
        left = [number for gap in view.left_out for number in range(gap.first, gap.last + 1)]
        assert len(summarised) == len(set(summarised)), "promise 2: never inside two summaries"
        assert {*raw, *summarised, *left} == set(range(1, self.turns + 1)), "promise 2: every turn is accounted for"
        assert not {*raw, *summarised} & set(left)
        assert raw == list(range(raw[0], self.turns + 1)) if raw else self.limit == 0
        assert len(raw) <= self.limit + 2 * self.every
        assert len(raw) >= min(self.limit, self.turns)
        assert len(ranges) <= self.keep

    async def _accounted(self, terns: tuple[Tern, ...]) -> None:
        booked = [record for tern in terns for record in tern.usage]
        assert len(booked) == self.world.calls, "promise 10: every call is in usage, once"
        assert sum(record.input_tokens + record.output_tokens for record in booked) == self.world.tokens
        day = await self.store.day_spend("desk", terns[-1].started_at.date().isoformat())
        assert (day.model_calls, day.tokens) == (self.world.calls, self.world.tokens), "promise 10: the ledger"


async def _play(every: int, limit: int, keep: int, summaries: list[str], steps: list[str]) -> World:
    world = World(summaries)
    store = MemoryStore()
    workflow = desk(every=every, limit=limit, keep=keep, max_tokens=50)
    play = Play(world, store, workflow, create_app(workflow, store=store, models=world), every, limit, keep)
    try:
        for name in steps:
            await play.step(name)
        if play.turns:
            await _held_window_is_the_stored_one(play)
    finally:
        await play.app.aclose()
    return world


async def _held_window_is_the_stored_one(play: Play) -> None:
    """What is kept in memory between Terns is what the store would say."""
    await play.ok()
    runtime = await play.app._lifecycle.runtime()  # pyright: ignore[reportPrivateUsage]
    held = runtime.windows.held("t")
    assert held is not None
    spec = runtime.plan.window
    ref = ThreadRef(workflow="desk", thread="t", any_owner=True)
    stored = await play.store.thread(ref, WindowSpec(terns=spec.terns, summaries=spec.summaries))
    assert held.version == stored.version
    assert held.window == stored.window


@given(
    every=st.integers(1, 4),
    limit=st.integers(0, 4),
    keep=st.integers(1, 3),
    summaries=SUMMARIES,
    steps=st.lists(STEPS, max_size=25),
)
def test_promises_hold_for_every_script(
    every: int, limit: int, keep: int, summaries: list[str], steps: list[str]
) -> None:
    asyncio.run(_play(every, limit, keep, summaries, steps))


def _earlier(request: ModelRequest) -> str:
    return "".join(re.findall(r"<summary .*?</summary>\n", request.messages[0].content, re.DOTALL))


@given(every=st.integers(1, 4), limit=st.integers(0, 3), summaries=SUMMARIES, turns=st.integers(1, 20))
def test_promise_13_summaries_are_byte_stable_between_compactions(
    every: int, limit: int, summaries: list[str], turns: int
) -> None:
    async def run() -> None:
        world = World(summaries)
        async with create_app(
            desk(every=every, limit=limit, keep=3, max_tokens=50), store="memory://", models=world
        ) as app:
            before, system, compacted = "", None, False
            for number in range(1, turns + 1):
                result = await app.execute(f"task {number}.", thread="t", create_thread=True)
                request = world.requests[-1]
                now = _earlier(request)
                assert system in (None, request.system)
                assert now == before or compacted or number == 1
                before, system, compacted = now, request.system, result.memory is not None

    asyncio.run(run())


@given(data=st.data(), turns=st.integers(2, 16))
def test_promise_8_nothing_of_one_thread_is_in_another(data: st.DataObject, turns: int) -> None:
    async def run() -> None:
        world = World([])
        places = [("a", "ann"), ("b", "bob"), ("a:b", None), ("('a', 'ann')", "ann")]
        async with create_app(desk(every=2, limit=2, keep=2), store="memory://", models=world) as app:
            for number in range(turns):
                thread, owner = data.draw(st.sampled_from(places))
                await app.execute(
                    f"{thread}|{number}", thread=thread, create_thread=True, owner=owner, idempotency_key=f"k{number}"
                )
                past = re.findall(r"^Q: (.*)\|\d+$", world.requests[-1].messages[0].content, re.MULTILINE)
                assert set(past) <= {thread}
                stranger = next(other for _, other in places if other != owner)
                for touch in (
                    app.execute("mine?", thread=thread, owner=stranger),
                    app.memory.view(thread, owner=stranger or "nobody"),
                    app.threads.get(thread, owner=stranger or "nobody"),
                    app.memory.undo(thread, owner=stranger or "nobody"),
                ):
                    try:
                        await touch
                    except UnknownThreadError:
                        continue
                    raise AssertionError("a stranger got in")

    asyncio.run(run())
