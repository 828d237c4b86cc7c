# ruff: noqa: D102, S101
"""Final transactions, pages and deletion: what every store does."""

from __future__ import annotations

from pathlib import Path

import pytest

from agboss_memory.errors import (
    LeaseLostError,
    ThreadDeletedError,
)
from agboss_memory.messages import Block, Message, TernStatus, ThinkingPart, ToolCall
from agboss_memory.records import replace
from agboss_memory.stores.contract import (
    MemoryOutcome,
    MessagePage,
    TernPage,
)
from agboss_memory.testing.store_requests import (
    DAY,
    NOW,
    WIDE,
    admission,
    all_terns,
    booked,
    conversation,
    ending,
    numbers,
    pair,
    ref,
    run_tern,
    run_terns,
    summary_write,
    version_of,
)
from agboss_memory.testing.store_suite import StoreSuite


class Commits(StoreSuite):
    """How a Tern ends, and how it is read."""

    async def test_a_finished_tern_comes_back_whole(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            admitted = await store.admit(admission(metadata="{}"))
            usage = (booked("z"), booked("a", usd=None, source="unknown"), booked("m", purpose="route"))
            fields = {"output": '{"x":1}', "error": "none", "error_code": "e", "path": ("desk", "α")}
            commit = ending(admitted, tern=fields, usage=usage)
            await store.commit(commit)
            (tern,) = await all_terns(store, admitted.key)
            assert tern == replace(commit.tern, metadata="{}", usage=tuple(item.record for item in usage))

    async def test_b054_n_terns_make_n_records_and_2n_messages(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            last = await run_terns(store, 3)
            assert len(await all_terns(store, last.key)) == 3
            messages = await store.messages(last.key, MessagePage(agent="desk"))
            assert [m.content for m in messages] == ["q1", "a1", "q2", "a2", "q3", "a3"]
            assert [m.number for m in messages] == [1, 2, 3, 4, 5, 6]
            assert [m.tern for m in messages] == [1, 1, 2, 2, 3, 3]

    async def test_messages_come_back_whole(self, tmp_path: Path) -> None:
        calls = (ToolCall(id="c1", name="find", arguments='{"q": "\\u0000"}'), ToolCall(id="c2", name="find"))
        thinking = (ThinkingPart(text="hm\x00", signature="s", provider="p", data='{"\ud800":1}'),)
        said = (
            Message(role="system", content="be brief", agent="a"),
            Message(role="user", content="hi", agent="a", created_at=NOW, tokens=0),
            Message(role="assistant", content="", agent="a", tool_calls=calls, thinking=thinking),
            Message(role="tool", content="", agent="b"),
            Message(
                role="tool",
                content="r" * 3000,
                agent="a",
                tool_call_id="c1",
                tool_name="find",
                compressed_content="stub",
                compressed_tokens=1,
                tokens=9,
                tokenizer="x",
            ),
            Message(role="assistant", content="hello", agent="a"),
            Message(role="user", content="hello", agent="a"),
        )
        async with self.opened(tmp_path) as store:
            admitted = await store.admit(admission())
            await store.commit(ending(admitted, messages=said))
            stored = await store.messages(admitted.key, MessagePage(agent=None, tern=1))
            places = iter(range(1, 10))
            expected = tuple(replace(m, number=1 if m.agent == "b" else next(places), tern=1) for m in said)
            assert stored == expected
            own = await store.messages(admitted.key, MessagePage(agent="a", tern=1))
            assert own == tuple(m for m in expected if m.agent == "a")

    async def test_b104_pages_of_messages_go_by_number(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            key = (await run_terns(store, 5)).key
            newest = await store.messages(key, MessagePage(agent="desk", limit=3))
            assert [m.number for m in newest] == [8, 9, 10]
            older = await store.messages(key, MessagePage(agent="desk", before=8, limit=3))
            assert [m.number for m in older] == [5, 6, 7]
            assert await store.messages(key, MessagePage(agent="nobody")) == ()

    async def test_pages_of_terns(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            key = (await run_terns(store, 5)).key
            for page, expected in (
                (TernPage(limit=2), [1, 2]),
                (TernPage(limit=2, newest=True), [4, 5]),
                (TernPage(after=2), [3, 4, 5]),
                (TernPage(before=4, newest=True, limit=2), [2, 3]),
                (TernPage(after=1, before=3), [2]),
                (TernPage(limit=0), []),
            ):
                assert numbers(await store.terns(key, page)) == expected
            assert await store.terns(key + 99, TernPage()) == ()

    async def test_a_second_commit_is_refused(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            admitted, _ = await run_tern(store)
            before = await version_of(store)
            with pytest.raises(LeaseLostError):
                await store.commit(ending(admitted, "again", messages=conversation("hi", "again")))
            assert await version_of(store) == before
            assert len(await store.messages(admitted.key, MessagePage(agent="desk"))) == 2

    async def test_a_paused_tern_is_not_finished(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            paused = await store.admit(admission(idempotency_key="k"))
            await store.commit(ending(paused, status=TernStatus.PAUSED, blocks=pair(1, 1)))
            state = await store.thread(ref(), WIDE)
            assert (state.window.terns, state.info.running) == ((), False)
            assert await store.blocks(paused.key, ["open"], 10) == (Block(first=1, last=1, state="open"),)
            repeat = await store.admit(admission(idempotency_key="k"))
            assert repeat.kind == "repeat"
            assert repeat.tern is not None
            assert repeat.tern.status is TernStatus.PAUSED
            assert (await run_tern(store))[0].number == 2

    async def test_b065_a_deleted_thread_stays_deleted(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            admitted = await store.admit(admission(idempotency_key="k"))
            await store.delete_thread(ref())
            with pytest.raises(ThreadDeletedError) as caught:
                await store.commit(ending(admitted, usage=(booked(),)))
            assert caught.value.code == "run.thread-deleted"
            with pytest.raises(ThreadDeletedError):
                await store.write_summary(summary_write(admitted, 1, 2))
            with pytest.raises(ThreadDeletedError):
                await store.settle(MemoryOutcome(key=admitted.key, tern=1, now=NOW))
            assert await store.threads("w", None, None, 10) == ()
            assert await store.retire(admitted.key, 1, NOW) is None
            again = await store.admit(admission(idempotency_key="k"))
            assert (again.kind, again.number) == ("admitted", 1)
            assert again.key != admitted.key
            with pytest.raises(ThreadDeletedError):
                await store.commit(ending(admitted))

    async def test_what_was_booked_before_the_end_is_booked_once(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            admitted = await store.admit(admission())
            early = MemoryOutcome(key=admitted.key, tern=1, now=NOW, usage=(booked("a"),))
            await store.settle(early)
            assert await store.check() == ()
            await store.commit(ending(admitted, usage=(booked("a"), booked("b"), booked("b"))))
            await store.settle(replace(early, usage=(booked("a"), booked("b"), booked("c"))))
            (tern,) = await all_terns(store, admitted.key)
            assert len(tern.usage) == 3
            assert (await store.day_spend("w", DAY)).model_calls == 3
            assert await store.check() == ()
