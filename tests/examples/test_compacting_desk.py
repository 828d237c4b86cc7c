import re
from pathlib import Path

import pytest
from example_process import run_example

from agboss import TaskStart
from agboss.testing import MakeApp, MockCompaction, MockLlm, reply
from examples.compacting_desk import CONVERSATION, CompactingDesk, Recaller, converse


def test_the_demo_shows_memory_at_work(tmp_path: Path) -> None:
    done = run_example(tmp_path, "compacting_desk.py", "--offline")
    assert done.returncode == 0, done.stderr
    turns = re.split(r"\n── ", done.stdout)
    assert [turn.partition(":")[0] for turn in turns[1:7]] == [f"Turn {number}" for number in range(1, 7)]
    answers = re.findall(r"^Answer: (.*)$", done.stdout, re.MULTILINE)
    assert answers == [
        "Noted: My name is Pavel. I live in Brno.",
        "I find nothing about that in what I can see.",
        "Noted: My train leaves at 18:40 from platform 7.",
        'You said: "My name is Pavel."',
        "Noted: Invoice 4711 is due on Friday.",
        'From the summary of turns 1–2: "I live in Brno."',
    ]
    assert re.findall(r"^memory: .*$", done.stdout, re.MULTILINE) == [
        "memory: turns 1–2 → summary 1/3",
        "memory: turns 3–4 → summary 2/3",
        "memory: turns 5–6 → summary 3/3",
    ]
    assert len(re.findall(r"^thread: [0-9a-f-]{36}$", done.stdout, re.MULTILINE)) == 1
    seen = turns[6].partition("Answer:")[0]
    assert "│ Q: My name is Pavel. I live in Brno." not in seen
    assert "│ My name is Pavel. I live in Brno." in seen
    assert "turns 5–6: Invoice 4711 is due on Friday." in turns[7]
    assert done.stderr.count("uses local:extractive") == 2
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


def test_without_a_key_it_says_what_to_do(tmp_path: Path) -> None:
    done = run_example(tmp_path, "compacting_desk.py")
    assert done.returncode == 1
    assert "OPENROUTER_API_KEY" in done.stderr
    assert "--offline" in done.stderr
    assert "Traceback" not in done.stderr


async def test_what_is_printed_is_what_the_model_read(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction, capsys: pytest.CaptureFixture[str]
) -> None:
    mock_llm(Recaller).then_return(*[reply(f"Answer {number}.") for number in range(1, 7)])
    mock_compaction.then_return("Summary one.", "Summary two.", "Summary three.")
    async with agboss_app(CompactingDesk) as app:
        await converse(app)
    printed = capsys.readouterr().out
    shown = [
        "\n".join(line.removeprefix("  │").removeprefix(" ") for line in turn.split("\n") if line.startswith("  │"))
        for turn in printed.split("\n── ")[1:7]
    ]
    assert shown == [request.messages[-1].content for request in mock_llm(Recaller).requests]


async def test_the_program_of_the_first_page(
    agboss_app: MakeApp, mock_llm: MockLlm, mock_compaction: MockCompaction
) -> None:
    mock_llm(Recaller).then_return(reply("Nice to meet you, Pavel."), reply("Pavel."), reply("Yes."))
    mock_compaction.then_return("The user is called Pavel.")
    async with agboss_app(CompactingDesk) as app:
        a = await app.execute(TaskStart, CONVERSATION[0][0])
        b = await app.execute(TaskStart, "What is my name?", thread=a.thread)
        assert b.memory == "turns 1–2 → summary 1/3"
        await app.execute(TaskStart, "Sure?", thread=a.thread)
    assert "The user is called Pavel." in mock_llm(Recaller).requests[-1].text
