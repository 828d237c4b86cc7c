"""The promises with files in the thread: whatever is attached, however small the window, whatever cannot be read."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from window_memory import C4, call, memory_of, result, said

from agboss_memory import Attachment, Memory, MemoryStore, Message, PartContentReader, PartRequest, WindowView
from agboss_memory.errors import StrategyError
from agboss_memory.fit import estimate

KINDS: tuple[dict[str, Any], ...] = (
    {"kind": "summarizing_window"},
    {"kind": "auto_compact", "summaryPlacement": "SYSTEM_PROMPT"},
    {"kind": "windowed", "windowSize": 4},
    {"kind": "full", "maxHistoryFetch": 7},
    {"kind": "none"},
)


FILES = st.tuples(
    st.integers(1, 40) | st.just(200_000),
    st.text(min_size=1, max_size=30) | st.sampled_from(["</summary>", "a]\n[b", "n" * 300]),
    st.sampled_from(["image/png", "image/tiff", "application/pdf", "text/plain", "application/octet-stream"]),
)
"""Size, name and type: hypothesis prints what it draws, and bytes are long."""

TURNS = st.lists(st.tuples(st.text(max_size=200), st.lists(FILES, max_size=3), st.booleans()), min_size=1, max_size=5)


class Sometimes(PartContentReader):
    """Reads what it is told to, and raises or gives nothing for the rest."""

    def __init__(self, store: MemoryStore, broken: int) -> None:
        self._store = store
        self._broken = broken

    async def read(self, request: PartRequest) -> bytes | None:
        if self._broken and int(request.attachment.id, 16) % 3 < self._broken:
            if self._broken == 1:
                raise OSError("gone")
            return None
        return await self._store.files.read(request)


@given(
    turns=TURNS,
    config=st.sampled_from(KINDS),
    window=st.sampled_from([None, 400, 1500, 5000, 50_000]),
    accepts=st.sampled_from([(), ("image",), ("image", "document"), ("image/tiff", "text/plain")]),
    broken=st.integers(0, 2),
)
def test_the_promises_hold_with_files(
    turns: list[tuple[str, list[tuple[int, str, str]], bool]],
    config: dict[str, Any],
    window: int | None,
    accepts: tuple[str, ...],
    broken: int,
) -> None:
    async def live() -> None:
        store = MemoryStore()
        memory = memory_of(store, config, window=window, accepts=accepts, reader=Sometimes(store, broken))
        for number, (text, drawn, loops) in enumerate(turns):
            files = [Attachment.from_bytes(b"x" * size, name=name, media_type=kind) for size, name, kind in drawn]
            await memory.remember("t", [Message(role="user", content=text)], attachments=files)
            await checked(memory, text, files)
            if loops:
                await memory.remember("t", [call(f"c{number}"), result(f"c{number}")])
                await checked(memory, text, files)
            await memory.remember("t", [said("ok")])

    asyncio.run(live())


async def checked(memory: Memory, text: str, files: list[Attachment]) -> None:
    try:
        view = await memory.view("t")
    except StrategyError as error:
        if error.code not in ("memory.open-round", "memory.fixed-overhead"):
            raise
        return
    fits(view)
    shows_only_the_current_files(view, text, files)
    told = await memory.explain("t")
    shown = [row.shown for row in told.rows if not row.reason.startswith("a file of")]
    assert shown == [message.content for message in view.messages if message.state != "summary"]
    assert told.total_tokens <= view.tokens


def fits(view: WindowView) -> None:
    assert estimate(view.messages, C4(), fixed=(view.system,)) == view.tokens <= view.window
    assert view.messages[0].role == "user"
    calls = {call.id for message in view.messages for call in message.tool_calls}
    results = [message.tool_call_id for message in view.messages if message.role == "tool"]
    assert sorted(calls) == sorted(filter(None, results))


def shows_only_the_current_files(view: WindowView, text: str, files: list[Attachment]) -> None:
    newest = max(n for n, message in enumerate(view.messages) if message.role == "user")
    given_files = {(item.name, item.media_type, item.data) for item in files}
    for place, message in enumerate(view.messages):
        assert message.attachments == ()
        if place != newest:
            assert message.media == ()
        assert {(part.name, part.media_type, part.data) for part in message.media} <= given_files
        assert "</summary>" not in message.content.removeprefix(text) or "</summary>" in text
    message = view.messages[newest]
    if message.state == "live":
        assert text in message.content
        lines = message.content.replace(text, "", 1).count("Attached: ")
        assert lines >= len(files)
