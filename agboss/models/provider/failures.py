"""What went wrong at a provider, as one ``ModelError`` that says whether another attempt makes sense."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic_ai import exceptions as wire

from agboss.errors import ModelError
from agboss_memory.wording import text_of

_EXCERPT = 300
"""Longest part of a provider's own words in an error message, in characters."""
_RETRIED = frozenset({408, 429})


def failure(error: Exception, model: str, key: str | None) -> ModelError:
    """The error to raise. ``data`` has status, retryable, and retry_after in seconds when the provider named it."""
    code, what, hint = _kind(error)
    status = error.status_code if isinstance(error, wire.ModelHTTPError) else None
    hint = hint or _remedy(status)
    said = _said(error, key)
    message = f"model {model!r} {what}" + (f" (status {status})" if status else "") + (f": {said}" if said else "")
    return ModelError(
        code,
        message,
        hint,
        model=model,
        status=status,
        retryable=_retryable(code, status),
        retry_after=error.retry_after if isinstance(error, wire.ModelAPIError) else None,
    )


_KINDS: tuple[tuple[type[Exception], str, str, str], ...] = (
    (wire.ModelTimeoutError, "model.timeout", "did not answer in time", "try again, or ask for a shorter answer"),
    (wire.ModelRequestTimeout, "model.timeout", "did not answer in time", "try again, or ask for a shorter answer"),
    (wire.ModelConnectionError, "model.connection", "could not be reached", "check the network and base_url"),
    (
        wire.ModelContextWindowExceededError,
        "model.context-overflow",
        "was sent more than its window holds",
        "set context_window= to the model's real window, so that the view is cut to fit",
    ),
    (wire.ModelAuthenticationError, "model.refused", "refused the key", "check the key in the environment"),
    (wire.ModelQuotaExceededError, "model.refused", "refused: the account has no quota left", "check the account"),
    (wire.ContentFilterError, "model.refused", "refused to answer: its content filter tripped", "change the task"),
    (wire.ModelNotFoundError, "model.http", "is not known to its provider", "check the model id"),
    (wire.ModelHTTPError, "model.http", "was answered with an error", ""),
    (wire.ModelAPIError, "model.connection", "did not answer to the end", "try again"),
    (wire.UnexpectedModelBehavior, "model.bad-reply", "sent a reply that cannot be read", ""),
    # The library reads the first choice of an answer without asking whether there is one.
    (IndexError, "model.bad-reply", "sent a reply without an answer", "try again, or use another model"),
    (wire.UserError, "model.cannot", "cannot do what was asked", ""),
)


def _kind(error: Exception) -> tuple[str, str, str]:
    for kind, code, what, hint in _KINDS:
        if isinstance(error, kind):
            return code, what, hint
    return "model.failed", f"failed with {type(error).__name__}", ""


def _remedy(status: int | None) -> str:
    if status is None:
        return ""
    if status == 429:
        return "the rate limit is reached: wait a while, or use another model"
    if status >= 500:
        return "the provider has trouble: try again later, or use another model"
    return "see what the provider says; check the model's name and its settings"


def _retryable(code: str, status: int | None) -> bool:
    if code in {"model.refused", "model.context-overflow"}:
        return False
    if status is not None:
        return status in _RETRIED or status >= 500
    return code in {"model.connection", "model.timeout"}


def _said(error: Exception, key: str | None) -> str:
    body = getattr(error, "body", None)
    silent = isinstance(error, wire.ModelHTTPError | IndexError)  # their own text says nothing to a user
    said = _message(body) if body else ("" if silent else text_of(error))
    said = " ".join(said.split())
    if key:
        said = said.replace(key, "***")
    return said if len(said) <= _EXCERPT else said[: _EXCERPT - 1] + "…"


def _message(body: Any) -> str:
    if not isinstance(body, Mapping):
        return text_of(body)
    fields = cast("Mapping[str, Any]", body)
    inner = fields.get("message") or fields.get("error") or fields.get("detail")
    return text_of(fields) if inner is None else _message(inner)
