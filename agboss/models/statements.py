"""What a view says, sentence by sentence: who stated it, and whether it can be quoted.

The layout is that of turn memory: ``Earlier turns:`` with fenced summaries, ``Previous turns:`` with ``Q:`` and ``A:``
lines, ``Recalled:`` and ``Results so far:`` with fenced texts, then ``Task:``. Plain conversations (window memory) are
read message by message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, cast

from agboss_memory.messages import Message
from agboss_memory.records import Record

Speaker = Literal["user", "summary", "recalled", "result", "assistant"]

EARLIER = "Earlier turns:"
PREVIOUS = "Previous turns:"
RECALLED = "Recalled:"
RESULTS = "Results so far:"
TASK = "Task:"
TO_SUMMARISE = "Turns to summarise:"
BEFORE = "Turns before (context only):"

QUOTING = (
    'You said: "',
    "From the summary",
    'I recall: "',
    'An earlier step said: "',
    'I answered: "',
    "I find nothing",
    "Noted:",
)
"""How the extractive model's own answers begin; they are never quoted again."""

_TALK = re.compile(r"<conversation>\n(.*?)</conversation>", re.DOTALL)
_SPOKEN = re.compile(
    r"^(User|Assistant|Result of [^:\n]*): (.*?)(?=^(?:User|Assistant|Result of [^:\n]*): |^Assistant calls |\Z)",
    re.DOTALL | re.MULTILINE,
)
"""A line of a transcript and what follows it up to the next one."""

_HEADINGS = (EARLIER, PREVIOUS, RECALLED, RESULTS, TO_SUMMARISE, BEFORE)
_OPEN, _CLOSE = "<summary", "</summary>"
_FENCES = ("<recalled", "</recalled>", "<result", "</result>")
_RANGE = re.compile(r'"([^"]*)"')
_SENTENCE = re.compile(r"[^.!?。！？\n]+(?:[.!?。！？]+(?!\s|$)[^.!?。！？\n]+)*[.!?。！？]*[\"')\]]*")
_STATUS = re.compile(r"^\[(failed|guarded|cancelled|paused|running)\]", re.IGNORECASE)


class Statement(Record, kw_only=True):
    """One sentence of a view.

    Attributes:
        text: The sentence.
        speaker: Who stated it.
        turns: The range of the summary that holds it, such as ``1–2``; else empty.
    """

    text: str
    speaker: Speaker
    turns: str = ""

    @property
    def asks(self) -> bool:
        """Whether it is a question, which answers nothing."""
        return self.text.rstrip("\"')]").endswith(("?", "？"))


class Sight(Record, kw_only=True):
    """What is in sight of one call: the task, and statements, oldest first."""

    task: str
    statements: tuple[Statement, ...] = ()


def sentences(text: str) -> list[str]:
    """The sentences of a text; a line break ends one too."""
    found = (match.group().strip() for match in _SENTENCE.finditer(text))
    return [sentence for sentence in found if any(character.isalnum() for character in sentence)]


def look(system: str, messages: Sequence[Message]) -> Sight:
    """Read a view: its last user message holds the task, all before it is the past."""
    newest = max((at for at, message in enumerate(messages) if message.role == "user"), default=-1)
    seen, _ = _unfenced(system)
    for message in messages[: max(newest, 0)]:
        seen.extend(_of_message(message))
    task = ""
    if newest >= 0:
        past, task = split_task(messages[newest].content)
        seen.extend(_of_sections(past))
    for message in messages[newest + 1 :]:
        seen.extend(_of_message(message))
    return Sight(task=spoken(task), statements=tuple(seen))


def split_task(text: str) -> tuple[str, str]:
    """The past and the task of a turn-memory view. A text without headings is a task alone."""
    lines = text.split("\n")
    if not lines[0].strip().startswith((*_HEADINGS, TASK)):
        return "", text
    last = max((at for at, line in enumerate(lines) if line.startswith(TASK)), default=-1)
    if last < 0:
        return text, ""
    return "\n".join(lines[:last]), "\n".join(lines[last:])[len(TASK) :].strip()


def spoken(task: str) -> str:
    """The words of a task: of a typed start (JSON) its text values."""
    if not task.lstrip().startswith(("{", "[")):
        return task
    try:
        return "\n".join(_texts(json.loads(task)))
    except (ValueError, RecursionError):
        return task


