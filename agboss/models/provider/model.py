"""One provider's model, spoken to through pydantic-ai's low-level interface. Retries happen here and nowhere else."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, cast

import httpx2
import stamina
from pydantic_ai import messages as wire
from pydantic_ai.models import Model

from agboss.components.model_spec import ModelSpec
from agboss.errors import ModelError
from agboss.models.chat import ModelReply, ModelRequest
from agboss.models.keys import key_of
from agboss.models.provider import RetryPolicy
from agboss.models.provider.failures import failure
from agboss.models.provider.library import LIBRARY_MODELS
from agboss.models.provider.media import accepts_of
from agboss.models.provider.messages import from_wire, to_parameters, to_settings, to_wire

logger = logging.getLogger("agboss")
_CONNECT_SECONDS = 5.0
_unthinking: set[str] = set()


class ProviderModel:
    """A provider's model behind ``ChatModel``.

    Args:
        spec: As configured.
        model: The library's model.
        client: The HTTP client below it; closed by ``aclose``.
        retry: Retries and time-out.
        key: The key, to keep it out of messages.
    """

    def __init__(
        self, spec: ModelSpec, model: Model, client: httpx2.AsyncClient, retry: RetryPolicy, key: str | None
    ) -> None:
        self._spec = spec
        self._model = model
        self._client = client
        self._retry = retry
        self._key = key
        self._profile = cast("Mapping[str, Any]", model.profile)
        self._native_schema = bool(self._profile.get("supports_json_schema_output"))
        # Older Gemini models take a schema or tools, not both.
        self._schema_with_tools = spec.provider != "google" or bool(
            self._profile.get("google_supports_tool_combination")
        )

    @property
    def context_window(self) -> int | None:
        """Window in tokens by the library's profile, None when unknown."""
        return self._model.context_window

    @property
    def accepts(self) -> tuple[str, ...]:
        """Kinds and media types of files that the model takes by the library's profile; () when it does not tell."""
        return accepts_of(self._spec.provider, self._profile)

    async def generate(self, request: ModelRequest) -> ModelReply:
        """Answer one request, with retries. Once a piece of text was delivered, nothing is tried again.

        Raises:
            ModelError: ``model.http``, ``model.timeout``, ``model.connection``, ``model.refused``,
                ``model.context-overflow``, ``model.bad-reply``, ``model.cannot`` or ``model.failed``.
        """
        delivered = [0]

        def deliver(piece: str) -> None:
            delivered[0] += 1
            if request.on_text is not None:
                request.on_text(piece)

        def backoff(error: Exception) -> bool | float:
            return self._backoff(error) if not delivered[0] else False

        async for attempt in stamina.retry_context(
            on=backoff,
            attempts=self._retry.attempts,
            timeout=None,
            wait_initial=self._retry.wait,
            wait_max=self._retry.longest_wait,
            wait_jitter=self._retry.wait,
        ):
            with attempt:
                return await self._attempt(request, deliver)
        raise AssertionError("the last attempt returns or raises")

    async def aclose(self) -> None:
        """Close the HTTP client. A second call does nothing."""
        await self._client.aclose()

    async def _attempt(self, request: ModelRequest, deliver: Callable[[str], None]) -> ModelReply:
        try:
            response = await self._respond(request, deliver)
        except ModelError:
            raise
        except Exception as error:
            raise failure(error, self._spec.model, self._key) from error
        reply = from_wire(response, self._model.system, as_json=request.output_schema is not None)
        if reply.finish_reason == "content_filter" and not reply.text and not reply.tool_calls:
            raise ModelError(
                "model.refused",
                f"model {self._spec.model!r} refused to answer: its content filter tripped",
                "change the task",
                model=self._spec.model,
                retryable=False,
            )
        return reply

    async def _respond(self, request: ModelRequest, deliver: Callable[[str], None]) -> wire.ModelResponse:
        native = self._native_schema and (self._schema_with_tools or not request.tools)
        messages = to_wire(request, self._model.system, native_schema=native)
        settings = to_settings(request.settings, self._retry.timeout, self._profile)
        self._check_thinking(request)
        parameters = to_parameters(request, native_schema=native)
        if request.on_text is None:
            return await self._model.request(messages, settings, parameters)
        async with self._model.request_stream(messages, settings, parameters) as stream:
            async for event in stream:
                if piece := _text_of(event):
                    deliver(piece)
            response = stream.get()
        if response.finish_reason is None and "finish_reason" not in (response.provider_details or {}):
            # The SDKs take a connection that closes early for the end of the answer.
            raise ModelError(
                "model.connection",
                f"the answer of model {self._spec.model!r} broke off",
                "try again",
                model=self._spec.model,
                retryable=True,
            )
        return response

    def _check_thinking(self, request: ModelRequest) -> None:
        """Warn once per model when the library would leave out what was asked for."""
        passed = self._profile.get("supports_thinking") or self._profile.get("thinking_always_enabled")
        if request.settings.thinking is None or passed or self._spec.model in _unthinking:
            return
        _unthinking.add(self._spec.model)
        logger.warning(
            "thinking=%r of %r is not sent: model %r is not known to take it",
            request.settings.thinking,
            request.caller,
            self._spec.model,
        )

    def _backoff(self, error: Exception) -> bool | float:
        if not isinstance(error, ModelError) or not error.data.get("retryable"):
            return False
        asked = error.data.get("retry_after")
        if asked is None:
            return True
        return asked if asked <= self._retry.longest_wait else False


def open_model(
    spec: ModelSpec, retry: RetryPolicy, client: httpx2.AsyncClient | None, key: str | None
) -> ProviderModel:
    """Open the model of a spec. Raises ImportError when its provider's library is missing."""
    client = client or httpx2.AsyncClient(timeout=httpx2.Timeout(retry.timeout, connect=_CONNECT_SECONDS))
    key = key or key_of(spec)
    return ProviderModel(spec, LIBRARY_MODELS[spec.provider](spec, client, key), client, retry, key)


def _text_of(event: object) -> str:
    if isinstance(event, wire.PartStartEvent) and isinstance(event.part, wire.TextPart):
        return event.part.content
    if isinstance(event, wire.PartDeltaEvent) and isinstance(event.delta, wire.TextPartDelta):
        return event.delta.content_delta
    return ""
