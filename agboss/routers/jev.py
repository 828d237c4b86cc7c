"""Routing by a decision model: one choice question, typed probabilities, no text."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, cast

import anyio

from agboss.components.model_spec import BLOCK_VARIABLE
from agboss.components.settings import JevRouter
from agboss.errors import MissingExtraError, RouterError
from agboss.routers.breaker import CircuitBreaker
from agboss.routers.contract import RouteOption, RouteRequest, RouteResult
from agboss.routers.deciding import state_text
from agboss.routers.jev_answers import BadAnswerError, Decisions, read_choice, read_reply
from agboss.routers.jev_server import decision_key, server_of
from agboss_memory.messages import UsageRecord
from agboss_memory.wording import text_of

if TYPE_CHECKING:
    import httpx2

MOST_OPTIONS = 255
"""Options that one choice question may have, by the decision API."""
SESSION_CHARS = 256
"""Longest ``session_id``, in characters."""

_RETRIED = frozenset({408, 429})
_WAIT, _LONGEST_WAIT = 1.0, 10.0
_LONGEST_RETRY_AFTER = 60.0
_EXCERPT = 300
_QUESTION = "route"


class RouteByDecision:
    """Asks a decision server. One HTTP client, opened at the first question; close it with ``aclose``.

    Args:
        settings: Model, server, question, time-out and attempts.
        client: An ``httpx2.AsyncClient`` to use instead of one of its own; closed all the same.
        breaker: Leaves a failing server alone; None = 5 failures a minute open it for 30 seconds.
        wait: Seconds before the second attempt; doubles each time up to 10. Default 1.

    Raises:
        MissingExtraError: The HTTP library is not installed.
    """

    def __init__(
        self,
        settings: JevRouter,
        *,
        client: httpx2.AsyncClient | None = None,
        breaker: CircuitBreaker | None = None,
        wait: float = _WAIT,
    ) -> None:
        self._settings = settings
        self._server = server_of(settings)
        self._httpx = _library("httpx2")
        self._stamina = _library("stamina")
        self._client = client
        self._breaker = breaker or CircuitBreaker()
        self._wait = wait

    def open(self) -> str:
        """The server's key, before anything is asked; empty when it needs none.

        Raises:
            ModelKeyError: The key is not in the environment.
            RouterError: ``router.blocked`` in tests, unless the server is on the loopback.
        """
        if os.environ.get(BLOCK_VARIABLE) == "1" and self._client is None and not self._server.loopback:
            raise RouterError(
                "router.blocked",
                f"decision model {self._settings.model!r} would be reached over the network, which is blocked in tests",
                "script it with mock_router(Router).then_return(route_to(...)), or mark the test with agboss_models",
            )
        return decision_key(self._settings)

    async def route(self, request: RouteRequest) -> RouteResult:
        """Decide.

        Raises:
            ModelKeyError: The server's key is not in the environment.
            RouterError: ``router.http``, ``router.refused``, ``router.timeout``, ``router.connection``,
                ``router.circuit-open``, ``router.too-many-options``, or ``router.bad-answer``; the data of the last
                holds the usage of the call.
        """
        body = self._body(request)
        decisions = await self._ask(body, self.open())
        usage = self._usage(request, decisions)
        try:
            choice = read_choice(decisions, _QUESTION, [option.name for option in request.options])
        except BadAnswerError as error:
            raise self._error("bad-answer", f"gave an answer that cannot be right: {error}", usage=(usage,)) from error
        return RouteResult(
            next=choice.option,
            probabilities=choice.probabilities,
            confidence=choice.confidence,
            reported_confidence=choice.reported_confidence,
            usage=(usage,),
            cost=usage.usd,
            source="jev",
        )

    async def aclose(self) -> None:
        """Close the HTTP client. A second call does nothing."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _body(self, request: RouteRequest) -> bytes:
        if len(request.options) > MOST_OPTIONS:
            found = (
                f"router {request.router!r} has {len(request.options)} routes; a decision model takes {MOST_OPTIONS}"
            )
            raise RouterError("router.too-many-options", found, "split the router in two", router=request.router)
        body: dict[str, Any] = {
            "model": self._settings.model,
            "state": state_text(request),
            "questions": {
                _QUESTION: {
                    "type": "choice",
                    "instructions": self._settings.instructions,
                    "criteria": {option.name: _criterion(option) for option in request.options},
                }
            },
        }
        if self._server.takes_session and 0 < len(request.thread_id) <= SESSION_CHARS:
            body["session_id"] = request.thread_id
        text = json.dumps(body, ensure_ascii=False)
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()

    async def _ask(self, body: bytes, key: str) -> Decisions:
        wait = self._breaker.wait()
        if wait > 0:
            raise self._error("circuit-open", f"failed too often and is left alone for {wait:.0f} more seconds")
        try:
            async for attempt in self._stamina.retry_context(
                on=_backoff,
                attempts=self._settings.attempts,
                timeout=None,
                wait_initial=self._wait,
                wait_max=_LONGEST_WAIT,
                wait_jitter=self._wait,
            ):
                with attempt:
                    return await self._attempt(body, key)
        finally:
            self._breaker.abandoned()
        raise AssertionError("the last attempt returns or raises")

    async def _attempt(self, body: bytes, key: str) -> Decisions:
        try:
            decisions = await self._post(body, key)
        except RouterError as error:
            if error.data.get("retryable"):
                self._breaker.failed()
            raise
        self._breaker.succeeded()
        return decisions

    async def _post(self, body: bytes, key: str) -> Decisions:
        headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
        if self._client is None:
            self._client = self._httpx.AsyncClient(timeout=self._settings.timeout)
        try:
            with anyio.fail_after(self._settings.timeout):
                response = await self._client.post(self._server.url, content=body, headers=headers)
        except (TimeoutError, self._httpx.TimeoutException) as error:
            what = f"did not answer within {self._settings.timeout:g} seconds"
            raise self._error("timeout", what, retryable=True) from error
        except self._httpx.HTTPError as error:
            what = f"could not be reached: {type(error).__name__} {_shown(text_of(error), key)}".rstrip()
            raise self._error("connection", what, retryable=True) from error
        if response.status_code != 200:
            raise self._http_error(response, key)
        try:
            return read_reply(response.content)
        except BadAnswerError as error:
            raise self._error("bad-answer", f"gave an answer that cannot be read: {error}") from error

    def _http_error(self, response: httpx2.Response, key: str) -> RouterError:
        status = response.status_code
        refused = status in {401, 402, 403}
        said = _shown(_said(response.content), key)
        return self._error(
            "refused" if refused else "http",
            f"answered with status {status}" + (f": {said}" if said else ""),
            hint=f"check {self._server.key_variable or 'api_key_env'} and the account" if refused else "",
            status=status,
            retryable=status in _RETRIED or status >= 500,
            retry_after=_retry_after(response.headers),
        )

    def _error(self, kind: str, what: str, *, hint: str = "", **data: Any) -> RouterError:
        data.setdefault("retryable", False)
        message = f"the server of decision model {self._settings.model!r} {what}"
        hint = hint or "try again later, give the router another model, or run with --offline"
        return RouterError(f"router.{kind}", message, hint, model=self._settings.model, url=self._server.url, **data)

    def _usage(self, request: RouteRequest, decisions: Decisions) -> UsageRecord:
        price = self._server.usd_per_token
        usd = decisions.usd if decisions.usd is not None or price is None else price * decisions.input_tokens
        source = (
            "api" if decisions.usd is not None else "unknown" if price is None else "price-table" if price else "free"
        )
        return UsageRecord(
            caller=request.router,
            model=self._settings.model,
            purpose="route",
            input_tokens=decisions.input_tokens,
            output_tokens=decisions.output_tokens,
            usd=usd,
            source=source,
        )


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtraError(
            "extra.missing",
            f"a router of kind 'jev' needs the extra 'jev', which is not installed ({error.name or name})",
            "pip install 'agboss[jev]'",
            extra="jev",
        ) from error


def _criterion(option: RouteOption) -> str | None:
    examples = f"For example: {'; '.join(option.examples)}" if option.examples else ""
    return " ".join(part for part in (option.description, examples) if part) or None


def _backoff(error: Exception) -> bool | float:
    if not isinstance(error, RouterError) or not error.data.get("retryable"):
        return False
    asked: float | None = error.data.get("retry_after")
    if asked is None:
        return True
    return asked if asked <= _LONGEST_RETRY_AFTER else False


def _retry_after(headers: Mapping[str, str]) -> float | None:
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (until.replace(tzinfo=until.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


def _said(body: bytes) -> str:
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")
    for name in ("error", "detail", "message", "msg"):
        while isinstance(value, list) and value:
            value = cast("list[Any]", value)[0]
        if isinstance(value, dict) and name in value:
            value = cast("dict[str, Any]", value)[name]
    return value if isinstance(value, str) else json.dumps(value)


def _shown(said: str, key: str) -> str:
    said = " ".join((said.replace(key, "***") if key else said).split())
    return said if len(said) <= _EXCERPT else said[: _EXCERPT - 1] + "…"
