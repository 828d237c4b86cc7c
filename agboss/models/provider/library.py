"""Which class of the library speaks to which provider. Each provider's own library is imported when it is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import httpx2
from pydantic_ai.models import Model

from agboss.components.model_spec import ModelSpec

OLLAMA_URL = "http://127.0.0.1:11434/v1"
"""Ollama's own default address."""


def _openai(spec: ModelSpec, client: httpx2.AsyncClient, key: str | None) -> Model:
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIResponsesModel(spec.name, provider=OpenAIProvider(api_key=key, http_client=client))


# A stream that ends without a finish reason was cut off; the SDK would take it for the whole answer.


def _openrouter(spec: ModelSpec, client: httpx2.AsyncClient, key: str | None) -> Model:
    from pydantic_ai.models.openrouter import OpenRouterModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openrouter import OpenRouterProvider

    profile = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
    provider = OpenRouterProvider(api_key=key, http_client=client)
    return OpenRouterModel(spec.name, provider=provider, profile=profile)


def _ollama(spec: ModelSpec, client: httpx2.AsyncClient, key: str | None) -> Model:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.ollama import OllamaProvider

    url = spec.base_url or OLLAMA_URL
    profile = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
    if spec.name.endswith("-cloud") or (urlsplit(url).hostname or "").endswith("ollama.com"):
        profile["supports_json_schema_output"] = False  # accepted there, and not enforced
    # The SDK insists on some key; Ollama reads none.
    provider = OllamaProvider(base_url=url, api_key="none", http_client=client)
    return OpenAIChatModel(spec.name, provider=provider, profile=profile)


def _compatible(spec: ModelSpec, client: httpx2.AsyncClient, key: str | None) -> Model:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    profile = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
    url = spec.base_url or ""
    # The name decides who gets thinking blocks back, so that two servers never read each other's.
    name = f"openai-compatible {urlsplit(url).netloc}"
    provider = OpenAICompatibleProvider(name, base_url=url, api_key=key, http_client=client)
    return OpenAIChatModel(spec.name, provider=provider, profile=profile)


def _anthropic(spec: ModelSpec, client: httpx2.AsyncClient, key: str | None) -> Model:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    return AnthropicModel(spec.name, provider=AnthropicProvider(api_key=key, http_client=client))


def _google(spec: ModelSpec, client: httpx2.AsyncClient, key: str | None) -> Model:
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    return GoogleModel(spec.name, provider=GoogleProvider(api_key=key, http_client=client))


LIBRARY_MODELS: Mapping[str, Callable[[ModelSpec, httpx2.AsyncClient, str | None], Model]] = {
    "openai": _openai,
    "openrouter": _openrouter,
    "ollama": _ollama,
    "openai-compatible": _compatible,
    "anthropic": _anthropic,
    "google": _google,
}
"""Opens the library's model of a provider. Raises ImportError when that provider's library is not installed."""
