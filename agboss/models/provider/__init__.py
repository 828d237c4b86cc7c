"""Models of providers, behind ``ChatModel``. The library that speaks to them is loaded when the first one is opened."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from agboss.components.model_spec import ModelSpec
from agboss.errors import MissingExtraError
from agboss_memory.records import Record

if TYPE_CHECKING:
    from agboss.models.provider.model import ProviderModel

__all__ = ["RetryPolicy", "open_provider_model"]

_EXTRAS = {"anthropic": "anthropic", "google": "google"}


class RetryPolicy(Record, kw_only=True):
    """How often and how patiently a failed attempt is made again.

    Attributes:
        attempts: Attempts in all. Default 3.
        wait: Seconds before the second attempt; doubles each time. Default 1.
        longest_wait: Seconds; the upper bound of the wait, and of a ``retry-after`` that is obeyed. A provider that
            asks for more is not asked again. Default 10.
        timeout: Seconds for one attempt. Default 300.
    """

    attempts: int = 3
    wait: float = 1.0
    longest_wait: float = 10.0
    timeout: float = 300.0


def open_provider_model(
    spec: ModelSpec, *, retry: RetryPolicy | None = None, http_client: Any = None, key: str | None = None
) -> ProviderModel:
    """Open the model that a spec names.

    Args:
        spec: Names provider and model.
        retry: Retries and time-out; None = the defaults of ``RetryPolicy``.
        http_client: An ``httpx2.AsyncClient`` to use, for tests and proxies; None = one of its own.
        key: The provider's key; None = from the environment.

    Raises:
        MissingExtraError: The provider's library is not installed.
    """
    try:
        module = importlib.import_module("agboss.models.provider.model")
        return module.open_model(spec, retry or RetryPolicy(), http_client, key)
    except ImportError as error:
        extra = _EXTRAS.get(spec.provider, "models")
        raise MissingExtraError(
            "extra.missing",
            f"model {spec.model!r} needs the extra {extra!r}, which is not installed ({error.name or error})",
            f"pip install 'agboss[{extra}]'",
            extra=extra,
            model=spec.model,
        ) from error
