"""Exact token counts by tiktoken's encodings."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

from agboss_memory.contract import TokenCounter
from agboss_memory.tokens.heuristic import HeuristicCounter
from agboss_memory.tokens.vocabulary import Vocabulary, is_known, vocabulary_of

OFFLOAD_CHARACTERS = 20_000
"""Texts that are longer together are counted off the event loop by ``count_async``."""

_SURROGATE = "[\ud800-\udfff]"  # a pattern that is compiled when it is needed
_LOOKAHEAD = 16  # characters; a longer prefix now and then needs fewer tokens, but only close by
_HEURISTIC = HeuristicCounter()


def _valid(text: str) -> str:
    """The text with lone surrogates replaced, character for character."""
    return text if text.isascii() else re.sub(_SURROGATE, "\ufffd", text)


class TiktokenCounter:
    """Counts tokens of one of tiktoken's encodings, with toktok when it is installed.

    Without toktok and without a way to get tiktoken's rank file it estimates, after one warning in the log.

    Args:
        encoding: Such as ``o200k_base`` or ``cl100k_base``.
    """

    def __init__(self, encoding: str = "o200k_base") -> None:
        self.encoding = encoding

    @property
    def loaded(self) -> bool:
        """Whether a count has nothing to load."""
        return is_known(self.encoding)

    async def load(self) -> None:
        """Load the vocabulary off the event loop; else the first count does it, in up to a second."""
        if not self.loaded:
            await asyncio.to_thread(self._vocabulary)

    @property
    def name(self) -> str:
        """The encoding, or ``heuristic`` when its vocabulary is not to be had."""
        return self.encoding if self._vocabulary() else _HEURISTIC.name

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text. Control tokens count as the plain text that they are."""
        vocabulary = self._vocabulary()
        if vocabulary is None:
            return _HEURISTIC.count(texts)
        try:
            return vocabulary.count([_valid(text) for text in texts])
        except Exception:  # a count must never fail a Tern
            return _HEURISTIC.count(texts)

    def truncate(self, text: str, limit: int) -> str:
        """The longest prefix of at most ``limit`` tokens, never ending inside a character."""
        if limit <= 0:
            return ""
        vocabulary = self._vocabulary()
        if vocabulary is None:
            return _HEURISTIC.truncate(text, limit)
        valid = _valid(text)
        try:
            return text[: self._longest(vocabulary, valid, limit)]
        except Exception:  # a cut must never fail a Tern
            return _HEURISTIC.truncate(text, limit)

    @staticmethod
    def _longest(vocabulary: Vocabulary, text: str, limit: int) -> int:
        # The first tokens of a text need not be the tokens of its first part: count again.
        end = vocabulary.cut(text, limit)
        while end and vocabulary.count([text[:end]])[0] > limit:
            end -= 1
        if end == len(text):
            return end
        ends = range(end + 1, min(end + _LOOKAHEAD, len(text)) + 1)
        counts = vocabulary.count([text[:longer] for longer in ends])
        return max((longer for longer, tokens in zip(ends, counts, strict=True) if tokens <= limit), default=end)

    def _vocabulary(self) -> Vocabulary | None:
        return vocabulary_of(self.encoding)


def is_loaded(counter: TokenCounter) -> bool:
    """Whether a count costs no more than counting: nothing has to be loaded for it."""
    return not isinstance(counter, TiktokenCounter) or counter.loaded


async def load_counter(counter: TokenCounter) -> None:
    """Let a counter that loads something do it off the event loop, before it is first used."""
    if isinstance(counter, TiktokenCounter):
        await counter.load()


async def count_async(counter: TokenCounter, texts: Sequence[str]) -> list[int]:
    """Count without holding up the event loop: long texts are counted on a thread."""
    if sum(map(len, texts)) <= OFFLOAD_CHARACTERS:
        return counter.count(texts)
    return await asyncio.to_thread(counter.count, texts)
