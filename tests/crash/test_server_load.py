"""Many clients at once: nobody loses an event or hears another, who vanishes leaves nothing behind, memory stays."""

from __future__ import annotations

import json
from pathlib import Path

import load
import pytest
from serving import serving

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the memory of a process from /proc"),
    pytest.mark.timeout(load.SECONDS + 5 * load.PATIENCE),
]


async def test_many_clients_stream_at_once(tmp_path: Path) -> None:
    with serving(tmp_path, *load.ARGUMENTS, PYTHONPATH=load.PATHS) as server:
        measured = await load.load(server)
        told = server.stop(seconds=load.PATIENCE)
    print(json.dumps(measured.told()))
    assert server.process.returncode == 0
    assert "Traceback" not in told
    assert measured.terns + measured.vanished >= load.CLIENTS  # everybody was served
    assert measured.end_mb - measured.warm_mb <= load.GROWTH
