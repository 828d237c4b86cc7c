"""What every door does: find the task in the newest message, find or make the thread, run the Tern."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, cast

from agboss.errors import UnknownThreadError
from agboss.server.endpoint import Call, some_task
from agboss.server.log import TernLog
from agboss.server.problems import ServerError
from agboss.server.runs import Order
from agboss.server.sse import unless_gone
from agboss_memory.attachments import Attachment
from agboss_memory.records import Record


class Question(Record, kw_only=True):
    """The newest message of a client: its text and its files. Earlier ones are in the thread."""

    text: str
    attachments: tuple[Attachment, ...] = ()


def question(messages: Sequence[Mapping[str, Any]], parts: str) -> Question:
    """What the newest message asks; ``parts`` is the key of its content. Raises ServerError."""
    place = f"/messages/{len(messages) - 1}"
    if not messages or messages[-1].get("role") != "user":
        raise _refused("/messages", "the last message must be the user's")
    content = messages[-1].get(parts)
    if isinstance(content, str):
        return Question(text=content)
    if not isinstance(content, list):
        raise _refused(f"{place}/{parts}", "this is neither text nor a list of parts")
    texts: list[str] = []
    files: list[Attachment] = []
    for number, part in enumerate(cast("list[Any]", content)):
        found = _part(part, f"{place}/{parts}/{number}")
        if isinstance(found, str):
            texts.append(found)
        else:
            files.append(found)
    return Question(text="\n".join(texts), attachments=tuple(files))


async def begin(
    call: Call, asked: Question, *, agent: str | None, thread: str | None, create: bool = False
) -> TernLog | None:
    """Run the Tern; a new thread without ``thread``. None = the client has vanished.

    Args:
        call: The request.
        asked: The task.
        agent: Whose thread a new one is.
        thread: Id of the thread.
        create: The client gives ids to threads: make one that does not exist.
    """
    served = call.service.served
    if thread is None:
        place = await served.new_place(agent)  # the App makes the thread, when the key was not used before
    else:
        try:
            place = await served.place(thread, agent, call.owner)
        except UnknownThreadError:
            if not create:
                raise
            place = await served.new_place(agent)
    order = Order(
        opening=lambda: served.app(place.workflow),
        workflow=place.workflow,
        input=some_task(asked.text, asked.attachments),
        thread=thread,
        create=create,
        owner=call.owner,
        idempotency_key=call.request.headers.get("idempotency-key"),
        attachments=asked.attachments,
    )
    return await unless_gone(call.request.receive, call.service.runs.start(order))


def _part(part: Any, place: str) -> str | Attachment:
    """Text, or a file that stands in the message itself. No address is fetched: a client could name any."""
    given = cast("dict[str, Any]", part) if isinstance(part, dict) else {}
    if given.get("type") == "text" and isinstance(given.get("text"), str):
        return given["text"]
    inner = given.get("image_url") or given.get("source") or given
    fields = cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}
    url = fields.get("url", "")
    media_type, value = fields.get("mimeType"), fields.get("value")
    if isinstance(url, str) and url.startswith("data:"):
        head, _, value = url.partition(",")
        media_type = head.removeprefix("data:").removesuffix(";base64")
    if not (isinstance(value, str) and isinstance(media_type, str)):
        raise _refused(place, "only text, and files as data: URLs, are taken")
    try:
        data = base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise _refused(place, "this is no base64") from error
    name = given.get("filename")
    return Attachment.from_bytes(data, name=name if isinstance(name, str) and name else "file", media_type=media_type)


def _refused(pointer: str, what: str) -> ServerError:
    return ServerError(
        "server.bad-body", f"the body is not valid: {pointer}: {what}", "", status=400, problems=((pointer, what),)
    )
