"""A summariser that is the same everywhere and always: the sentences with the rarest words."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from agboss_memory import MemoryModel, TokenCounter

_FENCED = re.compile(r"^<(summary|conversation)[^>]*>\n(.*?)\n?</\1>", re.MULTILINE | re.DOTALL)
_LIMIT = re.compile(r"at most (\d+) tokens")
_SPEAKER = re.compile(r"^(?:User|Assistant|Q|A|Result of \w+): ")


class Extractive(MemoryModel):
    """Keeps whole sentences, rarest words first, in the order in which they were said.

    Args:
        counter: Counts tokens.
        share: Part of the text that it keeps at most; the limit in the prompt holds too.
    """

    def __init__(self, counter: TokenCounter, share: float = 0.5) -> None:
        self.counter = counter
        self.share = share

    async def generate(self, prompt: str, output: Any = None) -> Any:
        """The summary of what stands fenced in the prompt."""
        found = _LIMIT.search(prompt)
        return self.shorten("\n".join(text for _, text in _FENCED.findall(prompt)), int(found[1]) if found else 512)

    def shorten(self, text: str, most: int) -> str:
        """At most so many tokens of a text."""
        sentences = list(dict.fromkeys(_SPEAKER.sub("", line).strip() for line in text.splitlines()))
        sentences = [sentence for sentence in sentences if sentence]
        words = Counter(word for sentence in sentences for word in set(sentence.lower().split()))
        scores = [sum(1 / words[word] for word in sentence.lower().split()) for sentence in sentences]
        # A little less than allowed: what is joined may round to more tokens than its parts.
        room = int(min(most, self.counter.count([text])[0] * self.share) * 0.9)
        kept: set[int] = set()
        for place in sorted(range(len(sentences)), key=lambda index: -scores[index] / len(sentences[index].split())):
            (size,) = self.counter.count([sentences[place] + "\n"])
            if size <= room:
                room -= size
                kept.add(place)
        return "\n".join(sentences[place] for place in sorted(kept))
