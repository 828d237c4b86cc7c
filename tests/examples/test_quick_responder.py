from pathlib import Path

from example_process import run_example

from agboss.testing import MakeApp, MockLlm, reply
from examples.quick_responder import CONVERSATION, QuickDesk, QuickResponder


def test_two_turns_and_no_more(tmp_path: Path) -> None:
    done = run_example(tmp_path, "quick_responder.py", "--offline")
    assert done.returncode == 0, done.stderr
    assert '2. When is the meeting?\n   You said: "The meeting is on Monday."' in done.stdout
    assert "5. When is the meeting?\n   I find nothing about that in what I can see." in done.stdout
    assert "The next turn will see turns [4, 5]; left out: [(1, 3)]" in done.stdout


def test_without_a_key(tmp_path: Path) -> None:
    done = run_example(tmp_path, "quick_responder.py")
    assert done.returncode == 1
    assert "OPENAI_API_KEY" in done.stderr


async def test_the_model_reads_the_last_two_turns(agboss_app: MakeApp, mock_llm: MockLlm) -> None:
    mock_llm(QuickResponder).then_return(*[reply(f"Answer {number}.") for number in range(1, 6)])
    thread = None
    async with agboss_app(QuickDesk) as app:
        for task in CONVERSATION:
            thread = (await app.execute(task, thread=thread)).thread
    read = mock_llm(QuickResponder).requests[-1].text
    assert "Answer 3." in read
    assert "Answer 4." in read
    assert "Answer 2." not in read
