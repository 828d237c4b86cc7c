"""Who is still alive."""

import os
import subprocess
import sys

import pytest

from agboss_memory.stores.lease import holder_alive, new_holder, release_holder


def test_a_holder_of_this_process_lives_until_released() -> None:
    one, two = new_holder(), new_holder()
    assert one != two
    release_holder(one)
    assert (holder_alive(one), holder_alive(two)) == (False, True)
    release_holder(two)


def test_another_process_is_seen_to_die() -> None:
    code = "from agboss_memory.stores import new_holder; print(new_holder(), flush=True); input()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout
        holder = process.stdout.readline().strip()
        assert holder_alive(holder)
        process.communicate("\n")
    assert not holder_alive(holder)


def test_a_reused_process_number_is_somebody_else() -> None:
    host, boot, pid, start, _ = new_holder().split("/")
    if not start:
        pytest.skip("this system does not tell when a process started")
    assert not holder_alive(f"{host}/{boot}/{pid}/1/x")
    assert not holder_alive(f"{host}/{boot}/{2**22 + 1}/{start}/x")


@pytest.mark.parametrize("holder", ["", "one", "elsewhere/b/1/2/x", "a/b/c/d/e"])
def test_what_cannot_be_known_counts_as_alive(holder: str) -> None:
    assert holder_alive(holder)


def test_without_start_times_the_number_decides() -> None:
    host, boot, *_ = new_holder().split("/")
    assert holder_alive(f"{host}/{boot}/1//x")
    assert not holder_alive(f"{host}/{boot}/{2**22 + 1}//x")
