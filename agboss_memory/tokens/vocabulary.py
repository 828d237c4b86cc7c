"""Finding the vocabulary of an encoding: in toktok's wheel, else in tiktoken's rank file, else nowhere.

Loading takes up to a second and, with tiktoken, a download; the outcome is kept for the life of the process, a
failure as well. Nothing is imported before the first count.
"""

from __future__ import annotations

import importlib
import logging
import threading
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

_log = logging.getLogger("agboss_memory.tokens")

DOWNLOAD_SECONDS = 3.0
"""How long a first count waits for tiktoken to fetch its rank file."""

_CHUNK = 4096  # characters; tiktoken's cost and its refusals come with the length of one piece
_TRIES = 256  # spaces to look at before a run is cut anywhere


class Vocabulary(Protocol):
    """Counts text that holds no lone surrogates."""

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, control tokens as plain text."""
        ...

    def cut(self, text: str, limit: int) -> int:
        """About how many characters the first ``limit`` tokens cover."""
        ...


class ToktokVocabulary:
    """Counts with toktok, whose time grows with the text only."""

    def __init__(self, module: Any, encoding: str) -> None:
        self._module = module
        self._encoding = encoding
        module.batch_count([""], encoding)

    def count(self, texts: Sequence[str]) -> list[int]:
        """See ``Vocabulary``."""
        return self._module.batch_count(texts, self._encoding, 1)

    def cut(self, text: str, limit: int) -> int:
        """See ``Vocabulary``."""
        return len(self._module.truncate(text, limit, self._encoding)[0])


def _word_end(text: str, start: int, end: int) -> int:
    """The last place in a range where a space follows a letter or digit; ``end`` when none is near."""
    cut = end
    for _ in range(_TRIES):
        cut = text.rfind(" ", start + 1, cut)
        if cut < 0:
            break
        if text[cut - 1].isalnum():
            return cut
    return end


def _chunks(text: str) -> Iterator[str]:
    """Pieces of a text whose token counts add up to that of the whole, unless it is one endless run.

    No piece of any encoding reaches from a letter or digit into the space behind it: that is where to cut.
    """
    start = 0
    while len(text) - start > _CHUNK:
        end = _word_end(text, start, start + _CHUNK)
        yield text[start:end]
        start = end
    yield text[start:]


class TiktokenVocabulary:
    """Counts with tiktoken, a bounded piece at a time."""

    def __init__(self, encoding: Any) -> None:
        self._encoding = encoding

    def count(self, texts: Sequence[str]) -> list[int]:
        """See ``Vocabulary``."""
        encode = self._encoding.encode_ordinary
        return [sum(len(encode(chunk)) for chunk in _chunks(text)) for text in texts]

    def cut(self, text: str, limit: int) -> int:
        """See ``Vocabulary``."""
        reached = 0
        for chunk in _chunks(text):
            tokens = self._encoding.encode_ordinary(chunk)
            if len(tokens) > limit:
                kept: bytes = self._encoding.decode_bytes(tokens[:limit])
                return reached + len(kept.decode("utf-8", "ignore"))
            limit -= len(tokens)
            reached += len(chunk)
        return reached


def _toktok(encoding: str) -> Vocabulary | None:
    try:
        return ToktokVocabulary(importlib.import_module("toktok"), encoding)
    except (ImportError, KeyError):
        return None


def _tiktoken(encoding: str) -> Vocabulary | None:
    found: list[Vocabulary] = []
    failures: list[BaseException] = []

    def fetch() -> None:
        try:
            found.append(TiktokenVocabulary(importlib.import_module("tiktoken").get_encoding(encoding)))
        except BaseException as error:  # whatever the network throws, no Tern fails for it
            failures.append(error)

    # On a thread of its own, because tiktoken waits for the network without an end.
    worker = threading.Thread(target=fetch, name="agboss-tiktoken", daemon=True)
    worker.start()
    worker.join(DOWNLOAD_SECONDS)
    if found:
        return found[0]
    cause = failures[0] if failures else f"no answer within {DOWNLOAD_SECONDS:g} s"
    _log.warning(
        "No vocabulary for %s (%s): tokens are estimated. Install agboss[fast], or let tiktoken download once.",
        encoding,
        cause,
    )
    return None


_lock = threading.Lock()
_loaded: dict[str, Vocabulary | None] = {}


def vocabulary_of(encoding: str) -> Vocabulary | None:
    """The vocabulary of an encoding, None when there is none to be had. Logs that once."""
    if encoding not in _loaded:
        with _lock:
            if encoding not in _loaded:
                _loaded[encoding] = _toktok(encoding) or _tiktoken(encoding)
    return _loaded[encoding]


def is_known(encoding: str) -> bool:
    """Whether the outcome of loading an encoding is known, so that asking for it costs nothing."""
    return encoding in _loaded
