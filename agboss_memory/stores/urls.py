"""Store URLs: ``memory://`` and ``sqlite:///file.db?synchronous=NORMAL&timeout=5``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote

import agboss_memory.stores as stores
from agboss_memory.errors import StoreUrlError
from agboss_memory.wording import quoted

if TYPE_CHECKING:
    from agboss_memory.stores.sqlite import Synchronous

_FORMS = (
    "Use memory://, sqlite:///relative.db or sqlite:////absolute/path.db; "
    "the options of sqlite are synchronous=FULL|NORMAL and timeout=<seconds>."
)
_MODES: dict[str, Synchronous] = {"FULL": "FULL", "NORMAL": "NORMAL"}


def _refuse(url: str, what: str) -> StoreUrlError:
    return StoreUrlError("store.url", f"Store URL {quoted(url, 400)}: {what}", _FORMS, url=url)


def _timeout(url: str, value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= 3600:
        raise _refuse(url, f"timeout={value} is not a number of seconds from 0 to 3600.")
    return seconds


def _path(url: str, given: str) -> Path:
    if not given.startswith("/"):
        raise _refuse(url, "three slashes come before the path of a file.")
    path = unquote(given[1:])
    if not path or path.endswith("/") or path == ":memory:" or "\x00" in path:
        raise _refuse(url, "it names no file.")
    return Path(path)


def _sqlite(url: str, rest: str) -> stores.SqliteStore:
    given, _, query = rest.partition("?")
    path = _path(url, given)
    synchronous: Synchronous = "FULL"
    timeout = 5.0
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name == "synchronous" and value.upper() in _MODES:
            synchronous = _MODES[value.upper()]
        elif name == "timeout":
            timeout = _timeout(url, value)
        else:
            raise _refuse(url, f"option {name}={value} is not known.")
    return stores.SqliteStore(path, url=url, synchronous=synchronous, timeout=timeout)


def store_file(url: str) -> Path | None:
    """The file that a URL names, None when it names none. Raises StoreUrlError."""
    scheme, _, rest = url.partition("://")
    return _path(url, rest.partition("?")[0]) if scheme == "sqlite" else None


def open_store(url: str) -> stores.Store:
    """The store that a URL names; call its ``open`` before use.

    Args:
        url: ``memory://``, ``sqlite:///relative.db`` or ``sqlite:////absolute/path.db``. SQLite takes the options
            ``synchronous`` (FULL, the default: what was acknowledged survives a power loss; NORMAL: it survives a
            crash of the process) and ``timeout`` (seconds to wait for a lock, default 5).

    Raises:
        StoreUrlError: The scheme is unknown, the path is missing, or an option is unknown.
    """
    if not isinstance(url, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise _refuse(url, "it is no text.")
    scheme, separator, rest = url.partition("://")
    if not separator:
        raise _refuse(url, "it has no scheme.")
    if scheme == "memory":
        if rest:
            raise _refuse(url, "memory:// takes neither a path nor options.")
        return stores.MemoryStore(url)
    if scheme == "sqlite":
        return _sqlite(url, rest)
    raise _refuse(url, f"scheme {scheme!r} is not known.")
