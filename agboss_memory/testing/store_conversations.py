# ruff: noqa: D102, S101
"""Conversations outside Terns, their running sums, stubs and summaries: what every store does."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agboss_memory.errors import ThreadOwnerError, UnknownThreadError
from agboss_memory.messages import Message, Summary
from agboss_memory.stores.contract import Append, MessagePage, Store, SummaryWrite, WindowSpec
from agboss_memory.testing.store_requests import NOW, ref, run_tern
from agboss_memory.testing.store_suite import StoreSuite


def counted(count: int, tokens: int | None = 10) -> tuple[Message, ...]:
    """User messages of so many tokens."""
    return tuple(Message(role="user", content=f"m{n}", tokens=tokens, tokenizer="x") for n in range(1, count + 1))


async def appended(store: Store, *messages: Message, agent: str = "ag", thread: str = "t") -> int:
    """Append and give the key."""
    request = Append(workflow="w", thread=thread, agent=agent, messages=messages, now=NOW)
    return (await store.append(request)).key


async def summarised(store: Store, key: int, first: int, last: int, kind: str = "k", agent: str = "ag") -> Summary:
    """Write a summary of a range."""
    made = Summary(first=first, last=last, text=f"{first}-{last}", kind=kind, agent=agent)
    return await store.write_summary(SummaryWrite(key=key, tern=0, summary=made, now=NOW))


async def live(store: Store, key: int, agent: str = "ag") -> int:
    """The running sum."""
    return (await store.conversation(key, agent, 0)).live_tokens


class Conversations(StoreSuite):
    """What window memory needs."""

    async def test_messages_outside_a_tern_make_their_thread(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            first = await store.append(Append(workflow="w", thread="t", agent="ag", messages=counted(3), now=NOW))
            assert (first.first, first.last) == (1, 3)
            none = await store.append(Append(workflow="w", thread="t", agent="ag", messages=(), now=NOW))
            assert (none.key, none.first, none.last) == (first.key, 4, 3)
            talk = await store.conversation(first.key, "ag", 2)
            assert [(m.number, m.content, m.tern, m.agent) for m in talk.messages] == [
                (2, "m2", 0, "ag"),
                (3, "m3", 0, "ag"),
            ]
            assert (talk.last, talk.live_tokens, talk.uncounted, talk.summaries) == (3, 30, 0, ())
            assert await store.message(first.key, "ag", 2) == talk.messages[0]
            for missing in (0, -1, 4, 2**70):
                assert await store.message(first.key, "ag", missing) is None
            assert (await store.thread(ref(), WindowSpec())).info.terns == 0

    async def test_a_foreign_thread_takes_no_messages(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            key = await appended(store, *counted(1))
            with pytest.raises(ThreadOwnerError):
                await store.append(
                    Append(workflow="w", thread="t", agent="ag", messages=counted(1), now=NOW, owner="you")
                )
            assert (await store.conversation(key, "ag", 9)).last == 1

    async def test_terns_and_free_messages_share_one_conversation(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await run_tern(store)
            key = await appended(store, *counted(1), agent="desk")
            await run_tern(store)
            said = await store.messages(key, MessagePage(agent="desk"))
            assert [(m.number, m.tern, m.content) for m in said] == [
                (1, 1, "hi"),
                (2, 1, "hello"),
                (3, 0, "m1"),
                (4, 2, "hi"),
                (5, 2, "hello"),
            ]
            assert await live(store, key, "desk") == 20

    async def test_m156_parallel_appends_get_distinct_numbers(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            requests = [Append(workflow="w", thread="t", agent="ag", messages=counted(1), now=NOW) for _ in range(20)]
            answers = await asyncio.gather(*map(store.append, requests))
            assert sorted(answer.first for answer in answers) == list(range(1, 21))
            assert len({answer.key for answer in answers}) == 1

    async def test_m159_parallel_summaries_are_all_found_in_order(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            key = await appended(store, *counted(50))
            await asyncio.gather(*(summarised(store, key, n, n) for n in range(50, 0, -1)))
            found = await store.summaries(key, "ag")
            assert [(s.first, s.last) for s in found] == [(n, n) for n in range(1, 51)]
            assert await live(store, key) == 0

    async def test_the_newest_summaries_before_a_number(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            key = await appended(store, *counted(9))
            for number in range(1, 10):
                await summarised(store, key, number, number)
            await store.retire(key, (await store.summaries(key, "ag", limit=1))[0].id, NOW)
            for all_states, before, limit, expected in (
                (False, None, 2, [7, 8]),
                (True, None, 2, [8, 9]),
                (True, 4, 2, [2, 3]),
                (False, 4, None, [1, 2, 3]),
                (True, 1, 5, []),
                (True, None, 0, []),
            ):
                found = await store.summaries(key, "ag", all_states, before=before, limit=limit)
                assert [one.first for one in found] == expected

    async def test_m161_a_deleted_thread_leaves_nothing(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            key = await appended(store, *counted(3))
            other = await appended(store, *counted(2), thread="other")
            await summarised(store, key, 1, 2)
            await store.delete_thread(ref())
            gone = await store.conversation(key, "ag", 9)
            assert (gone.last, gone.live_tokens, gone.messages, gone.summaries) == (0, 0, (), ())
            assert await store.summaries(key, "ag", True) == ()
            with pytest.raises(UnknownThreadError):
                await store.thread(ref(), WindowSpec())
            assert (await store.conversation(other, "ag", 9)).last == 2

    async def test_m059_a_stub_leaves_the_content(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            tool = Message(role="tool", content="long\x00", tool_call_id="c", tool_name="t", tokens=90, tokenizer="x")
            key = await appended(store, *counted(1), tool)
            assert await store.compress_result(key, "ag", 2, "stub\x00", 4)
            kept = await store.message(key, "ag", 2)
            assert kept is not None
            assert (kept.content, kept.compressed_content, kept.compressed_tokens, kept.tokens) == (
                "long\x00",
                "stub\x00",
                4,
                90,
            )
            assert await live(store, key) == 14
            for number in (1, 2, 3):
                assert not await store.compress_result(key, "ag", number, "again", 1)
            assert await store.message(key, "ag", 2) == kept

    async def test_the_sum_follows_summaries_and_undo(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            key = await appended(store, *counted(9))
            one = await summarised(store, key, 1, 3)
            assert await live(store, key) == 60
            await summarised(store, key, 4, 6)
            whole = await summarised(store, key, 1, 7, kind="other")
            assert await live(store, key) == 20
            states = [(s.first, s.last, s.state) for s in await store.summaries(key, "ag", True)]
            assert states == [(1, 3, "superseded"), (1, 7, "active"), (4, 6, "superseded")]
            for inside in ((1, 3), (2, 7), (7, 8), (7, 7)):
                assert await summarised(store, key, *inside) == whole
            assert await live(store, key) == 20
            assert await store.retire(key, whole.id, NOW)
            assert await live(store, key) == 90
            assert await store.retire(key, one.id, NOW) is None

    async def test_counts_are_written_back(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            key = await appended(store, *counted(4, None))
            talk = await store.conversation(key, "ag", 9)
            assert (talk.live_tokens, talk.uncounted) == (0, 4)
            await summarised(store, key, 1, 1)
            await store.write_counts(key, "ag", {1: 5, 2: 5, 3: 5, 99: 7}, "y")
            talk = await store.conversation(key, "ag", 9)
            assert (talk.live_tokens, talk.uncounted) == (10, 1)
            assert [(m.tokens, m.tokenizer) for m in talk.messages] == [(5, "y"), (5, "y"), (5, "y"), (None, "x")]
            await store.write_counts(key, "ag", {2: 7}, "z")
            assert await live(store, key) == 12

    async def test_an_agent_has_its_own_summaries_and_sums(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            key = await appended(store, *counted(3))
            await appended(store, *counted(3), agent="other")
            await summarised(store, key, 1, 2, agent="other")
            assert (await live(store, key), await live(store, key, "other")) == (30, 10)
            assert (await store.conversation(key, "ag", 9)).summaries == ()
            assert (await store.conversation(key, "nobody", 9)).last == 0
