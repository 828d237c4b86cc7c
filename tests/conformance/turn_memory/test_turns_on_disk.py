"""Turn memory over real files: new versions of a workflow, compaction that came later, processes that died."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from desks import Gate, Models, desk, raw_turns, shown_summaries, sum_up, talk, yes

from agboss import ModelRequest, create_app


def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'agboss.db'}"


def watching(seen: list[ModelRequest]) -> Models:
    async def watch(request: ModelRequest) -> str:
        seen.append(request)
        return "Yes."

    return Models(watch, sum_up)


async def test_every_may_change_between_versions(tmp_path: Path) -> None:
    seen: list[ModelRequest] = []
    lines: list[str | None] = []
    first = 1
    for version, every, terns in (("1.0.0", 2, 5), ("1.1.0", 3, 5), ("1.2.0", 1, 2), ("1.3.0", 4, 4)):
        workflow = desk(every=every, keep=9, limit=1, version=version)
        async with create_app(workflow, store=url(tmp_path), models=watching(seen)) as app:
            lines += [result.memory for result in await talk(app, terns, first=first)]
            ranges = [(item.first, item.last) for item in await app.memory.summaries("t")]
            versions = [tern.version for tern in (await app.threads.get("t")).terns]
        first += terns
    assert [line for line in lines if line] == [
        "turns 1–2 → summary 1/9",
        "turns 3–4 → summary 2/9",
        "turns 5–6 → summary 3/9",
        "turns 7–9 → summary 4/9",
        "turns 10–10 → summary 5/9; turns 11–11 → summary 6/9",
        "turns 12–12 → summary 7/9",
        "turns 13–16 → summary 8/9",
    ]
    assert ranges == [(1, 2), (3, 4), (5, 6), (7, 9), (10, 10), (11, 11), (12, 12), (13, 16)]
    assert versions == ["1.0.0"] * 5 + ["1.1.0"] * 5 + ["1.2.0"] * 2 + ["1.3.0"] * 4
    for number, request in enumerate(seen, start=1):
        covered = set(raw_turns(request))
        for text in shown_summaries(request):
            low, high = (int(part) for part in text.split("–"))
            covered.update(range(low, high + 1))
        assert covered == set(range(1, number)), f"turn {number}"


async def test_compaction_may_come_to_a_thread_with_fifty_turns(tmp_path: Path) -> None:
    seen: list[ModelRequest] = []
    async with create_app(desk(every=None, limit=3), store=url(tmp_path), models=watching(seen)) as app:
        await talk(app, 50)
    models = watching(seen)
    async with create_app(desk(every=4, keep=5, limit=3), store=url(tmp_path), models=models) as app:
        results = await talk(app, 8, first=51)
        assert [len(result.compaction.summaries) if result.compaction else 0 for result in results] == [
            2,
            2,
            2,
            2,
            2,
            2,
            2,
            0,
        ]
        ranges = [(item.first, item.last) for item in await app.memory.summaries("t")]
        assert ranges == [(first, first + 3) for first in range(1, 57, 4)]
        assert results[0].memory == "turns 1–4 → summary 1/5; turns 5–8 → summary 2/5"
        assert results[-2].memory == "turns 49–52 → summary 5/5; turns 53–56 → summary 5/5"
    assert models.calls.count("compaction") == 14
    assert raw_turns(seen[50]) == list(range(40, 51))
    assert raw_turns(seen[57]) == [55, 56, 57]
    assert shown_summaries(seen[57])[-1] == "53–56"


async def test_compact_catches_up_a_thread_that_never_was_compacted(tmp_path: Path) -> None:
    async with create_app(desk(every=None), store=url(tmp_path), models=Models(yes, sum_up)) as app:
        await talk(app, 21)
    async with create_app(desk(every=4, keep=5), store=url(tmp_path), models=Models(yes, sum_up)) as app:
        report = await app.memory.compact("t")
        assert [(item.first, item.last) for item in report.summaries] == [(n, n + 3) for n in range(1, 20, 4)]
        terns = (await app.threads.get("t")).terns
        booked = [record.purpose for tern in terns for record in tern.usage]
        assert booked.count("compaction") == 5


async def test_costs_of_catching_up_are_booked_beside_those_of_the_turn(tmp_path: Path) -> None:
    async def broken(_: ModelRequest) -> str:
        raise RuntimeError("down")

    models = Models(yes, sum_up)
    async with create_app(desk(every=1, keep=5), store=url(tmp_path), models=models) as app:
        await talk(app, 1)
        models.summary = broken
        await talk(app, 1, first=2)
        models.summary = sum_up
        await talk(app, 1, first=3)
        undone = await app.memory.undo("t")
        assert undone is not None
        models.summary = broken
        await talk(app, 1, first=4)
        models.summary = sum_up
        assert len((await app.memory.compact("t")).summaries) == 1
        terns = (await app.threads.get("t")).terns
        paid = [record for tern in terns for record in tern.usage if record.purpose == "compaction"]
        assert len(paid) == 4
        runtime = await app._lifecycle.runtime()  # pyright: ignore[reportPrivateUsage]
        day = terns[-1].started_at.date().isoformat()
        assert (await runtime.store.day_spend("desk", day)).model_calls == 8


async def test_a_second_app_goes_on_where_the_first_was_cut_off(tmp_path: Path) -> None:
    gate = Gate()
    first = create_app(desk(every=2, keep=3), store=url(tmp_path), models=Models(yes, gate))
    await talk(first, 1)
    running = asyncio.create_task(first.execute("task 2.", thread="t"))
    await gate.reached.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await first.aclose()
    models = Models(yes, sum_up)
    async with create_app(desk(every=2, keep=3), store=url(tmp_path), models=models) as second:
        terns = (await second.threads.get("t")).terns
        assert [tern.status for tern in terns] == ["answered", "answered"]
        results = await talk(second, 2, first=3)
    assert [result.memory for result in results] == ["turns 1–2 → summary 1/3", "turns 3–4 → summary 2/3"]
    assert models.calls.count("compaction") == 2


DYING = """
    import asyncio, os
    from desks import Models, desk, talk, yes
    from agboss import create_app

    async def die(request):
        os._exit(9)

    async def main():
        models = Models({answer}, {summary})
        async with create_app(desk(every=2, keep=3), store={url!r}, models=models) as app:
            await talk(app, 2)

    asyncio.run(main())
