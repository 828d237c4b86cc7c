"""Rows of the cases: files of a task on their way to the model, and a mapper of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from window_memory import C4, Summariser, call, chat, memory_of, result, said, stored

from agboss_memory import (
    Attachment,
    AttachmentRecord,
    DefaultLlmMessageMapper,
    LlmMessageMapper,
    MapRequest,
    MediaPart,
    Memory,
    Message,
    PartContentReader,
    PartRequest,
    PlaceholderContext,
    Store,
    ThinkingPart,
    WindowView,
)
from agboss_memory.errors import InvalidInputError, StrategyError

CAT = Attachment.from_bytes(b"\x89PNG\r\n\x1a\n" + b"c" * 300_000, name="cat.png")
PAPER = Attachment.from_bytes(b"%PDF-1.7 " + b"p" * 299_991, name="paper.pdf")
ASKED = Message(role="user", content="What is this?")
KINDS: tuple[dict[str, Any], ...] = (
    {"kind": "summarizing_window"},
    {"kind": "auto_compact"},
    {"kind": "windowed"},
    {"kind": "full"},
    {"kind": "none"},
)


def seeing(store: Store, config: dict[str, Any] | None = None, **given: Any) -> Memory:
    """A memory whose model takes images and documents, with a window of 20,000."""
    return memory_of(store, config, **{"window": 20_000, "accepts": ("image", "document"), **given})


async def test_m130_an_image_of_the_current_turn_goes_as_it_is(store: Store) -> None:
    memory = seeing(store)
    await memory.remember("t", [ASKED], attachments=[CAT, PAPER])
    (message,) = (await memory.view("t")).messages
    assert message.content == (
        "Attached: cat.png (image/png, 300.0 kB)\nAttached: paper.pdf (application/pdf, 300.0 kB)\nWhat is this?"
    )
    assert [(part.kind, part.data) for part in message.media] == [("image", CAT.data), ("document", PAPER.data)]
    assert message.attachments == ()


async def test_m130_what_the_model_does_not_take_is_a_placeholder_behind_the_text(store: Store) -> None:
    memory = seeing(store, accepts=("document",))
    await memory.remember("t", [ASKED], attachments=[CAT])
    (message,) = (await memory.view("t")).messages
    assert message.content == (
        "Attached: cat.png (image/png, 300.0 kB)\nWhat is this?\n"
        "[image cat.png (image/png, 300.0 kB): not shown, this model does not take such files]"
    )
    assert message.media == ()


async def test_m130_an_image_of_an_earlier_turn_is_a_placeholder(store: Store) -> None:
    memory = seeing(store)
    await memory.remember("t", [ASKED], attachments=[CAT])
    await memory.remember("t", [said("A cat."), Message(role="user", content="Sure?")])
    first, _, newest = (await memory.view("t")).messages
    assert first.content == (
        "What is this?\n[image cat.png (image/png, 300.0 kB): it belongs to an earlier turn and is not shown again]"
    )
    assert (first.media, newest.content, newest.media) == ((), "Sure?", ())


async def test_m130_an_image_stays_through_the_tool_loop_of_its_turn(store: Store) -> None:
    memory = seeing(store)
    await memory.remember("t", [ASKED], attachments=[CAT])
    await memory.remember("t", [call("c1"), result("c1")])
    view = await memory.view("t")
    assert [len(message.media) for message in view.messages] == [1, 0, 0]


async def test_m130_over_20_mib_is_a_placeholder_and_is_not_read(store: Store) -> None:
    class Never(PartContentReader):
        async def read(self, request: PartRequest) -> bytes | None:
            raise AssertionError("nobody needs it")

    memory = seeing(store, reader=Never())
    large = AttachmentRecord(name="large.png", media_type="image/png", size=20 * 2**20 + 1, id="0" * 64)
    await memory.remember("t", [replace(ASKED, attachments=(large,))])
    (message,) = (await memory.view("t")).messages
    assert message.content.endswith(
        "What is this?\n[image large.png (image/png, 21.0 MB): not shown, it is larger than 20 MiB]"
    )


@pytest.mark.parametrize("given", [None, b"", OSError("gone")])
async def test_m130_what_cannot_be_read_is_a_placeholder(store: Store, given: bytes | Exception | None) -> None:
    class Broken(PartContentReader):
        async def read(self, request: PartRequest) -> bytes | None:
            assert (request.thread_id, request.attachment.name) == ("t", "cat.png")
            if isinstance(given, Exception):
                raise given
            return given

    memory = seeing(store, reader=Broken())
    await memory.remember("t", [ASKED], attachments=[CAT])
    (message,) = (await memory.view("t")).messages
    assert message.content.endswith(
        "What is this?\n[image cat.png (image/png, 300.0 kB): not shown, it cannot be read]"
    )


async def test_m130_an_image_type_that_not_every_model_takes_must_be_named(store: Store) -> None:
    tiff = Attachment.from_bytes(b"II*\x00", name="scan.tiff")
    binary = Attachment.from_bytes(b"\x00\x01", name="core.bin")
    for accepts, shown in (
        (("image", "document"), 0),
        (("image", "image/tiff"), 1),
        (("image/tiff", "application/octet-stream"), 2),
    ):
        memory = seeing(store, accepts=accepts)
        thread = "-".join(accepts)
        await memory.remember(thread, [ASKED], attachments=[tiff, binary])
        assert len((await memory.view(thread)).messages[0].media) == shown


async def test_b073_an_image_costs_a_flat_figure_and_reaches_the_model(store: Store) -> None:
    memory = seeing(store, {"kind": "auto_compact"}, window=None)
    await memory.remember("t", [ASKED], attachments=[CAT])
    view = await memory.view("t")
    assert [part.data for part in view.messages[0].media] == [CAT.data]
    assert view.tokens < 1600 + 100
    await memory.remember("t", [said("A cat.")])
    assert (await memory.after_turn("t")).compressed_messages == 0


async def test_media_that_the_window_has_no_room_for_are_placeholders(store: Store) -> None:
    memory = seeing(store, {"kind": "full"}, window=4000)
    cats = [Attachment.from_bytes(CAT.data[:20] + bytes([n]), name=f"{n}.png") for n in range(3)]
    await memory.remember("t", [chat(1500), said("ok"), ASKED], attachments=cats)
    view = await memory.view("t")
    newest = view.messages[-1]
    assert [part.name for part in newest.media] == ["0.png"]
    assert newest.content.count("the model's window has no room for it") == 2
    assert view.tokens <= 4000


async def test_older_messages_make_room_for_an_image(store: Store) -> None:
    memory = seeing(store, {"kind": "full"}, window=4000)
    await memory.remember("t", [chat(1400, "a"), said("ok"), chat(1400, "b"), said("ok"), ASKED], attachments=[CAT])
    view = await memory.view("t")
    assert [part.name for part in view.messages[-1].media] == ["cat.png"]
    assert view.tokens <= 4000
    assert (view.left_out[0].first, view.left_out[0].reason) == (1, "over_window")


async def test_files_need_a_message_of_the_user_and_media_are_never_remembered(store: Store) -> None:
    memory = seeing(store)
    with pytest.raises(InvalidInputError) as refused:
        await memory.remember("t", [said("hello")], attachments=[CAT])
    assert refused.value.code == "memory.no-user-message"
    part = MediaPart(name="x", media_type="image/png", data=b"x")
    with pytest.raises(InvalidInputError) as refused:
        await memory.remember("t", [replace(ASKED, media=(part,))])
    assert refused.value.code == "memory.view-message"


async def test_a_summariser_reads_of_the_file(store: Store) -> None:
    summariser = Summariser("S " * 10)
    memory = seeing(store, {"kind": "auto_compact", "compactAtRatio": 0.01}, model=summariser)
    await memory.remember("t", [ASKED, chat(600), said("A cat.")], attachments=[CAT])
    await memory.after_turn("t")
    assert "cat.png (image/png, 300.0 kB)" in summariser.inputs[0]
    assert "cccc" not in summariser.inputs[0]


class Shouting(LlmMessageMapper):
    """Everything in capitals, and a first message of its own."""

    def __init__(self) -> None:
        self.requests: list[MapRequest] = []

    async def map(self, request: MapRequest) -> Sequence[Message]:
        self.requests.append(request)
        greeting = Message(role="user", content="READ THIS:")
        return [greeting, *(replace(message, content=message.content.upper()) for message in request.messages)]


@pytest.mark.parametrize("config", KINDS, ids=lambda config: config["kind"])
async def test_m131_a_custom_mapper_is_used_by_every_kind_and_by_the_explained_view(
    store: Store, config: dict[str, Any]
) -> None:
    mapper = Shouting()
    memory = seeing(store, config, mapper=mapper)
    await memory.remember("t", [chat(3, "a"), said("yes"), chat(3, "b")], attachments=[CAT])
    view = await memory.view("t")
    assert (view.messages[0].content, view.messages[-1].content) == ("READ THIS:", "B" * 12)
    asked = mapper.requests[0]
    assert (asked.thread_id, asked.agent, asked.accepts) == ("t", "ag", ("image", "document"))
    explained = await memory.explain("t")
    assert [row.shown for row in explained.rows] == [message.content for message in view.messages]
    assert [row.tokens for row in explained.rows] == C4().count([message.content for message in view.messages])
    assert explained.rows[-1].content == "b" * 12
    assert [message.content for message in await stored(memory)] == ["a" * 12, "yes", "b" * 12]


async def test_m131_the_wording_of_the_default_mapper_can_be_changed(store: Store) -> None:
    class Plain(DefaultLlmMessageMapper):
        def placeholder(self, context: PlaceholderContext) -> str:
            return f"({context.attachment.name}: {context.absence})"

    memory = seeing(store, accepts=(), mapper=Plain())
    await memory.remember("t", [ASKED], attachments=[CAT])
    assert (await memory.view("t")).messages[0].content.endswith("What is this?\n(cat.png: not_accepted)")


async def test_m131_the_explained_view_has_each_file_on_a_line_of_its_own(store: Store) -> None:
    memory = seeing(store, system="Be brief.")
    await memory.remember("t", [ASKED], attachments=[CAT, PAPER])
    view, explained = await memory.view("t"), await memory.explain("t")
    assert [(row.shown, row.tokens) for row in explained.rows[1:]] == [
        ("[image cat.png (image/png, 300.0 kB)]", 1600),
        ("[document paper.pdf (application/pdf, 300.0 kB)]", 3000),
    ]
    assert explained.rows[0].shown == view.messages[0].content
    assert explained.rows[0].content == "What is this?"
    assert explained.total_tokens == view.tokens - 4 * len(view.messages)


class Doubling(LlmMessageMapper):
    async def map(self, request: MapRequest) -> Sequence[Message]:
        return [replace(message, content=2 * message.content) for message in request.messages]


async def test_m131_what_a_mapper_adds_still_fits_the_window(store: Store) -> None:
    memory = memory_of(store, {"kind": "full"}, mapper=Doubling())
    await memory.remember(
        "t", [item for n in range(20) for item in (chat(40, str(n % 10)), said("ok"))] + [chat(10, "z")]
    )
    view = await memory.view("t")
    assert view.tokens <= 1000
    assert view.messages[-1].content == "z" * 80
    assert view.left_out[0].reason == "over_window"


async def test_m131_what_a_mapper_makes_of_one_large_message_is_cut(store: Store) -> None:
    memory = memory_of(store, {"kind": "full"}, mapper=Doubling())
    await memory.remember("t", [chat(700, "z")])
    view = await memory.view("t")
    assert view.tokens <= 1000
    assert view.messages[-1].state == "cut"


class Breaking(LlmMessageMapper):
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def map(self, request: MapRequest) -> Sequence[Message]:
        if isinstance(self.answer, Exception):
            raise self.answer
        made: Any = self.answer(request) if callable(self.answer) else self.answer
        return made


@pytest.mark.parametrize(
    ("answer", "code"),
    [(ValueError("no"), "memory.mapper"), (None, "memory.bad-mapping"), (["text"], "memory.bad-mapping")],
)
async def test_a_mapper_that_fails_is_named(store: Store, answer: Any, code: str) -> None:
    memory = memory_of(store, mapper=Breaking(answer))
    await memory.remember("t", [ASKED])
    with pytest.raises(StrategyError, match="Breaking") as failed:
        await memory.view("t")
    assert failed.value.code == code


async def test_m118_the_pairs_hold_whatever_a_mapper_gives(store: Store) -> None:
    thinking = ThinkingPart(text="hm \ud800", signature="s\x00ig", provider="p", data='{"a":1}')

    def mangled(request: MapRequest) -> list[Message]:
        kept = [message for message in request.messages if message.tool_call_id != "c1"]
        return [result("lost"), said("before"), *kept, result("lost")]

    memory = memory_of(store, {"kind": "full"}, mapper=Breaking(mangled))
    await memory.remember("t", [ASKED, replace(call("c1", "c2"), thinking=(thinking,)), result("c1"), result("c2")])
    view: WindowView = await memory.view("t")
    assert [(message.role, message.tool_call_id, message.state) for message in view.messages] == [
        ("user", None, "live"),
        ("assistant", None, "live"),
        ("tool", "c1", "placeholder"),
        ("tool", "c2", "live"),
    ]
    assert view.messages[1].thinking == (thinking,)
    assert [(item.first, item.last, item.reason) for item in view.left_out] == [(3, 3, "not_sent")]
