"""Several processes on one file: who waits is served in the order of arrival, and the dead are passed over."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agboss_memory.contract import utc_now
from agboss_memory.errors import LeaseLostError
from agboss_memory.messages import TernStatus
from agboss_memory.stores import Claim, SqliteStore, new_holder, release_holder
from agboss_memory.testing.store_recovery import step
from agboss_memory.testing.store_requests import admission, all_terns, ending, later, run_terns

CODE = """
import asyncio, sys
from pathlib import Path
from agboss_memory.contract import utc_now
from agboss_memory.stores import Enqueue, SqliteStore, StepWrite, new_holder
from agboss_memory.testing.store_recovery import step
from agboss_memory.testing.store_requests import admission, ending

path, role = Path(sys.argv[1]), sys.argv[2]

async def wait_and_run(store, holder):
    ticket = await store.enqueue(Enqueue(workflow="w", thread="t", holder=holder, now=utc_now()))
    print("waits", flush=True)
    while True:
        request = admission(role, holder=holder, ticket=ticket, queue=True, now=utc_now())
        admitted = await store.admit(request)
        if admitted.kind == "admitted":
            break
        ticket = admitted.ticket
        await store.wait(admitted.key, 0.02)
    print(admitted.number, flush=True)
    await store.commit(ending(admitted, role, task=role, now=utc_now()))

async def run_for_ever(store, holder):
    admitted = await store.admit(admission(role, holder=holder, idempotency_key="k", now=utc_now()))
    write = StepWrite(key=admitted.key, fence=admitted.fence, number=admitted.number, step=step())
    await store.write_step(write)
    print("runs", flush=True)
    await asyncio.Event().wait()

async def main():
    store = SqliteStore(path, synchronous="NORMAL")
    await store.open()
    await (run_for_ever if role == "stuck" else wait_and_run)(store, new_holder())
    await store.close()

asyncio.run(main())
"""


@contextmanager
def process(path: Path, role: str) -> Generator[Any]:
    """A process that has said its first word."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    started = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", CODE, str(path), role],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert started.stdout
        assert started.stdout.readline() in ("waits\n", "runs\n")
        yield started
    finally:
        started.kill()
        started.communicate()


async def test_b061_waiting_processes_are_served_in_the_order_of_arrival(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    store = SqliteStore(path, synchronous="NORMAL")
    await store.open()
    holder = new_holder()
    running = await store.admit(admission(holder=holder, now=utc_now(), lease_seconds=300.0))  # starting may take long
    with process(path, "first") as first, process(path, "killed") as killed, process(path, "last") as last:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        await store.commit(ending(running))
        for waiting, number in ((first, "2\n"), (last, "3\n")):
            assert waiting.stdout.readline() == number
            assert waiting.wait(20) == 0
            assert waiting.stderr.read() == ""
    release_holder(holder)
    assert [tern.task for tern in await all_terns(store, running.key)] == ["hi", "first", "last"]
    assert await store.check() == ()
    await store.close()


@pytest.mark.parametrize("by", ["key", "claim"])
async def test_b058_a_killed_process_leaves_a_tern_that_goes_on(tmp_path: Path, by: str) -> None:
    path = tmp_path / "log.db"
    store = SqliteStore(path, synchronous="NORMAL")
    await store.open()
    await run_terns(store, 1)
    with process(path, "stuck") as stuck:
        assert await store.resumable("w", utc_now(), 0, 9) == ()
        stuck.send_signal(signal.SIGKILL)
        stuck.wait()
    (left,) = await store.resumable("w", utc_now(), 0, 9)
    assert (left.tern.number, left.tern.task, left.idempotency_key) == (2, "stuck", "k")
    if by == "claim":
        resumed = await store.claim(Claim(key=left.key, number=2, holder="two", now=utc_now()))
    else:
        resumed = await store.admit(admission("stuck", holder="two", idempotency_key="k", now=utc_now()))
    assert (resumed.kind, resumed.resumed, resumed.number) == ("admitted", True, 2)
    assert await store.steps(left.key, 2) == (step(),)
    await store.commit(ending(resumed, "done", task="stuck"))
    assert await store.check() == ()
    await store.close()


async def test_b092_a_killed_process_leaves_its_task_in_the_log(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    store = SqliteStore(path, synchronous="NORMAL")
    await store.open()
    await run_terns(store, 1)
    with process(path, "stuck") as stuck:
        stuck.send_signal(signal.SIGKILL)
        stuck.wait()
    following = await store.admit(admission("next", now=utc_now()))
    assert following.closed == (2,)
    terns = await all_terns(store, following.key)
    assert [(tern.task, tern.status) for tern in terns[1:]] == [
        ("stuck", TernStatus.CANCELLED),
        ("next", TernStatus.RUNNING),
    ]
    await store.close()


async def test_b064_a_holder_that_was_stopped_and_wakes_up_is_fenced(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    store, other = (SqliteStore(path, synchronous="NORMAL") for _ in range(2))
    await store.open()
    await other.open()
    late = await store.admit(admission(holder="stopped"))
    taken = await other.claim(Claim(key=late.key, number=1, holder="two", now=later(11)))
    await other.commit(ending(taken, "right"))
    with pytest.raises(LeaseLostError):
        await store.commit(ending(late, "wrong"))
    assert [tern.answer for tern in await all_terns(store, late.key)] == ["right"]
    await store.close()
    await other.close()


async def test_two_stores_of_one_process_wake_each_other(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    store, other = (SqliteStore(path, synchronous="NORMAL") for _ in range(2))
    await store.open()
    await other.open()
    running = await store.admit(admission())
    busy = await other.admit(admission(holder="two", queue=True))
    waiter = asyncio.create_task(other.wait(busy.key, 60))
    await asyncio.sleep(0)
    await store.commit(ending(running))
    await asyncio.wait_for(waiter, 10)
    assert (await other.admit(admission(holder="two", ticket=busy.ticket))).number == 2
    await store.close()
    await other.close()
