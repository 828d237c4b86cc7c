"""Turns that pause at random calls and lose their process at random writes: nothing kept is done again."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agboss import (
    App,
    Decision,
    ModelReply,
    ModelRequest,
    ModelUsage,
    PauseError,
    TernStatus,
    ToolContext,
    agent,
    create_app,
    tool,
)
from agboss_memory import MemoryStore, ToolCall
from agboss_memory.messages import Tern

KEEPS = ("admit", "resume", "write_step", "commit")


class Killed(BaseException):
    """The process is gone."""


class Dying(MemoryStore):
    """Dies before or after its n-th write, and stays dead until it is woken."""

    def __init__(self) -> None:
        super().__init__()
        self.left: int | None = None
        self.after = False
        self.dead = False

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        return self._mortal(found) if name in KEEPS else found

    def _mortal(self, call: Any) -> Any:
        async def run(request: Any) -> Any:
            if self.dead:
                raise Killed
            if self.left is not None:
                self.left -= 1
                if self.left == 0:
                    self.dead = True
                    if self.after:
                        await call(request)
                    raise Killed
            return await call(request)

        return run

    def wake(self) -> None:
        self.dead, self.left = False, None


ran: Counter[str] = Counter()
kept: set[str] = set()


def begin(what: str) -> None:
    assert what not in kept, f"{what} was kept and begins again"
    ran[what] += 1


@tool
def free(n: int, ctx: ToolContext) -> str:
    """Needs nobody."""
    begin(f"tool.{ctx.call_id}")
    ctx.report_cost(1, "free")
    return f"free {n}"


@tool(needs_approval=lambda args, ctx: args["n"] % 3 > 0)
def guarded(n: int, ctx: ToolContext) -> str:
    """Needs a person for most n."""
    begin(f"tool.{ctx.call_id}")
    return f"guarded {n}"


@agent(name="clerk", model="ollama:stub", prompt="x", tools=[free, guarded], max_tool_calls=40)
class Clerk: ...


class Planned:
    """Calls tools as planned, message by message."""

    def __init__(self, plan: list[list[tuple[str, int]]]) -> None:
        self.plan = plan

    async def generate(self, request: ModelRequest) -> ModelReply:
        turn = sum(bool(message.tool_calls) for message in request.messages)
        begin(f"model.{turn}")
        usage = ModelUsage(input_tokens=10, output_tokens=1)
        if turn == len(self.plan):
            return ModelReply(text="done", usage=usage)
        calls = tuple(
            ToolCall(id=f"c{turn}-{place}", name=name, arguments=f'{{"n": {n}}}')
            for place, (name, n) in enumerate(self.plan[turn])
        )
        return ModelReply(tool_calls=calls, usage=usage)


def decision_about(n: int) -> Decision:
    """Denied, approved, or approved with another number."""
    return (
        Decision(approved=False, reason=f"no {n}"),
        Decision(approved=True),
        Decision(approved=True, arguments={"n": n + 100}),
    )[n % 7 % 3]


async def drive(app: App) -> Any:
    """As a careful caller does: the key again, and every decision until it is taken."""
    result = await app.execute("Go", thread="t", create_thread=True, idempotency_key="k")
    while result.pause is not None:
        kept.update(ran)  # it is stored: whatever has run is not run again
        pause = result.pauses[-1]
        result = await app.resume("t", decision_about(pause.arguments["n"]), pause_id=pause.id)
    return result


async def live(plan: list[list[tuple[str, int]]], deaths: list[tuple[int, bool]]) -> None:
    ran.clear()
    kept.clear()
    store = Dying()
    while True:
        app = create_app(Clerk, store=store, models={"ollama:stub": Planned(plan)})
        await app.__aenter__()
        store.left, store.after = deaths.pop() if deaths else (None, False)
        try:
            result = await drive(app)
            store.wake()
            break
        except Killed:
            store.wake()
            state = await app.threads.list()
            for step in await store.steps(1, 1) if state else ():
                if step.kind in ("model", "tool"):
                    kept.add(step.key.removeprefix("clerk.1."))
        finally:
            await app.aclose()
    async with create_app(Clerk, store=store, models={"ollama:stub": Planned(plan)}) as app:
        await check(app, store, plan, result)


async def check(app: App, store: MemoryStore, plan: list[list[tuple[str, int]]], result: Any) -> None:
    asked = [n for message in plan for name, n in message if name == "guarded" and n % 3 > 0]
    assert (result.tern, result.status, result.answer) == (1, TernStatus.ANSWERED, "done")
    (tern,) = (await app.threads.get("t")).terns
    assert isinstance(tern, Tern)
    assert sum(record.purpose == "answer" for record in tern.usage) == len(plan) + 1
    assert sum(record.purpose == "tool" for record in tern.usage) == sum(
        name == "free" for message in plan for name, _ in message
    )
    kinds = Counter(step.kind for step in await store.steps(1, 1))
    assert kinds == Counter({"pause": len(asked), "decision": len(asked)} if asked else {})
    said = (await app.threads.export("t")).messages
    results = {message.tool_call_id: message.content for message in said if message.role == "tool"}
    calls = {f"c{turn}-{place}": call for turn, calls in enumerate(plan) for place, call in enumerate(calls)}
    assert results.keys() == calls.keys()
    assert len(said) == 2 + len(plan) + len(calls)
    for call_id, (name, n) in calls.items():
        if name == "guarded" and n % 3 > 0:
            decision = decision_about(n)
            assert (ran[f"tool.{call_id}"] > 0) == decision.approved
            expected = f"guarded {(decision.arguments or {'n': n})['n']}" if decision.approved else f": no {n}"
            assert results[call_id].endswith(expected)
        else:
            assert results[call_id] == f"{name} {n}"
    assert await app.threads.pauses("t") == ()
    assert await app.threads.check() == ()
    day = await store.day_spend("clerk", tern.finished_at.date().isoformat() if tern.finished_at else "")
    assert day.model_calls == len(plan) + 1


CALLS = st.tuples(st.sampled_from(("free", "guarded")), st.integers(0, 20))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    plan=st.lists(st.lists(CALLS, min_size=1, max_size=3), max_size=3),
    deaths=st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=4),
)
def test_b058_nothing_kept_is_done_again_and_every_question_has_one_answer(
    plan: list[list[tuple[str, int]]], deaths: list[tuple[int, bool]]
) -> None:
    asyncio.run(live(plan, list(deaths)))


def test_a_decision_that_was_kept_is_not_taken_back() -> None:
    """The process is gone right after the decision was stored; only the same one goes on."""

    async def run() -> None:
        ran.clear()
        kept.clear()
        store, models = Dying(), {"ollama:stub": Planned([[("guarded", 1)]])}
        async with create_app(Clerk, store=store, models=models) as app:
            pause = (await app.execute("Go", thread="t", create_thread=True)).pause
            assert pause is not None
            store.left, store.after = 1, True
            with pytest.raises(Killed):
                await app.resume("t", True, pause_id=pause.id)
            store.wake()
        async with create_app(Clerk, store=store, models=models) as app:
            with pytest.raises(PauseError) as caught:
                await app.resume("t", False, pause_id=pause.id)
            assert caught.value.code == "pause.decided"
            (result,) = await app.recover()
            assert (result.answer, ran["tool.c0-0"]) == ("done", 1)

    asyncio.run(run())
