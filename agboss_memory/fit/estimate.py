"""How large a request is, and how a text is cut to a size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from agboss_memory.contract import Budget, TokenCounter
from agboss_memory.messages import MediaPart, Message
from agboss_memory.notices import earlier_lines
from agboss_memory.tokens import HeuristicCounter, most_tokens

PER_MESSAGE = 4
"""Tokens that a provider adds around each message."""

IMAGE_TOKENS = 1600
"""Tokens that an image counts, whatever its size in bytes."""

UNKNOWN_WINDOW = 8192
"""Tokens of a window of which nothing is known."""

CUT_MARK = "\n[... cut: the rest does not fit the model's window]"
_SHORT_MARKS = (CUT_MARK, " [cut]", "…")


def document_tokens(size: int) -> int:
    """Tokens that a document of ``size`` bytes counts."""
    return max(1000, size // 100)


def media_tokens(kind: str, size: int) -> int:
    """Tokens that a file of ``size`` bytes counts; what is no image counts as a document."""
    return IMAGE_TOKENS if kind == "image" else document_tokens(size)


def parts_tokens(parts: Iterable[MediaPart]) -> int:
    """Tokens of the files that are sent with a message."""
    return sum(media_tokens(part.kind, part.size) for part in parts)


def effective_window(window: int | None) -> int:
    """The window in tokens; an unknown one, or one of 0 or less, counts as ``UNKNOWN_WINDOW``."""
    return window if window is not None and window > 0 else UNKNOWN_WINDOW


def counter_of(budget: Budget) -> TokenCounter:
    """The counter of a budget, the heuristic one when it names none."""
    return budget.counter or HeuristicCounter()


def texts_of(message: Message) -> list[str]:
    """The texts that ``Message.tokens`` counts: content, arguments, and the lines that stand for attachments."""
    texts = [message.content, *(call.arguments for call in message.tool_calls)]
    return [*texts, *earlier_lines(message.attachments)] if message.attachments else texts


def text_tokens(messages: Sequence[Message], counter: TokenCounter) -> list[int]:
    """Text tokens of each message, counted in one batch."""
    texts = [texts_of(message) for message in messages]
    counts = iter(counter.count([text for group in texts for text in group]))
    return [sum(next(counts) for _ in group) for group in texts]


def estimate(messages: Iterable[Message], counter: TokenCounter, *, fixed: Sequence[str] = ()) -> int:
    """Tokens of a request: every text that is sent, the overhead of each message, system text and schemas, media.

    Args:
        messages: What is sent.
        counter: Counts texts.
        fixed: System text and tool schemas.
    """
    return _request_tokens(messages, counter.count, fixed)


def estimate_most(messages: Iterable[Message], *, fixed: Sequence[str] = ()) -> int:
    """An upper bound of ``estimate``, whatever byte-level encoding counts; it needs no vocabulary."""
    return _request_tokens(messages, lambda texts: map(most_tokens, texts), fixed)


def _request_tokens(
    messages: Iterable[Message], count: Callable[[Sequence[str]], Iterable[int]], fixed: Sequence[str]
) -> int:
    sent = list(messages)
    texts = [text for message in sent for text in _all_texts(message)]
    media = sum(parts_tokens(message.media) for message in sent if message.media)
    return sum(count([*fixed, *texts])) + PER_MESSAGE * len(sent) + media


def sizes(messages: Sequence[Message], counter: TokenCounter) -> list[int]:
    """What each message adds to ``estimate``."""
    texts = [_all_texts(message) for message in messages]
    counts = iter(counter.count([text for group in texts for text in group]))
    return [
        sum(next(counts) for _ in group) + PER_MESSAGE + parts_tokens(message.media)
        for message, group in zip(messages, texts, strict=True)
    ]


def _all_texts(message: Message) -> list[str]:
    names = [call.name for call in message.tool_calls]
    thinking = [text for part in message.thinking for text in (part.text, part.signature, part.data) if text]
    return [*texts_of(message), *names, *thinking]


def cut_to(text: str, limit: int, counter: TokenCounter) -> str:
    """``text`` if it has at most ``limit`` tokens, else a beginning of it with a mark, together no more than that.

    Only when not even a mark fits is the mark alone longer.
    """
    if counter.count([text])[0] <= limit:
        return text
    marks = [mark for mark in _SHORT_MARKS if counter.count([mark])[0] <= limit]
    if not marks:
        return _SHORT_MARKS[-1]
    mark = marks[0]
    keep = limit - counter.count([mark])[0]
    while True:
        made = counter.truncate(text, keep) + mark
        if keep <= 0 or counter.count([made])[0] <= limit:
            return made if keep > 0 else mark
        keep -= 1
