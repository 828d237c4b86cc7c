"""The facade: isolation, cancellation, limits, what other frameworks rely on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from window_memory import C4, TR, Summariser, call, chat, memory_of, numbers, result, rounds, said, stored

from agboss_memory import Memory, MemoryModel, Message, Store
from agboss_memory.errors import CompactionError, InvalidInputError, ThreadOwnerError, UnknownThreadError

COMPACT = {"kind": "auto_compact"}


async def turns(memory: Memory, count: int) -> None:
    for _ in range(count):
        await memory.remember("t", [chat(100), said("a" * 40)])


async def test_m149_a_foreign_thread_looks_like_a_missing_one(store: Store) -> None:
    model = Summariser()
    await memory_of(store, owner="me").remember("t", [chat(1)])
    foreign = memory_of(store, owner="you", model=model)
    for refused in (foreign.explain("t"), foreign.compress("t"), foreign.view("t"), foreign.undo("t", 1)):
        with pytest.raises(ThreadOwnerError) as caught:
            await refused
        assert isinstance(caught.value, UnknownThreadError)
    with pytest.raises(UnknownThreadError):
        await foreign.forget("nowhere")
    assert model.inputs == []


class Slow(MemoryModel):
    """Never answers; notes whether it was cancelled."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.cancelled = False

    async def generate(self, prompt: str, output: Any = None) -> Any:
        self.began.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.cancelled = True
            raise


async def test_b071_promise_7_a_cancelled_compaction_leaves_nothing(store: Store) -> None:
    slow = Slow()
    memory = memory_of(store, COMPACT, model=slow)
    await turns(memory, 3)
    task = asyncio.create_task(memory.compress("t"))
    await slow.began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert slow.cancelled
    log = await memory.log("t")
    assert await store.summaries(log.key, "ag", True) == ()
    again = memory_of(store, COMPACT, model=Summariser())
    assert (await again.compress("t")).compressed_messages == 6


async def test_b067_what_is_said_meanwhile_stays_verbatim(store: Store) -> None:
    class Talking(Summariser):
        async def generate(self, prompt: str, output: Any = None) -> Any:
            await other.remember("t", [Message(role="user", content="meanwhile")])
            return await super().generate(prompt)

    other = memory_of(store)
    memory = memory_of(store, COMPACT, model=Talking())
    await turns(memory, 3)
    await memory.compress("t")
    view = await memory.view("t")
    assert [(s.first, s.last) for s in view.summaries] == [(1, 6)]
    assert view.messages[-1].content == "meanwhile"


async def test_promise_4_memory_makes_four_calls_a_turn_at_most(store: Store) -> None:
    model, stubs = Summariser(), Summariser()
    config = {
        "kind": "summarizing_window",
        "autoSummarize": True,
        "autoSummarizeRatio": 0.1,
        "maxConversationRatio": 0.2,
        "minToolResultCompressTokens": 10,
        "toolResultThresholdRatio": 0.0001,
        "compressWhenWindowAboveRatio": 0.0001,
    }
    memory = memory_of(store, config, model=model, stub_model=stubs)
    for _ in range(3):
        await turns(memory, 3)
    await memory.remember("t", [chat(1), *rounds(6, 60)])
    for _ in range(3):
        await memory.view("t")
    await memory.after_turn("t")
    assert 0 < len(model.inputs) + len(stubs.inputs) <= 4


async def test_compact_without_a_model_is_a_named_error(store: Store) -> None:
    memory = memory_of(store, COMPACT)
    await turns(memory, 9)
    assert (await memory.after_turn("t")).error_code == "compaction.no-model"
    with pytest.raises(CompactionError) as caught:
        await memory.compress("t")
    assert caught.value.code == "compaction.no-model"


async def test_m015_every_form_of_configuration_is_taken(store: Store) -> None:
    for config in ('{"kind": "windowed", "windowSize": 1}', {"kind": "windowed", "windowSize": 1}):
        memory = Memory(store, config, counter=C4(), window=1000)
        assert memory.config.kind == memory.strategy.kind == "windowed"
    with pytest.raises(InvalidInputError):
        Memory(store, {"kind": "windowed", "windowSise": 1})
    with pytest.raises(InvalidInputError):
        Memory(store, agent="")


async def test_any_text_and_any_thread_id_round_trips(store: Store) -> None:
    for thread in ("", "../evil", "a/b", "é", "\u0065\u0301", "\ud800", "x" * 5000, "a\x00b"):
        memory = memory_of(store, window=100_000)
        await memory.remember(thread, [Message(role="user", content=thread + "\x00\ud800😀")])
        view = await memory.view(thread)
        assert [m.content for m in view.messages] == [thread + "\x00\ud800😀"]


async def test_a_loop_of_another_framework(store: Store) -> None:
    memory = memory_of(store, {"kind": "windowed", "windowSize": 4}, system="Be brief.")
    for number in range(3):
        await memory.remember("t", [Message(role="user", content=f"q{number}")])
        await memory.remember("t", [call(f"c{number}"), result(f"c{number}", "found")])
        view = await memory.view("t")
        assert view.messages[-1].content == "found"
        assert view.system == "Be brief."
        await memory.remember("t", [said(f"a{number}")])
        assert (await memory.after_turn("t")).error_code == ""
    kept = await stored(memory)
    assert [m.tokens for m in kept] == C4().count(
        [m.content + "".join(c.arguments for c in m.tool_calls) for m in kept]
    )
    assert numbers((await memory.view("t", "q")).messages) == [9, 10, 11, 12, 13]


async def test_m061_a_view_says_what_went_wrong(store: Store) -> None:
    memory = memory_of(store, COMPACT, window=400, model=Summariser(RuntimeError("down")))
    await memory.remember("t", [chat(300), said("a" * 400), chat(10), call("c"), TR("c", 400)])
    view = await memory.view("t")
    assert view.warnings == ("compaction failed: compaction.failed",)
    assert len(view.usage) == 1
    await memory.remember("t", [call("d"), result("d")])
    assert (await memory.view("t")).usage == ()
