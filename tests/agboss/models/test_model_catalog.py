"""The catalog: overrides, offline, keys, the block, closing."""

from __future__ import annotations

import pytest

from agboss.components.model_spec import BLOCK_VARIABLE, ModelSpec
from agboss.errors import ModelError, ModelKeyError
from agboss.models import ExtractiveModel, ModelCatalog, key_problem

KEYS = {
    "openai:gpt-5-mini": "OPENAI_API_KEY",
    "anthropic:claude-sonnet-4-5": "ANTHROPIC_API_KEY",
    "google:gemini-2.5-flash": "GOOGLE_API_KEY",
    "moonshotai/kimi-k2.6": "OPENROUTER_API_KEY",
    "openrouter:openai/gpt-5-mini": "OPENROUTER_API_KEY",
}


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*KEYS.values(), "GEMINI_API_KEY", BLOCK_VARIABLE):
        monkeypatch.delenv(name, raising=False)


def test_the_extractive_model_is_the_only_local_one() -> None:
    catalog = ModelCatalog()
    assert isinstance(catalog.model(ModelSpec("local:extractive")), ExtractiveModel)
    with pytest.raises(ModelError) as caught:
        catalog.model(ModelSpec("local:llama"))
    assert caught.value.code == "model.unknown-local"
    assert "'llama'" in str(caught.value)


def test_overrides_win_over_providers() -> None:
    mine = ExtractiveModel()
    catalog = ModelCatalog({"openai:gpt-5-mini": mine})
    assert catalog.model(ModelSpec("openai:gpt-5-mini", temperature=0)) is mine


def test_offline_replaces_every_model() -> None:
    mine = ExtractiveModel()
    catalog = ModelCatalog({"openai:gpt-5-mini": mine}, offline=True)
    other = catalog.model(ModelSpec("openai:gpt-5-mini"))
    assert isinstance(other, ExtractiveModel)
    assert other is not mine
    assert catalog.offline


@pytest.mark.parametrize(("model", "variable"), KEYS.items())
def test_a_missing_key_is_named(model: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelKeyError) as caught:
        ModelCatalog().model(ModelSpec(model))
    assert variable in str(caught.value)
    assert "--offline" in caught.value.hint
    monkeypatch.setenv(variable, "  ")
    assert key_problem(ModelSpec(model)) is not None
    monkeypatch.setenv(variable, "secret")
    assert key_problem(ModelSpec(model)) is None


@pytest.mark.parametrize("model", ["ollama:llama3", "embedded:default", "local:extractive"])
def test_models_without_a_key(model: str) -> None:
    assert key_problem(ModelSpec(model)) is None


def test_either_google_key_will_do() -> None:
    assert key_problem(ModelSpec("google:g"), {"GEMINI_API_KEY": "k"}) is None


@pytest.mark.parametrize("model", ["openai:gpt-5-mini", "ollama:llama3"])
def test_provider_models_are_blocked_in_tests(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BLOCK_VARIABLE, "1")
    with pytest.raises(ModelError) as caught:
        ModelCatalog().model(ModelSpec(model))
    assert caught.value.code == "model.blocked"
    assert model in caught.value.message
    assert "mock_llm" in caught.value.hint
    assert "agboss_models" in caught.value.hint


async def test_closing_leaves_overrides_alone() -> None:
    closed: list[str] = []

    class Mine(ExtractiveModel):
        async def aclose(self) -> None:
            closed.append("mine")

    catalog = ModelCatalog({"x:y": Mine()})
    catalog.model(ModelSpec("x:y"))
    await catalog.aclose()
    await catalog.aclose()
    assert closed == []
