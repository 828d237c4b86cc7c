"""Which encoding counts for which model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from agboss_memory.contract import TokenCounter
from agboss_memory.tokens.counting import TiktokenCounter

DEFAULT_ENCODING = "o200k_base"

ENCODINGS: Mapping[str, str] = {
    "babbage-002": "cl100k_base",
    "davinci-002": "cl100k_base",
    "gpt-3.5": "cl100k_base",
    "gpt-35": "cl100k_base",
    "gpt-4": "cl100k_base",
    "gpt-4.1": "o200k_base",
    "gpt-4.5": "o200k_base",
    "gpt-4o": "o200k_base",
    "gpt-oss": "o200k_harmony",
    "text-embedding-3": "cl100k_base",
    "text-embedding-ada-002": "cl100k_base",
}
"""Model prefix to encoding, where it is not the default."""


def _names(model: str) -> tuple[str, ...]:
    """The id as written, without the provider before a colon, and without the path before a slash."""
    name = model.strip().lower()
    _, _, local = name.partition(":")
    return name, local, local.rpartition("/")[2], name.rpartition("/")[2]


def _longest_prefix(model: str, table: Mapping[str, str]) -> str | None:
    names = _names(model)
    fitting = [prefix for prefix in table if any(name.startswith(prefix.lower()) for name in names)]
    return table[max(fitting, key=len)] if fitting else None


@lru_cache(maxsize=256)
def _counter(encoding: str) -> TokenCounter:
    return TiktokenCounter(encoding)


def encoding_for(model: str, custom: Mapping[str, str] | None = None) -> str:
    """The encoding of a model.

    Args:
        model: Id such as ``gpt-4o-mini``, ``openai:gpt-4o`` or ``openrouter/openai/gpt-4o``.
        custom: Further prefixes with their encodings; one that fits wins over the built-in table. In each the longest
            prefix wins.
    """
    return _longest_prefix(model, custom or {}) or _longest_prefix(model, ENCODINGS) or DEFAULT_ENCODING


def counter_for(model: str, custom: Mapping[str, str] | None = None) -> TokenCounter:
    """The counter of a model: the same object for all models of one encoding. See ``encoding_for``."""
    return _counter(encoding_for(model, custom))
