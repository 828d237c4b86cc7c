# ruff: noqa: D102, S101
"""Paused Terns, and going on with them: what every store does."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agboss_memory.errors import PauseError, ThreadDeletedError
from agboss_memory.messages import Block, TernStatus
from agboss_memory.records import replace
from agboss_memory.stores.contract import Admitted, Step, Store, SummaryWrite
from agboss_memory.stores.jsonl import dump_thread, load_thread
from agboss_memory.stores.pauses import Resumption
from agboss_memory.testing.store_recovery import claim, keep, question, step
from agboss_memory.testing.store_requests import (
    DAY,
    WIDE,
    admission,
    all_terns,
    booked,
    conversation,
    ending,
    later,
    pair,
    ref,
    run_tern,
    summary,
)
from agboss_memory.testing.store_suite import StoreSuite


def answer(outcome: str = "yes", key: str = "desk.decision.1") -> Step:
    """What somebody decided."""
    return Step(key=key, kind="decision", input_hash="", outcome=outcome)


async def pause(store: Store, *questions: Step, **changes: Any) -> Admitted:
    """A Tern that waits; it has finished a call and booked one."""
    admitted = await store.admit(admission("wait", **changes))
    await keep(store, admitted, step(), *(questions or (question(),)))
    status = TernStatus.PAUSED
    await store.commit(ending(admitted, "", task="wait", status=status, usage=(booked("a"),)))
    return admitted


def go_on(paused: Admitted, *answers: Step, seconds: float = 1, holder: str = "two", **changes: Any) -> Resumption:
    """A request to go on."""
    return Resumption(
        key=paused.key,
        number=paused.number,
        holder=holder,
        now=later(seconds),
        thread="t",
        workflow="w",
        steps=answers,
        window=WIDE,
        **changes,
    )


async def refused(store: Store, request: Resumption) -> str:
    """The code of the refusal."""
    with pytest.raises(PauseError) as caught:
        await store.resume(request)
    return caught.value.code


class Pauses(StoreSuite):
    """A paused Tern holds nothing, keeps everything, and goes on once per decision."""

    async def test_a_paused_tern_goes_on_with_its_number_and_its_journal(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            paused = await pause(store, owner="me", idempotency_key="k")
            following, _ = await run_tern(store, owner="me")
            assert following.number == 2
            before = (await store.day_spend("w", DAY)).model_calls
            (waiting,) = await store.paused(paused.key)
            assert (waiting.tern.status, waiting.owner, waiting.idempotency_key) == (TernStatus.PAUSED, "me", "k")
            resumed = await store.resume(go_on(paused, answer()))
            assert (resumed.kind, resumed.number, resumed.resumed, resumed.resumes) == ("admitted", 1, True, 0)
            assert resumed.fence > following.fence
            assert [item.kind for item in await store.steps(paused.key, 1)] == ["tool", "pause", "decision"]
            assert (await store.thread(ref(owner="me"), WIDE)).info.running
            assert (await store.paused(paused.key))[0].tern.status is TernStatus.RUNNING
            said = conversation("wait", "done")
            usage = (booked("a"), booked("b"))
            await store.commit(ending(resumed, "done", task="wait", messages=said, usage=usage))
            first, second = await all_terns(store, paused.key)
            assert (first.answer, first.status, len(first.usage)) == ("done", TernStatus.ANSWERED, 2)
            assert second.number == 2
            assert (await store.day_spend("w", DAY)).model_calls == before + 1
            assert await store.paused(paused.key) == ()
            assert [item.kind for item in await store.steps(paused.key, 1)] == ["pause", "decision"]
            assert await store.check() == ()

    async def test_b008_a_waiting_call_outlives_later_terns_and_their_compaction(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await run_tern(store, "q1")
            paused = await pause(store)
            for number in (3, 4, 5):
                blocks = (Block(first=1, last=3),) if number == 3 else ()
                last, _ = await run_tern(store, f"q{number}", commit={"blocks": blocks})
            assert await store.blocks(paused.key, ["open", "due"], 9) == (Block(first=1, last=3, state="open"),)
            await store.write_summary(
                SummaryWrite(key=last.key, tern=5, summary=summary(4, 5), now=later(0), usage=(booked("s"),))
            )
            resumed = await store.resume(go_on(paused, answer()))
            assert resumed.window is not None
            assert [tern.number for tern in resumed.window.terns] == [1]
            assert resumed.window.summaries == ()
            committed = await store.commit(ending(resumed, "done", task="wait"))
            assert [(block.first, block.last) for block in committed.due] == [(1, 3)]
            state = await store.thread(ref(), WIDE)
            assert [tern.number for tern in state.window.terns] == [1, 2, 3, 4, 5]
            assert [item.first for item in state.window.summaries] == [4]
            assert await store.check() == ()

    async def test_one_decision_counts(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            paused = await pause(store)
            first = await store.resume(go_on(paused, answer()))
            assert await refused(store, go_on(paused, answer("no"), holder="three")) == "pause.decided"
            assert (await store.resume(go_on(paused, answer(), holder="three"))).kind == "busy"
            again = await store.resume(go_on(paused, answer(), seconds=30, holder="three"))
            assert (again.kind, again.resumed, again.resumes) == ("admitted", True, 1)
            assert again.fence > first.fence
            await store.commit(ending(again, "done", task="wait"))
            repeat = await store.resume(go_on(paused, answer()))
            assert (repeat.kind, repeat.tern and repeat.tern.answer) == ("repeat", "done")
            assert await refused(store, go_on(paused, answer("no"))) == "pause.decided"
            assert await refused(store, go_on(paused, answer(key="other"))) == "pause.closed"
            assert await store.check() == ()

    async def test_two_decide_at_the_same_time(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            paused = await pause(store)
            asked = (store.resume(go_on(paused, answer(text), holder=text)) for text in ("yes", "no", "maybe"))
            got = await asyncio.gather(*asked, return_exceptions=True)
            assert sum(isinstance(one, Admitted) for one in got) == 1
            assert sum(isinstance(one, PauseError) for one in got) == 2

    async def test_an_answer_to_one_question_leaves_the_others_open(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            paused = await pause(store, question("desk.1.pause.a"), question("desk.1.pause.b"))
            resumed = await store.resume(go_on(paused, answer(key="desk.1.decision.a")))
            await store.commit(ending(resumed, "", task="wait", status=TernStatus.PAUSED, usage=(booked("a"),)))
            assert (await store.resume(go_on(paused, answer(key="desk.1.decision.a")))).kind == "repeat"
            resumed = await store.resume(go_on(paused, answer(key="desk.1.decision.b")))
            assert resumed.kind == "admitted"
            assert await store.check() == ()

    async def test_it_waits_for_its_turn(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            paused = await pause(store)
            running = await store.admit(admission("other"))
            waits = await store.resume(go_on(paused, answer(), queue=True))
            assert waits.kind == "busy"
            assert waits.ticket
            behind = await store.admit(admission("behind", holder="three", queue=True))
            assert behind.ticket > waits.ticket
            await store.commit(ending(running, task="other"))
            assert (await store.admit(admission("behind", holder="three", ticket=behind.ticket))).kind == "busy"
            assert (await store.resume(go_on(paused, answer(), ticket=waits.ticket))).kind == "admitted"
            assert [item.kind for item in await store.steps(paused.key, 1)] == ["tool", "pause", "decision"]

    async def test_a_tern_that_nobody_runs_is_closed_for_it(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            paused = await pause(store)
            await store.admit(admission("left"))
            resumed = await store.resume(go_on(paused, answer(), seconds=30))
            assert resumed.closed == (2,)
            await store.commit(ending(resumed, "done", task="wait"))
            assert [tern.status for tern in await all_terns(store, paused.key)] == ["answered", "cancelled"]
            assert await store.check() == ()

    async def test_it_may_be_taken_to_be_closed(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            paused = await pause(store)
            taken = await store.resume(go_on(paused))
            await store.commit(ending(taken, "", task="wait", status=TernStatus.CANCELLED))
            assert await refused(store, go_on(paused, answer())) == "pause.closed"
            assert (await store.resume(go_on(paused))).kind == "repeat"
            assert await store.check() == ()

    async def test_a_process_that_died_after_the_decision_is_recovered(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            paused = await pause(store)
            await store.resume(go_on(paused, answer()))
            (left,) = await store.resumable("w", later(30), 0, 9)
            assert left.tern.number == 1
            assert (await store.claim(claim(paused, 30, "three"))).resumes == 1

    async def test_its_copy_brings_journal_and_questions(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            paused = await pause(store, idempotency_key="k")
            await run_tern(store, commit={"blocks": pair(1, 2)})
            copy = await store.copy(ref())
            assert [item.kind for item in copy.terns[0].steps] == ["tool", "pause"]
            assert load_thread(dump_thread(copy)) == copy
            await store.resume(go_on(paused, answer()))
            running = await store.copy(ref())
            assert [item.tern.status for item in running.terns] == ["paused", "answered"]
            assert [item.kind for item in running.terns[0].steps] == ["tool", "pause", "decision"]
            assert await store.check() == ()
            for whole in (copy, running):
                await store.delete_thread(ref())
                await store.restore(whole)
                assert await store.copy(ref()) == whole
                assert await store.check() == ()
                state = await store.thread(ref(), WIDE)
                resumed = await store.resume(go_on(replace(paused, key=state.key), answer()))
                assert (resumed.kind, resumed.number) == ("admitted", 1)
                await store.commit(ending(resumed, "done", task="wait", usage=(booked("a"), booked("b"))))
                assert len((await all_terns(store, state.key))[0].usage) == 2
                assert [item.kind for item in (await store.copy(ref())).terns[0].steps] == ["pause", "decision"]
                assert await store.check() == ()

    async def test_a_deleted_thread_has_nothing_to_decide(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            paused = await pause(store)
            await store.delete_thread(ref())
            assert await store.paused(paused.key) == ()
            with pytest.raises(ThreadDeletedError):
                await store.resume(go_on(paused, answer()))