"""


@pytest.mark.parametrize("place", ["answer", "summary"])
async def test_b069_a_killed_process_leaves_work_that_the_next_turn_settles(tmp_path: Path, place: str) -> None:
    """A process dies in the middle of an answer or of a compaction; the thread works, nothing is done twice."""
    code = DYING.format(
        answer="die" if place == "answer" else "yes", summary="die" if place == "summary" else "yes", url=url(tmp_path)
    )
    here = [str(Path(__file__).parents[2]), str(Path(__file__).parents[3])]
    prelude = f"import sys; sys.path[:0] = {here!r}\n"
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", prelude + textwrap.dedent(code)], capture_output=True, check=False
    )
    assert done.returncode == 9, done.stderr.decode()
    models = Models(yes, sum_up)
    async with create_app(desk(every=2, keep=3), store=url(tmp_path), models=models) as app:
        result = (await talk(app, 1, first=3))[0]
        terns = (await app.threads.get("t")).terns
        assert len(await app.memory.summaries("t")) == 1
    assert result.memory == "turns 1–2 → summary 1/3"
    assert models.calls == ["agent", "compaction"]
    if place == "answer":
        assert [tern.status for tern in terns] == ["cancelled", "answered"]
        assert terns[0].task == "task 1."
    else:
        assert [tern.status for tern in terns] == ["answered", "answered", "answered"]
