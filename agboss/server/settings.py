"""What ``make_server`` was told, checked."""

from __future__ import annotations

import hashlib
import ipaddress
import math
from collections.abc import Mapping, Sequence
from typing import Any

from agboss.app.request import check_id
from agboss.components.metadata import is_seconds
from agboss.errors import InvalidInputError
from agboss_memory.records import Record
from agboss_memory.wording import quoted

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")
SHORTEST_TOKEN = 16
"""Characters of a token: shorter ones can be guessed."""

MAX_BODY = 1_000_000
"""Default largest body of a request, in bytes."""

RATE = 600
"""Default requests per minute of one owner, or of one address when nobody is known."""

GRACE = 10.0
"""Default seconds that running Terns get when the server stops."""


class ServerSettings(Record, kw_only=True):
    """Checked settings of a server.

    Attributes:
        owners: Owner by SHA-256 of the token; empty = no token is asked for.
        allowed_hosts: Host names that requests may name; ``*`` = any.
        allowed_origins: Origins of other sites that may call.
        max_body: Largest body in bytes.
        rate: Requests per minute of one client; 0 = no bound.
        grace: Seconds that running Terns get when the server stops.
    """

    owners: Mapping[bytes, str]
    allowed_hosts: frozenset[str]
    allowed_origins: frozenset[str]
    max_body: int
    rate: int
    grace: float


def make_settings(
    tokens: Mapping[str, str] | None,
    allowed_hosts: Sequence[str],
    allowed_origins: Sequence[str],
    max_body: int,
    rate: int,
    grace: float,
) -> ServerSettings:
    """Checked settings. Raises InvalidInputError; no message shows a token."""
    for name, number in (("max_body", max_body), ("rate_limit", rate), ("grace", grace)):
        _check_number(name, number)
    for name, names in (("allowed_hosts", allowed_hosts), ("allowed_origins", allowed_origins)):
        if isinstance(names, str):  # one text would be taken letter by letter
            raise InvalidInputError("server.bad-setting", f"{name}={quoted(names)} is no list", f"write {name}=[...]")
    return ServerSettings(
        owners={_checked_token(token, owner): owner for token, owner in (tokens or {}).items()},
        allowed_hosts=frozenset(host.lower() for host in allowed_hosts),
        allowed_origins=frozenset(origin.lower().rstrip("/") for origin in allowed_origins),
        max_body=max_body,
        rate=rate,
        grace=grace,
    )


def digest(token: str) -> bytes:
    """What is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def check_address(host: str, *, tokens: bool) -> None:
    """Raises InvalidInputError when ``host`` can be reached from elsewhere and no token is asked for."""
    if tokens or is_loopback(host):
        return
    raise InvalidInputError(
        "server.no-token",
        f"host {host!r} can be reached from other machines, and no token is set",
        "set AGBOSS_TOKENS='owner=token', or serve 127.0.0.1",
    )


def check_proxy(text: str) -> None:
    """Raises InvalidInputError unless ``text`` is empty, or addresses and networks with commas between."""
    for part in text.split(",") if text else ():
        try:
            ipaddress.ip_network(part.strip(), strict=False)
        except ValueError as error:
            hint = "name the address of the server in front, such as 127.0.0.1, or its network, such as 10.0.0.0/8"
            raise InvalidInputError("server.bad-setting", f"proxy={part.strip()!r:.80} is no address", hint) from error


def is_loopback(host: str) -> bool:
    """Whether an address belongs to this machine alone. Names are not looked up: only ``localhost`` is known."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def parse_tokens(text: str) -> dict[str, str]:
    """Tokens and their owners from ``owner=token,owner=token``. Raises InvalidInputError; its text shows no token."""
    found: dict[str, str] = {}
    for number, part in enumerate(filter(None, (part.strip() for part in text.split(","))), 1):
        owner, sign, token = part.partition("=")
        if not sign or not owner or not token:
            text = f"part {number} of AGBOSS_TOKENS is not of the form owner=token"
            raise InvalidInputError("server.bad-token", text, "write AGBOSS_TOKENS='ada=...,bob=...'")
        if token in found:
            raise InvalidInputError("server.bad-token", "two owners have one token", "give each a token of its own")
        found[token] = owner
    return found


def _checked_token(token: Any, owner: Any) -> bytes:
    usable = isinstance(token, str) and len(token) >= SHORTEST_TOKEN and token.isascii() and token.isprintable()
    if not usable or " " in token:
        raise InvalidInputError(
            "server.bad-token",
            f"a token of owner {quoted(owner)} is not acceptable",
            f"use {SHORTEST_TOKEN} or more printable ASCII characters, for example secrets.token_urlsafe()",
        )
    if owner is None:
        raise InvalidInputError("server.bad-token", "a token has no owner", "pass tokens={token: owner}")
    check_id("owner", owner)
    return digest(token)


def _check_number(name: str, value: Any) -> None:
    if not is_seconds(value, zero=True) or value == math.inf:
        raise InvalidInputError("server.bad-setting", f"{name}={quoted(value)}", "use a number, 0 or more")
