"""A thread as JSON Lines: lossless, and refused by name when a line is wrong."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agboss_memory.errors import CopyError
from agboss_memory.messages import (
    AttachmentRecord,
    Block,
    Message,
    Summary,
    Tern,
    TernStatus,
    ThinkingPart,
    ToolCall,
    UsageRecord,
)
from agboss_memory.records import replace
from agboss_memory.stores import MemoryStore, SummaryCopy, TernCopy, ThreadCopy, dump_thread, load_thread
from agboss_memory.stores.contract import BookedUsage, PendingWork
from agboss_memory.stores.copies import MessageCopy
from agboss_memory.stores.jsonl import MOST_COUNT, MOST_USD
from agboss_memory.testing.store_copies import eventful
from agboss_memory.testing.store_requests import NOW, ref

TEXT = st.text(st.characters(), max_size=20) | st.sampled_from(("\ud800", "\x00\x10", "\u2028\n\r"))
MOMENT = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
COUNT = st.integers(0, MOST_COUNT)
SOME = st.none() | COUNT
USAGE = st.builds(
    UsageRecord,
    caller=TEXT,
    model=TEXT,
    input_tokens=COUNT,
    usd=st.none() | st.decimals(0, 10, places=9),
    source=st.sampled_from(("api", "unknown")),
)
BOOKED = st.builds(BookedUsage, step_key=TEXT, record=USAGE)
FILES = st.lists(st.builds(AttachmentRecord, name=TEXT, media_type=TEXT, size=COUNT, id=TEXT), max_size=2).map(tuple)
STATUS = st.sampled_from([status for status in TernStatus if status is not TernStatus.RUNNING])
TERN = st.builds(
    Tern,
    number=st.integers(1, 9),
    task=TEXT,
    answer=TEXT,
    status=STATUS,
    path=st.lists(TEXT, max_size=2).map(tuple),
    output=st.none() | TEXT,
    started_at=MOMENT,
    finished_at=st.none() | MOMENT,
    tokens=SOME,
    attachments=FILES,
)
CALL = st.builds(ToolCall, id=TEXT, name=TEXT, arguments=TEXT)
MESSAGE = st.builds(
    Message,
    role=st.sampled_from(("user", "assistant", "system")),
    content=TEXT,
    tool_calls=st.lists(CALL, max_size=2).map(tuple),
    thinking=st.lists(st.builds(ThinkingPart, text=TEXT, data=TEXT), max_size=2).map(tuple),
    agent=TEXT,
    tokens=SOME,
    attachments=FILES,
    created_at=MOMENT,
)
SUMMARY = st.builds(Summary, first=COUNT, last=COUNT, text=TEXT, usd=st.none() | st.just(Decimal("1.50")), agent=TEXT)
COPY = st.builds(
    ThreadCopy,
    workflow=TEXT,
    thread=TEXT,
    owner=st.none() | TEXT,
    created_at=MOMENT,
    updated_at=MOMENT,
    terns=st.lists(
        st.builds(TernCopy, tern=TERN, usage=st.lists(BOOKED, max_size=2).map(tuple), idempotency_key=st.none() | TEXT),
        max_size=3,
    ).map(tuple),
    messages=st.lists(st.builds(MessageCopy, message=MESSAGE, place=COUNT), max_size=3).map(tuple),
    summaries=st.lists(st.builds(SummaryCopy, summary=SUMMARY, superseded_by=SOME), max_size=2).map(tuple),
    blocks=st.lists(st.builds(Block, first=COUNT, last=COUNT, error=TEXT), max_size=2).map(tuple),
    work=st.lists(st.builds(PendingWork, tern=COUNT, strategy=TEXT), max_size=2).map(tuple),
    unbound=st.lists(BOOKED, max_size=2).map(tuple),
)


@given(COPY)
def test_b112_any_thread_comes_back_as_the_same_records(copy: ThreadCopy) -> None:
    lines = list(dump_thread(copy))
    assert all(line.isascii() and line.count("\n") == 1 for line in lines)
    assert load_thread(lines) == copy
    assert load_thread("".join(lines).split("\n")) == copy


async def lines_of() -> list[str]:
    store = MemoryStore()
    await eventful(store)
    return list(dump_thread(await store.copy(ref(owner="me"))))


def changed(lines: list[str], at: int, change: Callable[[dict[str, Any]], Any]) -> list[str]:
    values = json.loads(lines[at])
    change(values)
    return [*lines[:at], json.dumps(values), *lines[at + 1 :]]


async def test_a_wrong_line_is_named() -> None:
    lines = await lines_of()
    wrong: list[tuple[list[str], str, int | None]] = [
        ([], "copy.malformed", 1),
        (lines[1:], "copy.malformed", 1),
        ([*lines[:2], "{", *lines[3:]], "copy.malformed", 3),
        ([*lines[:2], "[1]", *lines[3:]], "copy.malformed", 3),
        ([*lines[:2], "[" * 100_000, *lines[3:]], "copy.malformed", 3),
        (changed(lines, 0, lambda v: v.update(format=2)), "copy.unknown-format", 1),
        (changed(lines, 0, lambda v: v.update(format=True)), "copy.unknown-format", 1),
        (changed(lines, 0, lambda v: v.pop("format")), "copy.unknown-format", 1),
        (changed(lines, 0, lambda v: v.pop("workflow")), "copy.malformed", 1),
        (changed(lines, 0, lambda v: v.update(lease=1)), "copy.malformed", 1),
        (changed(lines, 1, lambda v: v.update(type="note")), "copy.malformed", 2),
        (changed(lines, 1, lambda v: v.update(type=["tern"])), "copy.malformed", 2),
        (changed(lines, 1, lambda v: v["tern"].update(number="1")), "copy.malformed", 2),
        (changed(lines, 1, lambda v: v["tern"].update(status="done")), "copy.malformed", 2),
        (changed(lines, 1, lambda v: v["tern"].update(colour="red")), "copy.malformed", 2),
        (changed(lines, 1, lambda v: v["usage"][0]["record"].update(colour="red")), "copy.malformed", 2),
        (changed(lines, 1, lambda v: v["tern"].update(started_at="yesterday")), "copy.malformed", 2),
        (changed(lines, 1, lambda v: v["usage"][0]["record"].update(usd="much")), "copy.malformed", 2),
        ([*lines, lines[1]], "copy.malformed", len(lines) + 1),
        (lines[:-1], "copy.cut-off", None),
        (lines[:-2] + lines[-1:], "copy.cut-off", None),
    ]
    for given_lines, code, number in wrong:
        with pytest.raises(CopyError) as caught:
            load_thread(given_lines)
        assert (caught.value.code, caught.value.data.get("line")) == (code, number)
        assert caught.value.hint


@pytest.mark.parametrize("number", [-1, MOST_COUNT + 1, 2**63, 10**30])
@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("tern", ("tern", "tokens")),
        ("tern", ("usage", 0, "record", "input_tokens")),
        ("message", ("place",)),
        ("summary", ("tern",)),
        ("block", ("attempts",)),
    ],
)
async def test_a_number_that_a_store_would_not_take_is_refused_by_its_line(
    kind: str, path: tuple[Any, ...], number: int
) -> None:
    lines = await lines_of()
    at = next(at for at, line in enumerate(lines) if json.loads(line)["type"] == kind)

    def change(values: Any) -> None:
        for part in path[:-1]:
            values = values[part]
        values[path[-1]] = number

    with pytest.raises(CopyError, match=rf"Line {at + 1} .*{path[-1]} is no whole number") as caught:
        load_thread(changed(lines, at, change))
    assert (caught.value.code, caught.value.data["line"]) == ("copy.malformed", at + 1)


@pytest.mark.parametrize("usd", ["1e400", "-0.5", "NaN", "sNaN", "Infinity", str(MOST_USD + 1)])
async def test_a_cost_that_a_store_would_not_take_is_refused_by_its_line(usd: str) -> None:
    lines = await lines_of()
    wrong = changed(lines, 1, lambda v: v["usage"][0]["record"].update(usd=usd))
    with pytest.raises(CopyError, match=r"Line 2 .*usd") as caught:
        load_thread(wrong)
    assert caught.value.code == "copy.malformed"


@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"])
@pytest.mark.parametrize(
    ("kind", "path"), [("thread", "created_at"), ("tern", "started_at"), ("message", "created_at")]
)
async def test_a_moment_that_utc_does_not_have_is_refused_by_its_line(kind: str, path: str, moment: str) -> None:
    lines = await lines_of()
    at = next(at for at, line in enumerate(lines) if json.loads(line)["type"] == kind)
    wrong = changed(lines, at, lambda v: (v if kind == "thread" else v[kind]).update({path: moment}))
    with pytest.raises(CopyError, match=rf"Line {at + 1} .*{path} is no moment in UTC"):
        load_thread(wrong)


async def test_b110_fields_that_are_missing_get_their_defaults() -> None:
    lines = await lines_of()
    bare = changed(lines, 1, lambda v: [v["tern"].pop(name) for name in ("agent", "path", "version", "tokens")])
    tern = load_thread(bare).terns[0].tern
    assert (tern.agent, tern.path, tern.version, tern.tokens) == ("", (), "", None)


def test_a_moment_without_a_zone_is_read_as_utc() -> None:
    local = NOW.astimezone(UTC).replace(tzinfo=None)
    tern = Tern(number=1, task="q", started_at=local, finished_at=local)
    copy = ThreadCopy(
        workflow="w", thread="t", owner=None, created_at=local, updated_at=local, terns=(TernCopy(tern=tern),)
    )
    loaded = load_thread(dump_thread(copy))
    moments = (loaded.created_at, loaded.updated_at, loaded.terns[0].tern.started_at, loaded.terns[0].tern.finished_at)
    assert set(moments) == {NOW}


def talk(said: tuple[Message, ...]) -> ThreadCopy:
    """A thread of one Tern in which this was said."""
    tern = Tern(number=1, task="q", answer="a", started_at=NOW, finished_at=NOW)
    return ThreadCopy(
        workflow="w",
        thread="t",
        owner=None,
        created_at=NOW,
        updated_at=NOW,
        terns=(TernCopy(tern=tern),),
        messages=tuple(MessageCopy(message=message, place=place) for place, message in enumerate(said)),
    )


async def test_a_line_of_a_result_that_comes_twice_is_refused_by_whoever_takes_the_copy_in() -> None:
    calls = (ToolCall(id="c", name="find"),)
    asks = Message(role="assistant", tool_calls=calls, agent="a", number=1, tern=1)
    found = Message(role="tool", content="x", tool_call_id="c", agent="a", number=2, tern=1)
    copy = talk((asks, found, found))
    loaded = load_thread(dump_thread(copy))
    with pytest.raises(CopyError, match="message"):
        await MemoryStore().restore(loaded)


async def test_b057_of_several_results_of_one_call_the_last_counts() -> None:
    def result(number: int, content: str, call: str = "c") -> Message:
        return Message(role="tool", content=content, tool_call_id=call, agent="a", number=number, tern=1)

    calls = (ToolCall(id="c", name="find"), ToolCall(id="d", name="find"))
    asks = Message(role="assistant", tool_calls=calls, agent="a", tern=1)
    said = (
        replace(asks, number=1),
        result(2, "first"),
        result(3, "other", "d"),
        result(4, "second"),
        result(5, "last"),
        replace(asks, number=6),
        result(7, "anew"),
        Message(role="user", content="elsewhere", agent="b", number=1, tern=1),
    )
    summaries = (
        SummaryCopy(summary=Summary(first=1, last=5, text="s", agent="a", id=1, kind="k", created_at=NOW)),
        SummaryCopy(summary=Summary(first=6, last=7, text="s", agent="a", id=2, kind="k", created_at=NOW)),
    )
    copy = replace(talk(said), summaries=summaries)
    loaded = load_thread(dump_thread(copy))
    assert [(item.message.number, item.message.content) for item in loaded.messages if item.message.agent == "a"] == [
        (1, ""),
        (2, "last"),
        (3, "other"),
        (4, ""),
        (5, "anew"),
    ]
    assert [(item.summary.first, item.summary.last) for item in loaded.summaries] == [(1, 3), (4, 5)]
    store = MemoryStore()
    with pytest.raises(CopyError):
        await store.restore(copy)
    await store.restore(loaded)
    assert await store.check() == ()
