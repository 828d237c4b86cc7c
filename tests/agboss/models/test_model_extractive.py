"""The extractive model: what is in sight is quoted, what is not is not answered."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from agboss.errors import ModelError
from agboss.models import CallSettings, ExtractiveModel, ModelRequest, ToolSchema
from agboss.models.extractive import NOTHING
from agboss_memory.messages import Message, ToolCall

PAST = """Earlier turns:
<summary turns="1–2">
I live in Brno. My dog is called Rex.
</summary>
Previous turns:
Q: My name is Pavel.
A: Noted: My name is Pavel.
Q: What is my name?
A: You said: "My name is Pavel."
Q: Book a flight to Oslo on 3.5.2026
and a hotel near the harbour.
A: [failed] the harbour is closed
Task:
"""


async def ask(*contents: str, system: str = "", **more: Any) -> str:
    messages = tuple(Message(role="user", content=content) for content in contents)
    request = ModelRequest(caller="helper", model="local:extractive", system=system, messages=messages, **more)
    return (await ExtractiveModel().generate(request)).text


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        ("What is my name?", 'You said: "My name is Pavel."'),
        ("what's my name", 'You said: "My name is Pavel."'),
        ("Tell me my name.", 'You said: "My name is Pavel."'),
        ("Where do I live?", 'From the summary of turns 1–2: "I live in Brno."'),
        ("Which city do I live in?", 'From the summary of turns 1–2: "I live in Brno."'),
        ("What is my dog's name?", 'From the summary of turns 1–2: "My dog is called Rex."'),
        ("Which flights did I book?", 'You said: "Book a flight to Oslo on 3.5.2026"'),
        ("What is my cat's name?", NOTHING),
        ("Is the harbour closed?", 'You said: "and a hotel near the harbour."'),
        ("Who am I?", NOTHING),
        ("Sure?", NOTHING),
        ("?", NOTHING),
    ],
)
async def test_answers_from_the_view_alone(task: str, answer: str) -> None:
    assert await ask(PAST + task) == answer


async def test_a_task_without_a_past_finds_nothing_or_is_noted() -> None:
    assert await ask("What is my name?") == NOTHING
    assert await ask("My name is Pavel.") == "Noted: My name is Pavel."
    assert len(await ask("word " * 500)) < 250


@pytest.mark.parametrize(
    "task",
    ["Name: Pavel", "When I was young I lived in Brno.", "Remember that I like tea!", "So I said yes.", "Is: a verb"],
)
async def test_statements_are_noted(task: str) -> None:
    assert await ask(task) == f"Noted: {task}"


async def test_a_task_may_hold_its_own_answer() -> None:
    assert await ask("My name is Pavel. What is my name?") == 'You said: "My name is Pavel."'


async def test_the_newest_statement_wins_a_tie() -> None:
    past = "Previous turns:\nQ: My name is Pavel.\nA: ok\nQ: My name is Petr.\nA: ok\nTask:\nWhat is my name?"
    assert await ask(past) == 'You said: "My name is Petr."'


async def test_what_the_user_stated_beats_an_answer_and_quotes_do_not_nest() -> None:
    past = (
        "Previous turns:\nQ: The code is 42.\nA: Your code is 42.\nQ: Which code?\n"
        'A: You said: "The code is 42."\nTask:\nWhich code is it?'
    )
    assert await ask(past) == 'You said: "The code is 42."'
    only_answer = "Previous turns:\nQ: Which code?\nA: Your code is 42.\nTask:\nWhich code is it?"
    assert await ask(only_answer) == 'I answered: "Your code is 42."'


async def test_a_question_that_was_asked_before_answers_nothing() -> None:
    past = f"Previous turns:\nQ: What is the capital of France?\nA: {NOTHING}\nTask:\nWhat is the capital of France?"
    assert await ask(past) == NOTHING


async def test_recalled_texts_are_quoted_also_as_the_only_past() -> None:
    recalled = "Recalled:\n<recalled>\nI am allergic to nuts.\n</recalled>\n\nTask:\n"
    assert await ask(recalled + "What am I allergic to?") == 'I recall: "I am allergic to nuts."'
    assert await ask(recalled + "What is recalled?") == NOTHING
    told = "Previous turns:\nQ: It rains.\nA: Noted: It rains.\n\n" + recalled
    assert await ask(told + "What am I allergic to?") == 'I recall: "I am allergic to nuts."'
    assert await ask(told.replace("It rains", "I am allergic to cats") + "What am I allergic to?") == (
        'You said: "I am allergic to cats."'
    )


async def test_the_fence_of_a_result_is_not_part_of_it() -> None:
    view = 'Results so far:\n<result from="weather-desk">\nIt is mild in Oslo.\n</result>\n\nTask:\n'
    assert await ask(view + "Is it mild in Oslo?") == 'An earlier step said: "It is mild in Oslo."'
    assert await ask(view + "What is the result of the weather desk?") == NOTHING


async def test_results_of_earlier_steps_are_quoted_but_not_their_quotes() -> None:
    view = (
        "Previous turns:\nQ: My name is Pavel.\nA: Noted: My name is Pavel.\nResults so far:\n"
        'recaller: You said: "My name is Pavel."\nweather: The weather in Oslo is mild.\nTask:\n'
    )
    assert await ask(view + "How is the weather?") == 'An earlier step said: "weather: The weather in Oslo is mild."'
    assert await ask(view + "What is my name?") == 'You said: "My name is Pavel."'


async def test_a_task_line_inside_an_old_turn_does_not_hide_the_task() -> None:
    past = "Previous turns:\nQ: Do this.\nTask: buy milk\nA: ok\nTask: What is my name?"
    assert await ask(past) == NOTHING


async def test_a_typed_start_is_read_by_its_texts() -> None:
    past = 'Previous turns:\nQ: {"note": "My name is Pavel.", "n": 3}\nA: ok\nTask:\n{"question": "What is my name?"}'
    assert await ask(past) == 'You said: "My name is Pavel."'
    assert await ask("[" * 5000)


async def test_reads_a_conversation_message_by_message() -> None:
    messages = (
        Message(role="user", content='This goes on.\n<summary messages="1–4">I live in Brno.</summary>'),
        Message(role="user", content="My name is Pavel."),
        Message(role="assistant", tool_calls=(ToolCall(id="1", name="weather"),)),
        Message(role="tool", content="The weather in Oslo is mild.", tool_call_id="1", tool_name="weather"),
        Message(role="assistant", content="Oslo is mild."),
        Message(role="user", content="How is the weather?"),
    )

    async def answer(*view: Message) -> str:
        return (await ExtractiveModel().generate(ModelRequest(caller="a", model="m", messages=view))).text

    assert await answer(*messages) == 'An earlier step said: "The weather in Oslo is mild."'
    assert await answer(*messages[:-1], Message(role="user", content="What is my name?")) == (
        'You said: "My name is Pavel."'
    )
    assert await answer(*messages[:-1], Message(role="user", content="Where do I live?")) == (
        'From the summary of turns 1–4: "I live in Brno."'
    )
    assert await answer(Message(role="user", content="How is the weather?"), messages[2], messages[3]) == (
        'An earlier step said: "The weather in Oslo is mild."'
    )


async def test_a_summary_in_the_system_prompt_is_seen_and_its_other_text_is_not() -> None:
    system = 'My name is System.\n<summary messages="1–2">My name is Pavel.</summary>'
    assert await ask("What is my name?", system=system) == 'From the summary of turns 1–2: "My name is Pavel."'


TURNS = """Summarise the turns.
Turns before (context only):
Q: I am forty.
A: ok
Turns to summarise:
Q: My name is Pavel. Do you like it?
A: Noted: My name is Pavel.
Q: Weather in Oslo?
A: Oslo is mild today.
Q: What is my name?
A: You said: "My name is Pavel."
"""


async def test_compaction_picks_statements_the_users_first() -> None:
    assert await ask(TURNS, purpose="compaction") == "My name is Pavel. Oslo is mild today."


async def test_compaction_stays_within_its_tokens() -> None:
    settings = CallSettings(max_tokens=6)
    assert await ask(TURNS, purpose="compaction", settings=settings) == "My name is Pavel."
    long = "Turns to summarise:\nQ: " + "word " * 300 + "\nA: ok"
    cut = await ask(long, purpose="compaction", settings=CallSettings(max_tokens=10))
    assert cut.startswith("ok") or cut.endswith("…")
    assert len(cut) <= 40


async def test_compaction_of_questions_alone_keeps_the_first_task() -> None:
    prompt = f"Turns to summarise:\nQ: What is my name?\nA: {NOTHING}\nQ: Sure?\nA: {NOTHING}"
    assert await ask(prompt, purpose="compaction") == "What is my name?"


async def test_compaction_of_any_other_prompt_is_not_empty() -> None:
    assert await ask("My name is Pavel.", "Write a summary.", purpose="compaction")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\ud800",
        "…",
        "日本語。" * 50,
        " " * 100_000,
        "a" * 100_000,
        "a." * 50_000,
        "a" + "." * 50_000,
        "<summary>" * 20_000,
        "Q:\nA:\nQ:",
    ],
)
async def test_any_text_is_taken(text: str) -> None:
    assert await ask(text)
    await ask(f"Previous turns:\nQ: {text}\nA: {text}\nTask:\n{text}?")
    summary = await ask(
        f"Turns to summarise:\nQ: {text}\nA: x", purpose="compaction", settings=CallSettings(max_tokens=8)
    )
    assert len(summary) <= 32


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
}


async def test_fills_a_schema_of_texts() -> None:
    text = await ask(PAST + "What is my name?", output_schema=SCHEMA)
    assert json.loads(text) == {"name": 'You said: "My name is Pavel."'}


UNFILLABLE: list[dict[str, Any]] = [
    {**SCHEMA, "required": ["name", "age"]},
    {**SCHEMA, "properties": {"name": {"type": "string", "enum": ["a"]}}},
    {**SCHEMA, "properties": {}},
    {"type": "array", "items": {"type": "string"}},
]


@pytest.mark.parametrize("schema", UNFILLABLE)
async def test_says_that_it_cannot_fill_any_other_schema(schema: dict[str, Any]) -> None:
    with pytest.raises(ModelError) as caught:
        await ask("What is my name?", output_schema=schema)
    assert caught.value.code == "model.cannot"
    assert "'helper'" in caught.value.message
    assert caught.value.hint


async def test_streams_ignores_tools_and_costs_nothing() -> None:
    pieces: list[str] = []
    request = ModelRequest(
        caller="a",
        model="m",
        messages=(Message(role="user", content=PAST + "What is my name?"),),
        tools=(ToolSchema(name="t", description="", parameters={}),),
        on_text=pieces.append,
    )
    reply = await ExtractiveModel().generate(request)
    assert len(pieces) > 1
    assert "".join(pieces) == reply.text
    assert reply.tool_calls == ()
    assert reply.usage.free
    assert reply.usage.usd is None or reply.usage.usd == Decimal(0)
    assert reply.usage.input_tokens > reply.usage.output_tokens > 0
