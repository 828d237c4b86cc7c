"""The last step before a model: stored messages become what the model reads. The one extension point of the read side.

The text of a message stays as it is. Files of the current turn are announced ahead of it and follow it as media parts,
each one the model takes; for every other file a line behind the text says what it is and why it is not there.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence

import agboss_memory.fit as fit
from agboss_memory.atoms import merged, named, paired
from agboss_memory.attachments import PartContentReader, PartRequest
from agboss_memory.contract import Budget, MemoryView
from agboss_memory.errors import AgbossError, StrategyError
from agboss_memory.fit.estimate import counter_of, effective_window, estimate, media_tokens
from agboss_memory.messages import AttachmentRecord, MediaPart, Message, is_text
from agboss_memory.notices import (
    LARGEST_PART,
    Absence,
    NoticeContext,
    PlaceholderContext,
    notice,
    placeholder,
)
from agboss_memory.records import Record, replace
from agboss_memory.wording import told

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What a model that takes images takes; another type must stand in ``accepts`` by itself."""

ROUNDS = 3
"""How often a view is fitted again because the mapper added to it, before the mapped messages themselves are cut."""


class MapRequest(Record, kw_only=True):
    """What is to be mapped.

    Attributes:
        messages: The view as strategy and Fit left it, oldest first: stored messages, stubs and cuts in place.
        thread_id: The thread.
        owner: Its owner, None when it has none.
        agent: Name of the agent that will read it.
        model: Id of its model.
        tern: Number of the current Tern; 0 = there are no Terns, the current turn begins at the newest user message.
        task: The current task as it stands at the end of its message; files are announced ahead of it.
        accepts: Kinds (``image``, ``document``, ``audio``, ``video``) and media types that the model takes.
        room: Tokens that media may take, None = the window is unknown.
        reader: Reads the bytes of files, None = none can be read.
    """

    messages: tuple[Message, ...]
    thread_id: str = ""
    owner: str | None = None
    agent: str = ""
    model: str = ""
    tern: int = 0
    task: str = ""
    accepts: tuple[str, ...] = ()
    room: int | None = None
    reader: PartContentReader | None = None


class LlmMessageMapper(ABC):
    """Turns stored messages into the model's messages. One object serves all agents and threads."""

    @abstractmethod
    async def map(self, request: MapRequest) -> Sequence[Message]:
        """The messages to send, oldest first. The framework pairs calls and results of whatever comes back.

        A message that is not to change is given back as it is, another is changed with ``replace`` so that it keeps its
        number: one whose number is missing is named as left out (``not_sent``). ``content`` is the text that is sent, ``media`` what is
        sent beside it. Thinking blocks must pass byte-identical. An error fails the Tern and names the mapper.
        """


class DefaultLlmMessageMapper(LlmMessageMapper):
    """The mapper that is used when no other is given. Its wording can be changed by overriding the two methods."""

    async def map(self, request: MapRequest) -> Sequence[Message]:
        """See ``LlmMessageMapper.map``. Does nothing when there are no attachments."""
        if not any(message.attachments for message in request.messages):
            return request.messages
        begin = _current(request)
        room = _Room(request.room)
        mapped: list[Message] = []
        for index, message in enumerate(request.messages):
            if not message.attachments:
                mapped.append(message)
            elif index >= begin or (request.tern and message.tern == request.tern):
                mapped.append(await self._shown(request, message, room))
            else:
                lines = [self._placeholder(item, "earlier") for item in message.attachments]
                mapped.append(replace(message, content=_lined((), message.content, lines), attachments=()))
        return mapped

    def notice(self, context: NoticeContext) -> str:
        """The line ahead of the text that announces a file of the current turn."""
        return notice(context)

    def placeholder(self, context: PlaceholderContext) -> str:
        """The line that stands for a file that is not shown."""
        return placeholder(context)

    def _placeholder(self, attachment: AttachmentRecord, absence: Absence) -> str:
        return self.placeholder(PlaceholderContext(attachment=attachment, absence=absence))

    async def _shown(self, request: MapRequest, message: Message, room: _Room) -> Message:
        notices: list[str] = []
        lines: list[str] = []
        media: list[MediaPart] = []
        for item in message.attachments:
            notices.append(self.notice(NoticeContext(attachment=item)))
            part = await _part(request, item, room)
            if isinstance(part, MediaPart):
                media.append(part)
            else:
                lines.append(self._placeholder(item, part))
        whole = message.content
        task = request.task if request.task and whole.endswith(request.task) else whole
        content = whole[: len(whole) - len(task)] + _lined(notices, task, lines)
        return replace(message, content=content, attachments=(), media=tuple(media))


