"""What readers see: the last turns raw, older ones extended or summarised, the latest summaries."""

from __future__ import annotations

from dataclasses import replace

import pytest
from desks import MODEL, Helper, answers, desk, raw_turns, shown_summaries, talk

from agboss import (
    AnswerFinish,
    AssemblyError,
    Compaction,
    Defaults,
    FunctionRouter,
    History,
    ModelError,
    ModelSpec,
    TaskStart,
    agent,
    chain,
    create_app,
    from_,
    router,
    workflow,
)
from agboss.testing import MakeApp, MockCompaction, MockLlm, MockRouter, route_to
from agboss_memory import MemoryContext, MemoryStore, Tern, TurnMemory
from agboss_memory.messages import Block


async def test_the_last_turns_are_shown_oldest_first(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(Helper).then_return(*answers(14))
    async with agboss_app(desk(every=None, limit=10)) as app:
        await talk(app, 14)
    seen = [raw_turns(request) for request in mock_llm(Helper).requests]
    assert seen[0] == []
    assert seen[10] == list(range(1, 11))
    assert seen[13] == list(range(4, 14))
    assert mock_llm(Helper).requests[1].messages[0].content == (
        "Previous turns:\nQ: task 1.\nA: answer 1.\n\nTask:\ntask 2."
    )


async def test_a_summarised_turn_stays_raw_within_the_limit(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    mock_llm(Helper).then_return(*answers(7))
    mock_compaction.then_return("S1", "S2", "S3")
    async with agboss_app(desk(every=2, limit=3, keep=2)) as app:
        await talk(app, 7)
    last = mock_llm(Helper).requests[-1]
    assert raw_turns(last) == [4, 5, 6]
    assert shown_summaries(last) == ["3–4", "5–6"]
    assert last.messages[0].content == (
        'Earlier turns:\n<summary turns="3–4">\nS2\n</summary>\n<summary turns="5–6">\nS3\n</summary>\n\n'
        "Previous turns:\nQ: task 4.\nA: answer 4.\nQ: task 5.\nA: answer 5.\nQ: task 6.\nA: answer 6.\n\n"
        "Task:\ntask 7."
    )


async def test_turns_of_a_block_that_is_not_full_extend_the_raw_part(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    mock_llm(Helper).then_return(*answers(12))
    mock_compaction.then_return("S1", "S2")
    async with agboss_app(desk(every=5, limit=2)) as app:
        await talk(app, 12)
    seen = [raw_turns(request) for request in mock_llm(Helper).requests]
    assert seen[4] == [1, 2, 3, 4]
    assert seen[5] == [4, 5]
    assert seen[8] == [6, 7, 8]
    assert seen[9] == [6, 7, 8, 9]
    assert seen[10] == [9, 10]
    assert shown_summaries(mock_llm(Helper).requests[-1]) == ["1–5", "6–10"]


async def test_the_extension_ends_at_limit_and_two_blocks(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    mock_llm(Helper).then_return(*answers(20))
    for _ in range(40):
        mock_compaction.then_fail(ModelError("model.http", "no", ""))
    async with agboss_app(desk(every=2, limit=3)) as app:
        results = await talk(app, 20)
    seen = [raw_turns(request) for request in mock_llm(Helper).requests]
    assert seen[7] == list(range(1, 8))
    assert all(len(turns) == 7 for turns in seen[8:])
    assert seen[19] == list(range(13, 20))
    assert all(result.memory is None and result.compaction is None for result in results)
    mock_compaction._steps.clear()  # pyright: ignore[reportPrivateUsage]


def _history(last: int) -> tuple[Tern, ...]:
    return tuple(Tern(number=number, task=f"t{number}") for number in range(1, last + 1))


@pytest.mark.parametrize("state", ["open", "due", "skipped"])
def test_due_and_skipped_blocks_extend(state: str) -> None:
    blocks = (Block(first=1, last=2, state="done"), replace(Block(first=3, last=4), state=state))
    view = TurnMemory(turns=1, every=2).build_context(MemoryContext(thread_id="t", history=_history(5), blocks=blocks))
    assert [tern.number for tern in view.history] == [3, 4, 5]


@pytest.mark.parametrize("state", ["done", "retired"])
def test_done_and_retired_blocks_never_extend_and_nothing_reaches_over_them(state: str) -> None:
    blocks = (Block(first=1, last=2, state="skipped"), replace(Block(first=3, last=4), state=state))
    view = TurnMemory(turns=1, every=2).build_context(MemoryContext(thread_id="t", history=_history(5), blocks=blocks))
    assert [tern.number for tern in view.history] == [5]


async def test_undo_shows_turns_raw_within_the_limit_and_is_not_due_again(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    mock_llm(Helper).then_return(*answers(8))
    mock_compaction.then_return("S1", "S2", "S3", "S4")
    async with agboss_app(desk(every=2, limit=3)) as app:
        await talk(app, 4)
        undone = await app.memory.undo("t")
        assert undone is not None
        assert (undone.first, undone.last, undone.state) == (3, 4, "retired")
        await talk(app, 4, first=5)
        assert [item.last for item in await app.memory.summaries("t")] == [2, 6, 8]
        kept = await app.memory.summaries("t", all_states=True)
        assert [(item.last, item.state) for item in kept] == [
            (2, "active"),
            (4, "retired"),
            (6, "active"),
            (8, "active"),
        ]
        assert (await app.memory.compact("t")).summaries == ()
    seen = [raw_turns(request) for request in mock_llm(Helper).requests]
    assert seen[4] == [2, 3, 4]
    assert seen[5] == [3, 4, 5]
    assert seen[6] == [4, 5, 6]
    assert seen[7] == [5, 6, 7]
    assert shown_summaries(mock_llm(Helper).requests[5]) == ["1–2"]


async def test_a_limit_of_none_shows_summaries_alone(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    mock_llm(Helper).then_return(*answers(4))
    mock_compaction.then_return("S1", "S2")
    async with agboss_app(desk(every=2, limit=0)) as app:
        await talk(app, 4)
    seen = mock_llm(Helper).requests
    assert [raw_turns(request) for request in seen] == [[], [], [], []]
    assert seen[1].messages[0].content == "task 2."
    assert seen[2].messages[0].content == ('Earlier turns:\n<summary turns="1–2">\nS1\n</summary>\n\nTask:\ntask 3.')


@agent(name="forgetful", model=MODEL, history_limit=0, history_summaries=0)
class Forgetful: ...


@agent(name="short", model=MODEL, history_limit=1)
class Short: ...


@agent(name="heir", model=MODEL)
class Heir: ...


def _pick(context: object) -> type:
    raise AssertionError("scripted")


@router(name="door", router=FunctionRouter(_pick))
class Door: ...


@workflow(
    name="many-desk",
    flow=[chain(TaskStart, Door), from_(Door).routes(Forgetful, Short, Heir, then=AnswerFinish)],
    defaults=Defaults(history=History(limit=3, summaries=1)),
    compaction=Compaction(every=2, keep=2, model=ModelSpec(MODEL)),
)
class ManyDesk: ...


async def test_an_agents_own_numbers_win_and_unset_ones_are_inherited(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction, mock_router: MockRouter
) -> None:
    mock_compaction.then_return("S1", "S2", "S3")
    mock_router(Door).then_return(*[route_to(Heir)] * 5, route_to(Forgetful), route_to(Short))
    mock_llm(Heir).then_return(*answers(5))
    mock_llm(Forgetful).then_return("answer 6.")
    mock_llm(Short).then_return("answer 7.")
    async with agboss_app(ManyDesk) as app:
        await talk(app, 7)
    heir = mock_llm(Heir).requests[-1]
    assert (raw_turns(heir), shown_summaries(heir)) == ([2, 3, 4], ["3–4"])
    assert mock_llm(Forgetful).requests[0].messages[0].content == "task 6."
    short = mock_llm(Short).requests[0]
    assert (raw_turns(short), shown_summaries(short)) == ([6], ["5–6"])
    assert "Q: task 6." in mock_router(Door).requests[-1].past
    assert "<summary" in mock_router(Door).requests[-1].past


async def test_more_summaries_than_are_kept_is_an_assembly_error() -> None:
    with pytest.raises(AssemblyError) as raised:
        create_app(desk(every=2, keep=2, summaries=3), store="memory://")
    assert raised.value.codes == ("history.summaries-above-keep",)

    @agent(name="greedy", model=MODEL, history_summaries=5)
    class Greedy: ...

    with pytest.raises(AssemblyError) as raised:
        create_app(desk(Greedy, every=2, keep=4), store="memory://")
    assert raised.value.codes == ("history.summaries-above-keep",)


async def test_keep_says_how_many_are_read_and_the_store_keeps_all(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    mock_llm(Helper).then_return(*answers(6))
    mock_compaction.then_return(*[f"S{number}" for number in range(1, 7)])
    async with agboss_app(desk(every=1, keep=2, limit=1)) as app:
        await talk(app, 6)
        assert [item.text for item in await app.memory.summaries("t")] == ["S1", "S2", "S3", "S4", "S5", "S6"]
        first = (await app.memory.summaries("t"))[0]
        assert (first.first, first.last, first.model, first.state) == (1, 1, MODEL, "active")
        assert first.prompt_hash
        assert first.tokens == 2
        assert first.usd == 0
    assert shown_summaries(mock_llm(Helper).requests[-1]) == ["4–4", "5–5"]


async def test_a_summary_is_counted_also_where_nothing_is_summarised_any_more(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    mock_llm(Helper).then_return(*answers(2))
    mock_compaction.then_return("Two words.")
    store = MemoryStore()
    async with agboss_app(desk(every=2), store=store) as app:
        await talk(app, 2)
    async with agboss_app(desk(every=None), store=store) as app:
        assert [one.tokens for one in await app.memory.summaries("t")] == [3]
