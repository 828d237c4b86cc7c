"""Real decision servers as processes on free ports of the loopback."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path


@contextmanager
def process(program: str, *arguments: str) -> Generator[str]:
    """Run a console program of this environment with ``--port`` until the block ends. Yields its base URL."""
    port = free_port()
    command = [str(Path(sys.executable).with_name(program)), *arguments, "--port", str(port)]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(port, running)
        yield f"http://127.0.0.1:{port}"
    finally:
        running.kill()
        running.wait(10)


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, running: subprocess.Popen[bytes]) -> None:
    pause = threading.Event()
    for _ in range(400):
        if running.poll() is not None:
            raise AssertionError(f"the server ended with {running.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            pause.wait(0.05)
        else:
            return
    raise AssertionError(f"nobody listens on port {port}")
