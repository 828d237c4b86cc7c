# ruff: noqa: D102, S101
"""Texts, ids, moments and lists of threads: what every store does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from agboss_memory.errors import (
    UnknownThreadError,
)
from agboss_memory.messages import Message, ToolCall
from agboss_memory.records import replace
from agboss_memory.stores.contract import (
    MessagePage,
    TernPage,
    WindowSpec,
)
from agboss_memory.testing.store_requests import (
    NOW,
    WIDE,
    admission,
    all_terns,
    booked,
    ending,
    ref,
    run_tern,
    summary,
    summary_write,
)
from agboss_memory.testing.store_suite import StoreSuite

# Every one is a text that some system lost, mangled or mixed up with another.
HARD_TEXTS = (
    "",
    " ",
    "\x00",
    "a\x00b",
    "\x10",
    "\x100000",
    "\x10" + "0010",
    "\ud800",
    "\udfff tail",
    "e\u0301",
    "\u00e9",
    "A",
    "a",
    "../evil",
    "/etc/x",
    "a/b",
    "a\\b",
    "a:b",
    "'; DROP TABLE terns; --",
    "%s {x} \\n",
    "\U0001f9d1\u200d\U0001f680",
    "\ufeffbom",
    "\u202eabc",
    "x" * 5000,
)


class Values(StoreSuite):
    """What goes in comes out."""

    async def test_no_number_is_too_great_to_ask_for(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            admitted, _ = await run_tern(store)
            key = admitted.key
            for huge in (2**31, 2**63 - 1, 2**63, 2**64, 10**30):
                state = await store.thread(ref(), WindowSpec(terns=huge, summaries=huge))
                assert len(state.window.terns) == 1
                for newest in (False, True):
                    page = TernPage(after=-huge, before=huge, limit=huge, newest=newest)
                    assert len(await store.terns(key, page)) == 1
                    assert await store.terns(key, TernPage(after=huge, limit=huge, newest=newest)) == ()
                    assert await store.terns(key, TernPage(limit=-huge, newest=newest)) == ()
                for tern in (None, 1):
                    found = await store.messages(key, MessagePage(agent="desk", before=huge, limit=huge, tern=tern))
                    assert len(found) == 2
                    assert await store.messages(key, MessagePage(agent="desk", limit=-huge, tern=tern)) == ()
                assert await store.messages(key, MessagePage(agent="desk", tern=huge)) == ()
                assert await store.message(key, "desk", huge) is None
                assert len((await store.conversation(key, "desk", huge)).messages) == 2
                assert await store.summaries(key, before=huge, limit=huge) == ()
                assert await store.blocks(key, ("open", "due"), huge) == ()
                assert len(await store.threads("w", None, None, huge)) == 1
                assert await store.resumable("w", NOW, 0, huge) == ()
                assert await store.resumable("w", NOW, huge, huge) == ()
                assert await store.owing("w", NOW, 0, huge) == ()

    async def test_threads_are_paged_newest_first(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            for number in range(5):
                await run_tern(store, thread=f"t{number}", owner="me" if number % 2 else None)
            await run_tern(store, workflow="x", thread="elsewhere")

            async def page(owner: str | None, after: str | None, limit: int = 2) -> list[str]:
                return [info.id for info in await store.threads("w", owner, after, limit)]

            assert await page(None, None) == ["t4", "t3"]
            assert await page(None, "t3") == ["t2", "t1"]
            assert await page(None, "t0") == []
            assert await page("me", None) == ["t3", "t1"]
            assert await page("me", "t3") == ["t1"]
            with pytest.raises(UnknownThreadError):
                await page("me", "t4")
            await store.delete_thread(ref("t3", owner="me"))
            assert await page(None, None) == ["t4", "t2"]

    @pytest.mark.parametrize("text", HARD_TEXTS, ids=lambda text: ascii(text)[:20])
    async def test_b094_every_text_comes_back(self, tmp_path: Path, text: str) -> None:
        async with self.opened(tmp_path) as store:
            said = (
                Message(role="user", content=text, agent=text),
                Message(role="tool", content=f"{text}!", agent=text, tool_call_id=text, tool_name=text),
                Message(role="assistant", content="y", agent=text, tool_calls=(ToolCall(id=text, name=text),)),
            )
            names = {"workflow": text, "thread": text, "start": text, "version": text, "config_hash": text}
            admitted = await store.admit(admission(text, metadata=text, idempotency_key=text, **names))
            fields = {"agent": text, "path": (text,), "error": text, "output": text, "finish": text}
            commit = ending(admitted, text, task=text, messages=said, strategies=(text,), usage=(booked(text),))
            await store.commit(replace(commit, tern=replace(commit.tern, **fields)))
            (tern,) = await all_terns(store, admitted.key)
            assert {tern.task, tern.answer, tern.agent, tern.error, tern.output, tern.metadata, tern.start} == {text}
            assert (tern.path, tern.version, tern.config_hash) == ((text,), text, text)
            stored = await store.messages(admitted.key, MessagePage(agent=text))
            assert stored == tuple(replace(m, number=n, tern=1) for n, m in enumerate(said, 1))
            assert (await store.admit(admission(text, idempotency_key=text, **names))).kind == "repeat"
            state = await store.thread(ref(text, workflow=text), WIDE)
            assert (state.info.id, state.pending[0].strategy) == (text, text)
            write = summary_write(admitted, 1, 1, summary=summary(1, 1, text=text, agent=text, kind=text))
            assert (await store.write_summary(write)).text == text
            assert (await store.summaries(admitted.key, text))[0].text == text

    async def test_b099_different_ids_are_different_threads(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            for text in HARD_TEXTS:
                await run_tern(store, text, thread=text)
            assert {info.id for info in await store.threads("w", None, None, 99)} == set(HARD_TEXTS)
            for text in HARD_TEXTS:
                state = await store.thread(ref(text), WIDE)
                assert [t.task for t in state.window.terns] == [text]

    async def test_b106_moments_come_back_aware_and_in_utc(self, tmp_path: Path) -> None:
        tokyo = datetime(2026, 1, 31, 21, 0, tzinfo=timezone(timedelta(hours=9)))
        naive = datetime(2026, 1, 31, 12, 0)
        async with self.opened(tmp_path) as store:
            for number, moment in enumerate((tokyo, naive)):
                said = (Message(role="user", content="x", agent="desk", created_at=moment),)
                admitted = await store.admit(admission(thread=f"t{number}", now=moment))
                commit = ending(admitted, now=moment, messages=said)
                await store.commit(replace(commit, tern=replace(commit.tern, started_at=moment, finished_at=moment)))
                (tern,) = await all_terns(store, admitted.key)
                (message,) = await store.messages(admitted.key, MessagePage(agent="desk"))
                info = (await store.thread(ref(f"t{number}"), WIDE)).info
                for stored in (tern.started_at, tern.finished_at, message.created_at, info.updated_at):
                    assert stored == datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
                    assert stored is not None
                    assert stored.tzinfo is UTC

    async def test_closing_twice_is_allowed(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        await store.open()
        await store.close()
        await store.close()
