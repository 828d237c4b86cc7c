"""What a view reads does not depend on the length of the log."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from sqlite_cost import Trace, fetched_rows, shape
from window_memory import Summariser, chat, memory_of, numbers

from agboss_memory import SqliteStore
from agboss_memory.testing.store_requests import run_terns

PAGES = {"summarizing_window": 500, "auto_compact": 500, "windowed": 200, "full": 200, "none": 500}


def config_of(kind: str) -> dict[str, Any]:
    more: dict[str, dict[str, Any]] = {
        "summarizing_window": {"maxConversationRatio": 0.2},
        "windowed": {"windowSize": 200},
        "full": {"maxHistoryFetch": 200},
    }
    return {"kind": kind, **more.get(kind, {})}


async def cost(path: Path, messages: int, kind: str) -> tuple[list[str], list[int], list[int]]:
    """Statements, rows fetched by each, and the numbers in a view."""
    trace = Trace()
    store = SqliteStore(path, synchronous="NORMAL", trace=trace)
    await store.open()
    memory = memory_of(store, config_of(kind), window=1000 if kind == "summarizing_window" else 100_000)
    for _ in range(0, messages, 5000):
        await memory.remember("t", [chat(1) for _ in range(min(messages, 5000))])
    trace.take()
    view = await memory.view("t")
    ran = trace.take()
    await store.close()
    return [shape(s) for s in ran], fetched_rows(path, ran), numbers(view.messages)


@pytest.mark.parametrize("kind", [kind for kind in PAGES if kind != "auto_compact"])
async def test_a_view_of_200_reads_the_same_of_500_and_of_50000(tmp_path: Path, kind: str) -> None:
    few = await cost(tmp_path / "few.db", 500, kind)
    many = await cost(tmp_path / "many.db", 50_000, kind)
    assert many[:2] == few[:2]
    assert len(many[2]) == len(few[2]) == (1 if kind == "none" else 200)
    assert sum(many[1]) <= PAGES[kind] + 6


async def test_a_compacted_conversation_reads_one_page(tmp_path: Path) -> None:
    counts: list[list[int]] = []
    for messages in (500, 5000):
        path = tmp_path / f"{messages}.db"
        trace = Trace()
        store = SqliteStore(path, synchronous="NORMAL", trace=trace)
        await store.open()
        memory = memory_of(
            store, {"kind": "auto_compact"}, window=100_000, model=Summariser(), summary_window=1_000_000
        )
        await memory.remember("t", [chat(10) for _ in range(messages)])
        await memory.compress("t")
        trace.take()
        await memory.view("t", "q")
        ran = trace.take()
        await store.close()
        counts.append(fetched_rows(path, ran))
    assert counts[0] == counts[1]
    assert sum(counts[0]) <= 507


async def test_an_old_file_gets_its_sums_and_counts_what_was_never_counted(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    store = SqliteStore(path, synchronous="NORMAL")
    await store.open()
    last = await run_terns(store, 3)
    await store.close()
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE conversations")
        connection.execute("DROP INDEX summaries_live")
        connection.execute("UPDATE messages SET token_count = NULL WHERE seq > 4")
        connection.execute("DELETE FROM schema_version WHERE version = 2")
    connection.close()
    await store.open()
    talk = await store.conversation(last.key, "desk", 9)
    assert (talk.last, talk.live_tokens, talk.uncounted) == (6, 10, 2)
    memory = memory_of(store, {"kind": "summarizing_window"}, agent="desk", workflow="w")
    assert numbers((await memory.view("t")).messages) == [1, 2, 3, 4, 5, 6]
    talk = await store.conversation(last.key, "desk", 9)
    assert (talk.live_tokens, talk.uncounted, {m.tokenizer for m in talk.messages}) == (0, 0, {"c4"})
    await store.close()
