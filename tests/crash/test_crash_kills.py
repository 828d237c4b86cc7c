"""Whatever is killed, and when: what was acknowledged is stored once, and what was finished is not done again.

``AGBOSS_KILLS`` says how often something is killed (30), ``AGBOSS_CRASH_SEED`` repeats the decisions of a run that
failed; the moments themselves are the machine's.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Generator
from pathlib import Path

import pytest
from crash_driver import NAMES, Nursery, Round

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads the state of processes from /proc")

KILLS = int(os.environ.get("AGBOSS_KILLS", "30"))
SEED = int(os.environ.get("AGBOSS_CRASH_SEED", str(random.SystemRandom().randrange(10**6))))
PER_FILE = 50
"""Kills of one file; the next ones get a new one, so that reading all of it after each kill stays cheap."""


@pytest.fixture
def nursery() -> Generator[Nursery]:
    made = Nursery()
    yield made
    made.close()


@pytest.mark.timeout(120 + 5 * KILLS)
async def test_a_tern_survives_every_kill(tmp_path: Path, nursery: Nursery) -> None:
    """B058, B061, B064, B069, B092, B170: two processes, ten threads, tools, both kinds of compaction."""
    rng = random.Random(SEED)
    print(f"AGBOSS_CRASH_SEED={SEED} AGBOSS_KILLS={KILLS}")
    kills = 0
    for number in range(-(-KILLS // PER_FILE)):
        folder = tmp_path / str(number)
        folder.mkdir()
        one = Round(nursery, folder, rng)
        try:
            await survive(one, rng, min(PER_FILE, KILLS - number * PER_FILE))
        finally:
            one.abandon()
        kills += one.kills
    assert kills >= KILLS


async def survive(one: Round, rng: random.Random, kills: int) -> None:
    """Kill one or both, look, start them again; at the end let them finish."""
    for name in NAMES:
        one.start(name)
    while one.kills < kills:
        one.progress(rng.randint(1, rng.choice((10, 60, 250))))
        victims = rng.choice(((NAMES[0],), (NAMES[1],), NAMES))
        one.kill(*victims)
        if rng.random() < 0.5:  # the next one finds the file as the kill left it
            await one.check()
        for name in victims:
            one.start(name)
        await one.check()
    one.kill(*NAMES)
    await one.check()
    one.finish(one.furthest() + 6)
    await one.check(ended=True)


@pytest.mark.skipif(KILLS < 100, reason="waits until a lease has ended; set AGBOSS_KILLS=100")
@pytest.mark.timeout(300)
async def test_a_stopped_process_that_wakes_up_too_late_writes_nothing(tmp_path: Path, nursery: Nursery) -> None:
    """B064: its lease ran out, another process took its Terns over and ended them. They stay as that one left them."""
    one = Round(nursery, tmp_path, random.Random(SEED))
    try:
        one.start("a")
        one.progress(200)
        held = one.stop_with_terns("a")
        one.start("b")
        ended = one.until_ended(held)
        one.signal("a", signal.SIGCONT)
        one.progress(300)
        assert one.rows(held) == ended
        await one.check()
        one.kill(*NAMES)
        one.finish(one.furthest() + 6)
        assert one.rows(held) == ended
        await one.check(ended=True)
    finally:
        one.abandon()
