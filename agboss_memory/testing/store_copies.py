# ruff: noqa: D102, S101
"""Copies of whole threads and the check of a store: what every store does."""

from __future__ import annotations

from pathlib import Path

import pytest

from agboss_memory.errors import CopyError, ThreadOwnerError, UnknownThreadError
from agboss_memory.messages import Message, TernStatus, ToolCall
from agboss_memory.records import replace
from agboss_memory.stores.contract import MemoryOutcome, MessagePage, PendingWork, Store, ThreadCopy
from agboss_memory.stores.files import FileWrite
from agboss_memory.stores.jsonl import dump_thread, load_thread
from agboss_memory.testing.store_attachments import CAT, NOTE, tern_with
from agboss_memory.testing.store_conversations import appended, counted, live, summarised
from agboss_memory.testing.store_recovery import keep, question, step
from agboss_memory.testing.store_requests import (
    DAY,
    NOW,
    WIDE,
    admission,
    all_terns,
    booked,
    ending,
    pair,
    ref,
    run_tern,
    run_terns,
    summary_write,
)
from agboss_memory.testing.store_suite import StoreSuite

HARD = "\x00\x10\ud800 ü\u2028"


async def eventful(store: Store, thread: str = "t") -> int:
    """A thread that has one of everything; gives its key."""
    first, _ = await run_tern(store, HARD, HARD, thread=thread, owner="me", idempotency_key="k", metadata=HARD)
    said = (
        Message(role="user", content="q", agent="desk", tokens=1, tokenizer="x", created_at=NOW),
        Message(role="assistant", agent="desk", tool_calls=(ToolCall(id="c", name="find"),), tokens=2),
        Message(role="user", content="aside", agent="other"),
        Message(role="tool", content=HARD, agent="desk", tool_call_id="c", tool_name="find", tokens=90),
        Message(role="assistant", content="a", agent="desk"),
    )
    commit = {
        "messages": said,
        "blocks": pair(1, 2),
        "strategies": ("Facts", HARD),
        "usage": (booked("a"), booked("b")),
    }
    admitted, _ = await run_tern(store, "q", "a", thread=thread, owner="me", commit=commit)
    assert await store.compress_result(admitted.key, "desk", 5, HARD, 4)
    stored = await store.write_summary(summary_write(admitted, 1, 2))
    await store.retire(admitted.key, stored.id, NOW)
    await summarised(store, admitted.key, 1, 2, agent="desk")
    await summarised(store, admitted.key, 1, 3, agent="desk", kind="other")
    work = PendingWork(tern=2, strategy="Facts")
    await store.settle(MemoryOutcome(key=admitted.key, tern=2, now=NOW, work=work, usage=(booked("late"),)))
    await store.settle(MemoryOutcome(key=admitted.key, tern=0, now=NOW, usage=(booked("outside"),)))
    paused = await store.admit(admission("wait", thread=thread, owner="me", idempotency_key=HARD))
    await keep(store, paused, step(HARD, HARD), question())
    await store.commit(ending(paused, "", task="wait", status=TernStatus.PAUSED, blocks=pair(3, 4)))
    await store.admit(admission("running", thread=thread, owner="me"))
    return first.key


