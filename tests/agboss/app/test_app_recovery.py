"""A Tern whose process is gone goes on elsewhere, and no call that it finished is made again."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import crashing_desk
import pytest

from agboss import TernCancelledError, agent, create_app
from agboss.testing import MakeApp, MockLlm
from agboss_memory import TernStatus

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


async def test_a_turn_that_ends_every_process_is_given_up(tmp_path: Path) -> None:
    dies(tmp_path, 1, "k")
    for point in range(2, 7):
        dies(tmp_path, point, "k")
    async with crashing_desk.open_desk(tmp_path) as app:
        (result,) = await app.recover()
        assert result.status is TernStatus.FAILED
        (tern,) = (await app.threads.get("t")).terns
        assert tern.error_code == "run.gave-up"


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
