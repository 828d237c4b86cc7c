"""Promises 9 and 11: no text closes a fence, and every text goes in and comes out as it was."""

from __future__ import annotations

import asyncio
import json
import tempfile
from dataclasses import replace

import pytest
from desks import MODEL, Helper, desk
from hypothesis import example, given
from hypothesis import strategies as st

from agboss import AnswerFinish, TaskStart, agent, chain, create_app, tool, workflow
from agboss.events import Answered, TextDelta
from agboss.testing import ScriptedModels, call_tool, reply
from agboss_memory import MemoryView, Summary, Tern
from agboss_memory.render import FENCES, fence, joined, view_rows
from agboss_memory.testing import texts
from agboss_memory.testing.promises.trust import fences

JUNK = st.text(
    st.sampled_from([" ", "\t", "\n", "/", "\\", "\u200b", "\u00ad", "\ufeff", "!", "\x00", "\u2060"]), max_size=3
)
OPENINGS = st.sampled_from(["<", "\uff1c", "\ufe64", "<<", "&lt<"])


@st.composite
def look_alikes(draw: st.DrawFn) -> str:
    """Something that reads like one of the tags."""
    name = draw(st.sampled_from(FENCES))
    letters = [
        draw(st.sampled_from([letter, letter.upper(), chr(ord(letter) + 0xFEE0)]))
        + draw(st.sampled_from(["", "", "", "\u200d"]))
        for letter in name
    ]
    ending = draw(st.sampled_from([">", " >", "/>", "\uff1e", "\n>", ' turns="1">', "", "\x00>"]))
    return draw(OPENINGS) + draw(JUNK) + "".join(letters) + ending


@given(before=texts(longest=9), tag=look_alikes(), after=texts(longest=9), name=st.sampled_from(FENCES))
@example(before="", tag="</summary>", after="", name="summary")
@example(before="", tag="</ſummary>", after="", name="summary")
def test_promise_9_nothing_reads_like_a_tag_inside_a_fence(before: str, tag: str, after: str, name: str) -> None:
    fenced = fence(name, before + tag + after)
    assert len(fences(fenced)) == 2
    assert fenced.startswith(f"<{name}>\n")
    assert fenced.endswith(f"\n</{name}>\n")


@given(texts=st.lists(st.one_of(look_alikes(), texts(longest=9)), min_size=3, max_size=3))
def test_promise_9_a_view_has_the_tags_that_the_framework_made(texts: list[str]) -> None:
    view = MemoryView(summaries=(Summary(first=1, last=2, text=texts[0]),), recalled=(texts[1],))
    text = joined(view_rows(view, "task", [('"><result>', texts[2])]))
    assert len(fences(text)) == 6


@pytest.mark.parametrize("text", ["a < b and c > d", "<div>x</div>", "<results>", "1 <2 >3", "x</p>"])
def test_other_text_is_left_as_it_is(text: str) -> None:
    assert fence("summary", text) == f"<summary>\n{text}\n</summary>\n"


@tool
def echo(text: str) -> str:
    """Gives something back."""
    return RESULTS[int(text)]


RESULTS: list[str] = []


@agent(name="echoing", model=MODEL, tools=[echo])
class Echoing: ...


@workflow(name="echo-desk", flow=[chain(TaskStart, Echoing, AnswerFinish)])
class EchoDesk: ...


async def _round_trip(url: str, task: str, answer: str, result: str, summary: str) -> None:
    RESULTS[:] = [result]
    models = ScriptedModels()
    models.llm(Echoing).then_return(call_tool(echo, text="0"), reply(answer))
    async with create_app(EchoDesk, store=url, models=models) as app:
        first = await app.execute(task)
        assert first.answer == answer
        exported = await app.threads.export(first.thread)
    async with create_app(EchoDesk, store=url, models=models) as app:
        if not url.startswith("memory"):
            exported = await app.threads.export(first.thread)
        assert json.loads(json.dumps(exported.to_dict()))["thread"]["id"] == first.thread
    tern = exported.thread.terns[0]
    assert (tern.task, tern.answer) == (task, answer)
    assert [message.content for message in exported.messages] == [task, "", result, answer]
    models.verify()
    await _summary_round_trip(url, task, answer, summary)


async def _summary_round_trip(url: str, task: str, answer: str, summary: str) -> None:
    models = ScriptedModels()
    models.llm(Helper).then_return(reply(answer), reply("ok"))
    models.compaction.then_return(reply("S" + summary + "S"))
    async with create_app(desk(every=1, keep=2, name="summary-desk"), store=url, models=models) as app:
        async with app.stream(task) as run:
            events = [event async for event in run]
            first = await run.result()
        for event in events:
            event.model_dump_json()
        assert first.memory == "turns 1–1 → summary 1/2", first.warnings
        assert (await app.memory.summaries(first.thread))[0].text == "S" + summary + "S"
        assert (await app.memory.view(first.thread)).messages
        models.compaction.then_return("T")
        await app.execute("again", thread=first.thread)
    models.verify()


HARD = texts(longest=99)


@given(task=HARD, answer=HARD, result=HARD, summary=HARD)
def test_promise_11_any_text_round_trips_in_memory(task: str, answer: str, result: str, summary: str) -> None:
    asyncio.run(_round_trip("memory://", task or "?", answer or "!", result or ".", summary))


@given(task=HARD, answer=HARD, result=HARD, summary=HARD)
def test_promise_11_any_text_round_trips_on_disk(task: str, answer: str, result: str, summary: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_round_trip(f"sqlite:///{folder}/a.db", task or "?", answer or "!", result or ".", summary))


@given(text=texts(longest=9))
def test_promise_11_every_event_can_be_written(text: str) -> None:
    for event in (TextDelta(text=text), Answered(answer=text, status="answered")):
        assert type(event).model_validate_json(event.model_dump_json()) == event


@given(task=texts(longest=9), answer=texts(longest=9))
def test_any_turn_can_be_shown(task: str, answer: str) -> None:
    view = MemoryView(history=(Tern(number=1, task=task, answer=answer),))
    assert answer in joined(view_rows(replace(view), "next"))
