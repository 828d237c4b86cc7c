"""A Tern whose process is gone goes on elsewhere, and no call that it finished is made again."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import crash_desk
import crashing_desk
import pytest

from agboss import TernCancelledError, agent, create_app
from agboss.errors import LeaseLostError
from agboss.testing import MakeApp, MockLlm
from agboss_memory import TernStatus
from agboss_memory.stores import release_holder

CALLS = ["finder-0", "tool-c0", "finder-1", "tool-c1", "finder-2", "action", "writer-0"]


def dies(folder: Path, point: int, key: str | None = None) -> None:
    """Run the program until it dies at its ``point``-th call."""
    command = [sys.executable, crashing_desk.__file__, str(folder), str(point), *([key] if key else [])]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 9, done.stderr


@pytest.mark.parametrize("point", range(1, 8))
async def test_recover_repeats_no_finished_call(tmp_path: Path, point: int) -> None:
    """B058, and more: killed inside any of its calls, the Tern goes on under its number; only that call is made twice."""
    dies(tmp_path, point)
    async with crashing_desk.open_desk(tmp_path) as app:
        (running,) = (await app.threads.get("t")).terns
        assert running.status is TernStatus.RUNNING
        (result,) = await app.recover()
        assert result.answer == "writer is done"
        assert (result.thread, result.tern) == ("t", 1)
        assert any("goes on" in line for line in result.warnings)
        expected = CALLS[:point] + CALLS[point - 1 :]
        assert crashing_desk.calls.lines() == expected
        (tern,) = (await app.threads.get("t")).terns
        assert tern.task == "Find x."
        assert [record.purpose for record in tern.usage].count("tool") == 2
        assert len(tern.usage) == 6, "each call is booked once"
        assert result.spend == Decimal(4) + 4 * Decimal("0.000011")
        assert await app.recover() == ()
        assert await app.threads.check() == ()


async def test_the_own_key_resumes_and_another_tern_closes(tmp_path: Path) -> None:
    dies(tmp_path, 4, "k")
    async with crashing_desk.open_desk(tmp_path) as app:
        result = await app.execute("Find x.", thread="t", idempotency_key="k")
        assert (result.tern, result.answer) == (1, "writer is done")
        assert crashing_desk.calls.lines() == CALLS[:4] + CALLS[3:]
    other = tmp_path / "other"
    other.mkdir()
    dies(other, 4, "k")
    async with crashing_desk.open_desk(other) as app:
        second = await app.execute("Find y.", thread="t")
        assert second.tern == 2
        first, _ = (await app.threads.get("t")).terns
        assert first.status is TernStatus.CANCELLED
        assert await app.recover() == ()


@pytest.mark.parametrize("taken_by", ["recover", "key"])
async def test_a_turn_that_was_cancelled_before_its_process_died_does_not_go_on(tmp_path: Path, taken_by: str) -> None:
    """Whoever takes it over closes it; nothing is called for somebody who wanted no more."""
    dies(tmp_path, 4, "k")
    async with crashing_desk.open_desk(tmp_path) as app:
        assert await app.cancel("t")
        if taken_by == "recover":
            (result,) = await app.recover()
            assert (result.status, result.answer, result.warnings) == (TernStatus.CANCELLED, "", ())
        for _ in range(2):  # and so does every repeat
            with pytest.raises(TernCancelledError) as raised:
                await app.execute("Find x.", thread="t", idempotency_key="k")
            assert (raised.value.code, raised.value.run.status) == ("run.cancelled", TernStatus.CANCELLED)
        assert crashing_desk.calls.lines() == CALLS[:4]
        (tern,) = (await app.threads.get("t")).terns
        assert (tern.status, tern.error_code) == (TernStatus.CANCELLED, "run.cancelled")
        assert [record.purpose for record in tern.usage].count("tool") == 1, "what was paid for stays booked"
        assert await app.recover() == ()
        assert await app.threads.check() == ()
        assert (await app.execute("Find y.", thread="t")).tern == 2


@pytest.mark.parametrize("taken_by", ["recover", "key"])
async def test_the_policy_interrupt_does_not_end_the_turn_that_goes_on(tmp_path: Path, taken_by: str) -> None:
    dies(tmp_path, 4, "k")
    async with crashing_desk.open_desk(tmp_path, policy="interrupt") as app:
        if taken_by == "recover":
            await app.recover()
        result = await app.execute("Find x.", thread="t", idempotency_key="k")
        assert (result.tern, result.answer) == (1, "writer is done")


async def test_a_turn_that_ends_every_process_is_given_up(tmp_path: Path) -> None:
    """Killed six times in its first call: nothing was kept in between, and it is likely what ends its processes."""
    for point in range(1, 7):
        dies(tmp_path, point, "k")
    assert crashing_desk.Calls(tmp_path, 0).lines() == ["finder-0"] * 6
    async with crashing_desk.open_desk(tmp_path) as app:
        (result,) = await app.recover()
        assert result.status is TernStatus.FAILED
        (tern,) = (await app.threads.get("t")).terns
        assert tern.error_code == "run.gave-up"


async def test_a_turn_that_gets_further_is_not_given_up(tmp_path: Path) -> None:
    """Killed nine times, and each time but two a step further than before."""
    for point in (1, 2, 4, 5, 7, 9, 11, 13, 14):
        dies(tmp_path, point, "k")
    async with crashing_desk.open_desk(tmp_path) as app:
        (result,) = await app.recover()
        assert (result.status, result.answer) == (TernStatus.ANSWERED, "writer is done")
        assert any("for the 9. time" in line for line in result.warnings)
        (tern,) = (await app.threads.get("t")).terns
        assert len(tern.usage) == 6, "each call is booked once"
        assert await app.threads.check() == ()


@agent(name="slow", model="ollama:x", prompt="x")
class Slow: ...


async def test_the_policy_interrupt_ends_what_runs(tmp_path: Path) -> None:
    """In this process at once, whoever asked first is told; the newcomer gets the thread."""
    entered, held = asyncio.Event(), asyncio.Event()

    class Model:
        async def generate(self, request: crashing_desk.ModelRequest) -> crashing_desk.ModelReply:
            if request.text.endswith("one"):
                entered.set()
                await held.wait()
            return crashing_desk.ModelReply(text="done")

    url = f"sqlite:///{tmp_path}/x.db"
    async with create_app(Slow, store=url, models={"ollama:x": Model()}, thread_policy="interrupt") as app:
        first = asyncio.create_task(app.execute("one", thread="t", create_thread=True))
        await entered.wait()
        second = await app.execute("two", thread="t")
        assert second.tern == 2
        with pytest.raises(TernCancelledError) as raised:
            await first
        assert raised.value.run.status is TernStatus.CANCELLED
        assert [tern.status for tern in (await app.threads.get("t")).terns] == ["cancelled", "answered"]


async def test_a_stranger_cannot_interrupt(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    from agboss import ThreadOwnerError

    mock_llm(Slow).then_return("mine")
    async with agboss_app(Slow, thread_policy="interrupt") as app:
        await app.execute("one", thread="t", create_thread=True, owner="ada")
        with pytest.raises(ThreadOwnerError):
            await app.execute("two", thread="t", owner="bob")


async def test_what_memory_paid_in_both_runs_of_a_tern_is_booked(tmp_path: Path) -> None:
    """A summary that was written before the process went is paid, and so is the next one of the same Tern."""
    entered = asyncio.Event()
    compacted: list[str] = []

    class Stuck(crash_desk.Stub):
        async def generate(self, request: crashing_desk.ModelRequest) -> crashing_desk.ModelReply:
            if request.purpose == "compaction" and request.caller == "keeper":
                compacted.append(request.caller)
            if request.purpose == "answer" and request.caller == "finder":
                compacted.clear()
            if request.purpose == "answer" and request.caller == "keeper" and compacted:
                entered.set()
                await asyncio.Event().wait()
            return await super().generate(request)

    class Talkative(crash_desk.Stub):
        async def generate(self, request: crashing_desk.ModelRequest) -> crashing_desk.ModelReply:
            reply = await super().generate(request)
            long = request.purpose == "answer" and request.caller == "keeper"
            return crashing_desk.ModelReply(text="and so on " * 300, usage=reply.usage) if long else reply

    url = f"sqlite:///{tmp_path}/x.db?synchronous=NORMAL"
    stuck = create_app(crash_desk.CrashDesk, store=url, models={"ollama:stub": Stuck()})
    tasks: list[asyncio.Task[object]] = []
    waiting = asyncio.create_task(entered.wait())
    while not entered.is_set():
        asked = f"Keep [t0/{len(tasks) + 1}]"
        tasks.append(asyncio.create_task(stuck.execute(asked, thread="t0", create_thread=True)))
        await asyncio.wait((tasks[-1], waiting), return_when=asyncio.FIRST_COMPLETED)
    number = len(tasks)
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        (holder,) = connection.execute("SELECT holder FROM threads").fetchone()
    release_holder(holder)  # as if its process were gone
    async with create_app(crash_desk.CrashDesk, store=url, models={"ollama:stub": Talkative()}) as app:
        (result,) = await app.recover()
        assert result.tern == number
        export = await app.threads.export("t0")
        made = [item for item in export.summaries if item.agent == "keeper"]
        paid = [
            u for tern in export.thread.terns for u in tern.usage if (u.caller, u.purpose) == ("keeper", "compaction")
        ]
        assert len(paid) == len(made)
        assert sum(tern.number == number for tern in export.thread.terns) == 1
        assert await app.threads.check() == ()
    tasks[-1].cancel()
    with pytest.raises(asyncio.CancelledError) as cancelled:
        await tasks[-1]
    assert isinstance(cancelled.value.__cause__, LeaseLostError)  # it stored nothing, the other process has
    await stuck.aclose()


async def test_what_a_dead_process_spent_is_booked_whatever_becomes_of_its_turn(tmp_path: Path) -> None:
    """Closed by another Tern, or given up: the calls that were finished stay in usage, spend and the daily ledger."""
    dies(tmp_path, 6, "k")
    async with crashing_desk.open_desk(tmp_path) as app:
        await app.execute("Find y.", thread="t")
        first, second = (await app.threads.get("t")).terns
        assert first.status is TernStatus.CANCELLED
        assert [record.purpose for record in first.usage].count("tool") == 2
        assert len(first.usage) == 5
        assert len(second.usage) == 6
        assert await app.threads.check() == ()
