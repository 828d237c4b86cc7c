"""Who holds a thread, and whether that one still lives.

A holder is one App: ``host/boot/pid/process start/random``. A lease says until when it may run a Tern; on the same
machine a dead process is noticed at once, from another machine only when the lease runs out.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
from datetime import datetime, timedelta
from pathlib import Path

MOST_AHEAD = timedelta(minutes=10)
"""No lease lasts longer; they are made for seconds and renewed."""

_registered: set[str] = set()


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _host() -> str:
    # Containers may share a host name; their process numbers mean different things, so the namespace is part of it.
    try:
        namespace = Path("/proc/self/ns/pid").readlink().name.removeprefix("pid:")
    except OSError:
        namespace = ""
    return (socket.gethostname() + namespace).replace("/", "_")


def _boot() -> str:
    return _read("/proc/sys/kernel/random/boot_id")


def _process_start(pid: int) -> str:
    # The name in field 2 may hold spaces and brackets: count from the last bracket. Field 22 is the start time.
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] not in "ZX" else ""


def _process_lives(pid: int, start: str) -> bool:
    if start:
        return _process_start(pid) == start
    if sys.platform == "win32":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def new_holder() -> str:
    """A name for one App in this process, registered until ``release_holder``."""
    pid = os.getpid()
    holder = f"{_host()}/{_boot()}/{pid}/{_process_start(pid)}/{secrets.token_hex(8)}"
    _registered.add(holder)
    return holder


def release_holder(holder: str) -> None:
    """The App is closed: what it left running may be taken over at once."""
    _registered.discard(holder)


def holder_alive(holder: str) -> bool:
    """Whether ``holder`` may still be at work. True when that cannot be known from here; then the lease decides."""
    parts = holder.split("/")
    if len(parts) != 5 or not parts[2].isdecimal():
        return True
    host, boot, pid, start = parts[0], parts[1], int(parts[2]), parts[3]
    if host != _host() or boot != _boot():
        return True
    if pid == os.getpid() and start == _process_start(pid):
        return holder in _registered
    return _process_lives(pid, start)


def lease_holds(holder: str, until: datetime, now: datetime, asker: str) -> bool:
    """Whether a lease still keeps ``asker`` out at ``now``.

    It never keeps its own holder out: an App lets one Tern at a time into a thread, so a Tern of its own that is still
    marked as running has ended without being stored. One that ends impossibly late was made before the clock was set
    back, and would keep everybody out for as long.
    """
    return holder != asker and now <= until <= now + MOST_AHEAD and holder_alive(holder)