def turns_to_summarise(messages: Sequence[Message]) -> tuple[list[str], list[Statement]]:
    """The tasks and the statements of a compaction prompt; its context-only turns are left out."""
    text = "\n".join(message.content for message in messages if message.role == "user")
    talk = _TALK.search(text)
    if talk is not None:
        return _of_talk(text[: talk.start()], talk[1])
    section = _section(text, TO_SUMMARISE)
    if section is None:
        return [], [statement for message in messages for statement in _of_message(message)]
    pairs = list(_pairs(section))
    return [said for letter, said in pairs if letter == "Q"], list(_of_pairs(pairs))


def _of_talk(before: str, talk: str) -> tuple[list[str], list[Statement]]:
    """What a transcript says: the summary that it goes on from, then line by line who said what."""
    summaries, _ = _unfenced(before)
    tasks: list[str] = []
    found = list(summaries)
    for who, said in _SPOKEN.findall(talk):
        if who == "User":
            tasks.append(said.strip())
            found += _stated(said, "user")
        elif who == "Assistant":
            found += _answered(said, "assistant")
        else:
            found += _stated(said, "result")
    return tasks, found


def own_words(text: str) -> bool:
    """Whether an answer is one of the extractive model's own phrases."""
    return text.lstrip().startswith(QUOTING)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in cast("dict[str, Any]", value).values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _texts(item)


def _of_message(message: Message) -> Iterator[Statement]:
    summaries, rest = _unfenced(message.content)
    yield from summaries
    if message.role == "user":
        past, task = split_task(rest)
        yield from _of_sections(past)
        yield from _stated(spoken(task), "user")
    elif message.role == "tool":
        yield from _stated(rest, "result")
    elif message.role == "assistant":
        yield from _answered(rest, "assistant")


def _of_sections(past: str) -> Iterator[Statement]:
    summaries, rest = _unfenced(past)
    yield from summaries
    yield from _stated(_inside(_section(rest, RECALLED) or ""), "recalled")
    yield from _of_pairs(_pairs(_section(rest, PREVIOUS) or ""))
    yield from _answered(_inside(_section(rest, RESULTS) or ""), "result")


def _inside(section: str) -> str:
    """A section without the lines of its fences, which nobody said."""
    return "\n".join(line for line in section.split("\n") if not line.startswith(_FENCES))


def _section(text: str, heading: str) -> str | None:
    lines = text.split("\n")
    if heading not in lines:
        return None
    start = lines.index(heading) + 1
    end = next((at for at in range(start, len(lines)) if lines[at] in (*_HEADINGS, TASK)), len(lines))
    return "\n".join(lines[start:end])


def _pairs(section: str) -> Iterator[tuple[str, str]]:
    letter, lines = "", list[str]()
    for line in section.split("\n"):
        if line.startswith(("Q:", "A:")):
            if letter:
                yield letter, "\n".join(lines)
            letter, lines = line[0], [line[2:].strip()]
        else:
            lines.append(line)
    if letter:
        yield letter, "\n".join(lines)


def _of_pairs(pairs: Iterable[tuple[str, str]]) -> Iterator[Statement]:
    for letter, text in pairs:
        yield from _stated(spoken(text), "user") if letter == "Q" else _answered(text, "assistant")


def _answered(text: str, speaker: Speaker) -> Iterator[Statement]:
    if not _STATUS.match(text.strip()) and not own_words(text):
        yield from (said for said in _stated(text, speaker) if not own_words(_after_label(said.text)))


def _after_label(text: str) -> str:
    label, colon, rest = text.partition(": ")
    return rest if colon and " " not in label else text


def _stated(text: str, speaker: Speaker, turns: str = "") -> Iterator[Statement]:
    for sentence in sentences(text):
        yield Statement(text=sentence, speaker=speaker, turns=turns)


def _unfenced(text: str) -> tuple[list[Statement], str]:
    """The statements of all fenced summaries, and the text without them. Linear, however many fences stay open."""
    found, rest, at = list[Statement](), list[str](), 0
    while (start := text.find(_OPEN, at)) >= 0 and (end := text.find(_CLOSE, start)) >= 0:
        opening, _, body = text[start:end].partition(">")
        turns = _RANGE.search(opening)
        found.extend(_stated(body, "summary", turns[1] if turns else ""))
        rest.append(text[at:start])
        at = end + len(_CLOSE)
    return found, "".join((*rest, text[at:]))
