"""Which decision server a router asks: address, key, and what each server allows."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from decimal import Decimal
from urllib.parse import urlsplit

from agboss.components.settings import JevRouter
from agboss.errors import ModelKeyError
from agboss_memory.records import Record

OPENROUTER = "https://openrouter.ai"
TYPESAFE = "https://api.typesafe.ai"
SYSTEM_ONE = "/v1/systemone"

TYPESAFE_USD_PER_TOKEN = Decimal("0.000000042")
"""TypeSafe's list price of an input token; output is free. Its own API reports no cost."""


class DecisionServer(Record, kw_only=True):
    """A server of the decision API.

    Attributes:
        url: Where questions are posted.
        key_variable: Environment variable with the key, empty when none is needed.
        key_required: Whether the server refuses without a key.
        takes_session: Whether ``session_id`` may be sent (OpenRouter alone).
        loopback: Whether it runs on this machine.
        usd_per_token: Price of an input token when the server reports no cost; None = unknown.
    """

    url: str
    key_variable: str = ""
    key_required: bool = False
    takes_session: bool = False
    loopback: bool = False
    usd_per_token: Decimal | None = None


def server_of(settings: JevRouter) -> DecisionServer:
    """The server of a router: by ``base_url``, else OpenRouter for ``vendor/model`` and TypeSafe for a bare id."""
    vendor = "/" in settings.model
    base = (settings.base_url or (OPENROUTER if vendor else TYPESAFE)).rstrip("/")
    host = urlsplit(base).hostname or ""
    path = _usual_path(base, host, vendor=vendor) if settings.path is None else settings.path
    url = f"{base}/{path.lstrip('/')}" if path else base
    if _is_host(host, "openrouter.ai"):
        variable = settings.api_key_env or "OPENROUTER_API_KEY"
        return DecisionServer(url=url, key_variable=variable, key_required=True, takes_session=True)
    if _is_host(host, "typesafe.ai"):
        variable = settings.api_key_env or "TYPESAFE_API_KEY"
        return DecisionServer(url=url, key_variable=variable, key_required=True, usd_per_token=TYPESAFE_USD_PER_TOKEN)
    if is_loopback(host):
        variable = settings.api_key_env or ""
        return DecisionServer(url=url, key_variable=variable, loopback=True, usd_per_token=Decimal(0))
    variable = settings.api_key_env or ""
    return DecisionServer(url=url, key_variable=variable, key_required=bool(variable))


def decision_key(settings: JevRouter, environ: Mapping[str, str] | None = None) -> str:
    """The key of a router's server, empty when none is needed and none is set.

    Raises:
        ModelKeyError: ``model.no-key``; names the variable.
    """
    server = server_of(settings)
    values = os.environ if environ is None else environ
    key = values.get(server.key_variable, "").strip() if server.key_variable else ""
    if server.key_required and not key:
        raise ModelKeyError(
            "model.no-key",
            f"decision model {settings.model!r} needs a key, and {server.key_variable} is not set",
            f"export {server.key_variable}=..., or run with --offline to route by word overlap without a key",
            model=settings.model,
            variables=(server.key_variable,),
        )
    return key


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _usual_path(base: str, host: str, *, vendor: bool) -> str:
    below = urlsplit(base).path
    if below.endswith(("/systemone", "/decisions")):
        return ""
    if _is_host(host, "openrouter.ai"):
        if below:
            return "decisions" if below.endswith("/alpha") else "systemone"
        return "/api/alpha/decisions" if vendor else f"/api{SYSTEM_ONE}"
    return "systemone" if below.endswith("/v1") else SYSTEM_ONE


def _is_host(host: str, domain: str) -> bool:
    return host == domain or host.endswith(f".{domain}")