class Copies(StoreSuite):
    """Out of one store and into another."""

    async def test_a_copy_comes_back_whole(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await eventful(store)
            before = await store.copy(ref(owner="me"))
            assert [len(part) for part in (before.terns, before.messages, before.summaries)] == [3, 7, 3]
            assert [len(part) for part in (before.blocks, before.work, before.unbound)] == [2, 2, 1]
            assert load_thread(dump_thread(before)) == before
            await store.delete_thread(ref(owner="me"))
            await store.restore(before)
            after = await store.copy(ref(owner="me"))
            assert after == before
            assert await store.check() == ()

    async def test_a_restored_thread_goes_on(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            old = await eventful(store)
            sums = await store.conversation(old, "desk", 9)
            state = await store.thread(ref(owner="me"), WIDE)
            copy = await store.copy(ref(owner="me"))
            spent = await store.day_spend("w", DAY)
            await store.delete_thread(ref(owner="me"))
            await store.restore(copy)
            again = await store.thread(ref(owner="me"), WIDE)
            assert (again.window, again.pending) == (state.window, state.pending)
            assert again.key != old
            assert (again.info.running, again.info.terns, again.info.owner) == (False, 3, "me")
            assert await store.conversation(again.key, "desk", 9) == sums
            assert await store.messages(again.key, MessagePage(agent=None, tern=2)) == tuple(
                item.message for item in sorted(copy.messages, key=lambda item: item.place) if item.message.tern == 2
            )
            assert await store.day_spend("w", DAY) == spent
            repeat = await store.admit(admission(HARD, owner="me", idempotency_key="k", metadata=HARD))
            assert repeat.kind == "repeat"
            assert repeat.tern is not None
            assert repeat.tern.usage == (booked().record,)
            following, _ = await run_tern(store, "next", owner="me")
            assert following.number == 4
            await store.settle(MemoryOutcome(key=again.key, tern=2, now=NOW, usage=(booked("a"), booked("late"))))
            assert len((await all_terns(store, again.key))[1].usage) == 4
            assert await store.check() == ()

    async def test_a_thread_or_key_that_is_there_is_not_written_over(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await run_tern(store, idempotency_key="k")
            copy = await store.copy(ref())
            with pytest.raises(CopyError) as caught:
                await store.restore(copy)
            assert caught.value.code == "copy.exists"
            with pytest.raises(CopyError) as caught:
                await store.restore(replace(copy, thread="other"))
            assert caught.value.code == "copy.key-exists"
            assert [info.id for info in await store.threads("w", None, None, 9)] == ["t"]

    async def test_a_copy_of_nothing(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            with pytest.raises(UnknownThreadError):
                await store.copy(ref())
            await run_tern(store, owner="me")
            with pytest.raises(ThreadOwnerError):
                await store.copy(ref(owner="you"))

    async def test_what_cannot_be_is_refused_whole(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            key = (await run_terns(store, 2)).key
            await summarised(store, key, 1, 2, agent="desk")
            good = replace(await store.copy(ref()), thread="other")
            for bad, code in broken(good):
                with pytest.raises(CopyError) as caught:
                    await store.restore(bad)
                assert (caught.value.code, caught.value.data["finding"]) == ("copy.invalid", code)
            assert len(await store.threads("w", None, None, 9)) == 1
            await store.restore(good)

    async def test_messages_outside_terns_are_copied(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            key = await appended(store, *counted(4, None), *counted(3))
            await summarised(store, key, 5, 6)
            copy = await store.copy(ref())
            await store.delete_thread(ref())
            await store.restore(copy)
            state = await store.thread(ref(), WIDE)
            assert await live(store, state.key) == 10
            assert await store.copy(ref()) == copy
            assert await store.check() == ()

    async def test_a_copy_has_the_records_of_files_and_not_their_bytes(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await tern_with(store, CAT, NOTE)
            copy = await store.copy(ref())
            assert (
                copy.terns[0].tern.attachments == copy.messages[0].message.attachments == (CAT.record(), NOTE.record())
            )
            assert load_thread(dump_thread(copy)) == copy
            assert await store.check() == ()
            await store.delete_thread(ref())
            await store.restore(copy)
            assert await store.copy(ref()) == copy
            assert [item.code for item in await store.check()] == ["check.file-missing"] * 2
            for item in (CAT, NOTE):
                await store.files.write(FileWrite(data=item.data))
            assert await store.check() == ()
            await tern_with(store, CAT, thread="two")
            await store.delete_thread(ref("two"))
            assert await store.check() == ()
            await store.delete_thread(ref())
            assert set(store.files.lost([CAT.record().id, NOTE.record().id])) == {CAT.record().id, NOTE.record().id}

    async def test_a_sound_store_has_no_findings(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            assert await store.check() == ()
            await eventful(store)
            await run_terns(store, 3, thread="two")
            assert await store.check() == ()
            await store.delete_thread(ref("two"))
            assert await store.check() == ()


def broken(good: ThreadCopy) -> list[tuple[ThreadCopy, str]]:
    """Copies that cannot be, and what is wrong with each."""
    tern, message, summary = good.terns[0], good.messages[0], good.summaries[0]
    running = replace(tern, tern=replace(tern.tern, status=TernStatus.RUNNING, finished_at=None))
    keyed = tuple(replace(item, idempotency_key="k") for item in good.terns)
    stray = replace(message, message=replace(message.message, tern=9))
    *before, last = good.messages
    apart = replace(last, message=replace(last.message, tern=1))
    block = pair(1, 2)[0]
    waits = replace(tern, tern=replace(tern.tern, status=TernStatus.PAUSED, finished_at=None))
    return [
        (replace(good, terns=(waits, good.terns[1])), "check.pause-lost"),
        (replace(good, terns=(replace(tern, steps=(step(),)), good.terns[1])), "check.step-left"),
        (replace(good, terns=(replace(tern, steps=(question(), question())), good.terns[1])), "check.step-twice"),
        (replace(good, terns=good.terns[1:]), "check.tern-gap"),
        (replace(good, terns=(running, good.terns[1])), "check.tern-running"),
        (
            replace(good, terns=(replace(tern, tern=replace(tern.tern, finished_at=None)), good.terns[1])),
            "check.tern-end",
        ),
        (replace(good, terns=keyed), "check.key-twice"),
        (replace(good, unbound=(booked(), booked())), "check.usage-twice"),
        (replace(good, messages=good.messages[1:]), "check.message-gap"),
        (replace(good, messages=(stray, *good.messages[1:])), "check.message-tern"),
        (replace(good, messages=(*before, apart)), "check.message-apart"),
        (replace(good, summaries=(replace(summary, summary=replace(summary.summary, id=2)),)), "check.summary-gap"),
        (replace(good, summaries=(replace(summary, summary=replace(summary.summary, last=9)),)), "check.summary-range"),
        (replace(good, summaries=(replace(summary, superseded_by=1),)), "check.summary-lineage"),
        (
            replace(good, summaries=(summary, replace(summary, summary=replace(summary.summary, id=2, first=2)))),
            "check.summary-overlap",
        ),
        (replace(good, blocks=(replace(block, first=0),)), "check.block-range"),
        (replace(good, blocks=(replace(block, last=3),)), "check.block-state"),
        (replace(good, blocks=(block, replace(block, last=3, state="open"))), "check.block-overlap"),
        (replace(good, work=(PendingWork(tern=3, strategy="Facts"),)), "check.work-tern"),
    ]