class _Room:
    """Tokens that are left for media."""

    def __init__(self, tokens: int | None) -> None:
        self._tokens = tokens

    def take(self, tokens: int) -> bool:
        if self._tokens is None:
            return True
        if tokens > self._tokens:
            return False
        self._tokens -= tokens
        return True


def _current(request: MapRequest) -> int:
    """Where the current turn begins, when Terns do not say it."""
    if request.tern:
        return len(request.messages)
    return max((n for n, m in enumerate(request.messages) if m.role == "user" and not m.synthetic), default=0)


def _lined(notices: Sequence[str], text: str, placeholders: Sequence[str]) -> str:
    return "\n".join((*notices, *([text] if text else ()), *placeholders))


async def _part(request: MapRequest, item: AttachmentRecord, room: _Room) -> MediaPart | Absence:
    if not accepted(item, request.accepts):
        return "not_accepted"
    if item.size > LARGEST_PART:
        return "too_large"
    data = await _bytes(request, item)
    if not data:
        return "unreadable"
    if len(data) > LARGEST_PART:
        return "too_large"
    if not room.take(media_tokens(item.kind, len(data))):
        return "no_room"
    return MediaPart(name=item.name, media_type=item.media_type, data=data)


async def _bytes(request: MapRequest, item: AttachmentRecord) -> bytes | None:
    if request.reader is None:
        return None
    try:
        asked = PartRequest(attachment=item, thread_id=request.thread_id, owner=request.owner)
        return await request.reader.read(asked)
    except Exception:
        return None  # a reader of the user's own; the placeholder tells it


def accepted(item: AttachmentRecord, accepts: Sequence[str]) -> bool:
    """Whether a model that takes these kinds and media types takes the file. Text of any type passes as plain text."""
    if item.media_type in accepts or (is_text(item.media_type) and "text/plain" in accepts):
        return True
    if item.kind == "image" and item.media_type not in IMAGE_TYPES:
        return False
    return item.kind in accepts


def maps_text_alone(mapper: LlmMessageMapper) -> bool:
    """Whether the mapper leaves messages without attachments as they are: the one that is used by default does."""
    return type(mapper) is DefaultLlmMessageMapper


class Prepared(Record, kw_only=True):
    """A view that fits its window: the view, its messages, and the task as it stands in them."""

    view: MemoryView
    messages: tuple[Message, ...]
    task: str = ""


class LastStep(Record, kw_only=True):
    """Everything between Fit and the model.

    Attributes:
        mapper: What maps.
        request: The mapping; ``messages``, ``task`` and ``room`` are filled in here.
        prepare: Gives the fitted view when so many tokens of the window are kept free for what the mapper adds.
        fixed: System text and tool schemas, as they are sent with a view.
        budget: Window, reply reserve and counter.
        exact: An unknown window counts as 8192 tokens; else nothing is bounded by it.
    """

    mapper: LlmMessageMapper
    request: MapRequest
    prepare: Callable[[int], Awaitable[Prepared]]
    fixed: Callable[[MemoryView], tuple[str, ...]]
    budget: Budget
    exact: bool = False


