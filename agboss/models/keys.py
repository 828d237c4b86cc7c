"""Keys of model providers: which environment variable holds which, and what to say when one is missing."""

from __future__ import annotations

import os
from collections.abc import Mapping

from agboss.components.model_spec import ModelSpec
from agboss.errors import ModelKeyError

KEY_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "openrouter": ("OPENROUTER_API_KEY",),
}
"""Per provider the variables that are tried in this order. Providers that need no key are not named."""

OPTIONAL_KEY_VARIABLE = "OPENAI_COMPATIBLE_API_KEY"


def key_of(spec: ModelSpec, environ: Mapping[str, str] | None = None) -> str | None:
    """The key of a model's provider, or None when there is none (or none is needed)."""
    values = os.environ if environ is None else environ
    optional = (OPTIONAL_KEY_VARIABLE,) if spec.provider == "openai-compatible" else ()
    names = KEY_VARIABLES.get(spec.provider, optional)
    return next((values[name].strip() for name in names if values.get(name, "").strip()), None)


def key_problem(spec: ModelSpec, environ: Mapping[str, str] | None = None) -> ModelKeyError | None:
    """The error to raise when the key of a model is needed and not set; None when all is well."""
    names = KEY_VARIABLES.get(spec.provider)
    if names is None or key_of(spec, environ) is not None:
        return None
    return ModelKeyError(
        "model.no-key",
        f"model {spec.model!r} needs a key, and {' or '.join(names)} is not set",
        f"export {names[0]}=..., or run with --offline to see the workflow work without a key",
        model=spec.model,
        variables=names,
    )
