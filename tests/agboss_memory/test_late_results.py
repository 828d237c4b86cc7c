"""Results that come late, after other calls or in another turn: the newest user message stays in view."""

from __future__ import annotations

from window_memory import Summariser, call, chat, memory_of, result, said

from agboss_memory import MemoryStore, Message


async def test_a_window_smaller_than_a_round_of_results_shows_the_task() -> None:
    memory = memory_of(MemoryStore(), {"kind": "windowed", "windowSize": 2})
    await memory.remember("t", [chat(1, "q"), call("a", "b", "c"), *map(result, "abc")])
    assert [message.number for message in (await memory.view("t")).messages] == [1, 2, 3, 4, 5]


async def test_a_late_result_does_not_hide_the_open_loop() -> None:
    memory = memory_of(MemoryStore(), {"kind": "windowed", "windowSize": 2})
    await memory.remember("t", [chat(1, "q"), call("a"), call("b"), result("b"), result("a")])
    view = await memory.view("t")
    assert view.messages[0].number == 1
    assert [one.tool_call_id for one in view.messages if one.role == "tool"] == ["b"]


async def test_b010_a_result_in_the_running_turn_keeps_its_call_from_being_summarised() -> None:
    for kind in ("auto_compact", "summarizing_window"):
        memory = memory_of(MemoryStore(), {"kind": kind}, model=Summariser())
        await memory.remember("t", [chat(50), call("a", "b"), result("a"), chat(50), said("x" * 400)])
        task = Message(role="user", content="Is it done?")
        await memory.remember("t", [task, call("c"), result("b", "late"), result("c")])
        await memory.compress("t")
        view = await memory.view("t")
        assert task.content in [message.content for message in view.messages]
        assert all(summary.last < 6 for summary in view.summaries)