async def last_step(step: LastStep) -> Prepared:
    """What the model gets, within its window whatever the mapper adds.

    Raises:
        StrategyError: ``memory.mapper``, ``memory.bad-mapping``, and what Fit raises.
    """
    made = await step.prepare(0)
    if maps_text_alone(step.mapper) and not any(message.attachments for message in made.messages):
        return _told(made, paired(made.messages))
    budget = step.budget
    window = effective_window(budget.window) if step.exact else budget.window
    room = None if window is None else window - budget.reply_reserve
    counter = counter_of(budget)
    extra = 0
    sent = await _mapped(step, made, room)
    for _ in range(ROUNDS):
        if room is None or _same(sent, made.messages):
            return _told(made, sent)
        over = await asyncio.to_thread(estimate, sent, counter, fixed=step.fixed(made.view)) - room
        if over <= 0:
            return _told(made, sent)
        extra += over
        try:
            made = await step.prepare(extra)
        except StrategyError:  # nothing is left to leave out; what the mapper made is cut instead
            break
        sent = await _mapped(step, made, room)
    cut = fit.WindowFit(
        agent=step.request.agent,
        view=MemoryView(messages=sent),
        fixed=step.fixed(made.view),
        budget=replace(budget, window=window),
    )
    fitted = await asyncio.to_thread(fit.fit_window, cut)
    left = merged((*made.view.left_out, *fitted.left_out))
    return _told(replace(made, view=replace(made.view, left_out=left)), paired(fitted.messages or ()))


def _told(made: Prepared, sent: tuple[Message, ...]) -> Prepared:
    """The outcome, with the stored messages that the mapper or the sanitiser left out named as such."""
    if _same(sent, made.messages):
        return made
    known = {message.number for message in sent}
    known.update(n for left in made.view.left_out if left.unit == "messages" for n in range(left.first, left.last + 1))
    gone = {message.number for message in made.messages if message.number > 0} - known
    if not gone:
        return replace(made, messages=sent)
    left = merged((*made.view.left_out, *named((number, "not_sent") for number in gone)))
    return replace(made, view=replace(made.view, left_out=left), messages=sent)


def _same(sent: Sequence[Message], given: Sequence[Message]) -> bool:
    return sent is given or (
        len(sent) == len(given) and all(one is other for one, other in zip(sent, given, strict=True))
    )


async def _mapped(step: LastStep, made: Prepared, room: int | None) -> tuple[Message, ...]:
    request = replace(step.request, messages=made.messages, task=made.task)
    if room is not None and any(message.attachments for message in made.messages):
        used = await asyncio.to_thread(estimate, made.messages, counter_of(step.budget), fixed=step.fixed(made.view))
        request = replace(request, room=max(room - used, room // 2))
    return await mapped(step.mapper, request)


async def mapped(mapper: LlmMessageMapper, request: MapRequest) -> tuple[Message, ...]:
    """What a mapper makes of a request, with calls and results paired.

    Raises:
        StrategyError: ``memory.mapper`` when it raised, ``memory.bad-mapping`` when it gave no messages.
    """
    name = type(mapper).__name__
    try:
        given: object = await mapper.map(request)
    except AgbossError:
        raise
    except Exception as error:
        raise StrategyError(
            "memory.mapper",
            f"mapper {name!r} failed for agent {request.agent!r}: {told(error)}",
            "mend the mapper; the Tern is stored as failed",
        ) from error
    if not isinstance(given, Sequence) or not all(isinstance(message, Message) for message in given):
        raise StrategyError(
            "memory.bad-mapping",
            f"mapper {name!r} gave {type(given).__name__}, not a sequence of messages",
            "return the messages of the request, changed with agboss_memory.records.replace",
        )
    if not any(message.role == "user" for message in given) and any(one.role == "user" for one in request.messages):
        raise StrategyError(
            "memory.bad-mapping",
            f"mapper {name!r} left no message of the user for agent {request.agent!r}",
            "keep the messages of the request; a model is not asked without a question",
        )
    return paired(tuple(given))
