"""From a ``ModelSpec`` to the object that answers: offline first, then overrides, then the provider."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

import agboss.models as models  # models that run in process are loaded when they are used
from agboss.components.model_spec import BLOCK_VARIABLE, IN_PROCESS, PROVIDERS, ModelSpec
from agboss.errors import MissingExtraError, ModelError
from agboss.models.chat import ChatModel
from agboss.models.keys import key_of, key_problem
from agboss.models.prices import table_window
from agboss.models.provider import open_provider_model


@runtime_checkable
class _Closable(Protocol):
    async def aclose(self) -> None: ...


class ModelCatalog:
    """Gives the chat model for a spec and owns what it opened.

    Args:
        overrides: Chat models by model id; they win over providers and are never closed here.
        offline: Replace every model by the extractive one.
    """

    def __init__(self, overrides: Mapping[str, ChatModel] | None = None, offline: bool = False) -> None:
        self._overrides = dict(overrides or {})
        self._offline = offline
        self._opened: dict[ModelSpec, ChatModel] = {}
        self._profiled: dict[ModelSpec, ChatModel] = {}
        self._providers: dict[str, Callable[[ModelSpec], ChatModel]] = {}

    @property
    def offline(self) -> bool:
        """Whether models are replaced by the extractive one."""
        return self._offline

    def add_provider(self, prefix: str, model: Callable[[ModelSpec], ChatModel]) -> None:
        """Let ``model(spec)`` make every model whose id begins with ``prefix:``."""
        self._providers[prefix] = model

    def model(self, spec: ModelSpec) -> ChatModel:
        """The model for a spec; the same object for an equal spec.

        Raises:
            ModelKeyError: The provider's key is not in the environment.
            ModelError: ``model.blocked`` in tests, ``model.unknown-local`` for another ``local:`` name,
                ``model.no-file`` for an ``embedded:`` file that is not there.
            MissingExtraError: The library behind the provider is not installed.
        """
        if self._offline:
            return models.ExtractiveModel()
        if spec.model in self._overrides:
            return self._overrides[spec.model]
        if spec not in self._opened:
            self._opened[spec] = self._open(spec)
        return self._opened[spec]

    def window(self, spec: ModelSpec) -> int | None:
        """Context window in tokens: the spec's own, else the model library's profile, else None (unknown)."""
        if spec.context_window is not None:
            return spec.context_window
        if self._offline or spec.model in self._overrides:
            return None
        if spec.provider == "embedded":
            return models.EMBEDDED_WINDOW
        opened = self._opened.get(spec)
        profile: int | None = getattr(opened, "context_window", None)
        return profile or table_window(spec)

    def accepts(self, spec: ModelSpec) -> tuple[str, ...]:
        """Kinds and media types of files that a configured model takes: the spec's own word, else its profile's.

        Models that run in process take none, whatever the spec says. Nothing is reached over the network.
        """
        if self._offline or spec.provider in IN_PROCESS:
            return ()
        if spec.accepts or spec.model in self._overrides or spec.provider not in PROVIDERS:
            return spec.accepts
        if spec not in self._profiled:
            try:
                self._profiled[spec] = self._opened.get(spec) or open_provider_model(spec, key=key_of(spec) or "none")
            except MissingExtraError:
                return ()
        told: tuple[str, ...] = getattr(self._profiled[spec], "accepts", ())
        return told

    async def aclose(self) -> None:
        """Close every model that was opened here. A second call does nothing."""
        opened = [*self._opened.values(), *self._profiled.values()]
        self._opened, self._profiled = {}, {}
        for model in opened:
            if isinstance(model, _Closable):
                await model.aclose()

    def _open(self, spec: ModelSpec) -> ChatModel:
        if spec.provider in self._providers:
            return self._providers[spec.provider](spec)
        if spec.provider == "local":
            return self._local(spec)
        if spec.provider == "embedded":
            return models.EmbeddedModel(spec)
        if os.environ.get(BLOCK_VARIABLE) == "1":
            raise _blocked(spec)
        if problem := key_problem(spec):
            raise problem
        return open_provider_model(spec)

    def _local(self, spec: ModelSpec) -> ChatModel:
        if spec.model != models.EXTRACTIVE_ID:
            raise ModelError(
                "model.unknown-local",
                f"there is no local model {spec.name!r}",
                f"the only one is {models.EXTRACTIVE_ID!r}; for a GGUF file write 'embedded:/path/to/model.gguf'",
                model=spec.model,
            )
        return models.ExtractiveModel()


def _blocked(spec: ModelSpec) -> ModelError:
    return ModelError(
        "model.blocked",
        f"model {spec.model!r} would be reached over the network, which is blocked in tests",
        "script it with mock_llm(Component).then_return(reply('...')), or mark the test with agboss_models",
        model=spec.model,
    )
