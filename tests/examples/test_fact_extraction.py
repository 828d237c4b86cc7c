import sqlite3
from pathlib import Path

import pytest
from example_process import run_example

from agboss.testing import MakeApp, MockLlm, reply
from examples.fact_extraction import FACTS_VARIABLE, FactDesk, FactKeeper, open_facts, stated


@pytest.fixture(autouse=True)
def facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "facts.db"
    monkeypatch.setenv(FACTS_VARIABLE, str(path))
    return path


def test_a_fact_outlives_its_turn_and_stays_with_its_owner(tmp_path: Path) -> None:
    done = run_example(tmp_path, "fact_extraction.py", "--offline")
    assert done.returncode == 0, done.stderr
    assert 'ada> What am I allergic to?\n     I recall: "I am allergic to nuts."' in done.stdout
    assert "bob> What am I allergic to?\n     I find nothing about that in what I can see." in done.stdout
    assert "  │ <recalled>\n  │ I am allergic to nuts.\n  │ </recalled>" in done.stdout


async def test_facts_are_recalled_per_thread_and_owner(agboss_app: MakeApp, mock_llm: MockLlm, facts: Path) -> None:
    mock_llm(FactKeeper).then_return(*[reply(f"Answer {number}.") for number in range(1, 6)])
    async with agboss_app(FactDesk) as app:
        ada = await app.execute("I am allergic to nuts.", owner="ada")
        await app.execute("What a day?", thread=ada.thread, owner="ada")
        await app.execute("What am I allergic to?", thread=ada.thread, owner="ada")
        await app.execute("What am I allergic to?", owner="ada")
        await app.execute("What am I allergic to?", owner="bob")
    read = [request.text for request in mock_llm(FactKeeper).requests]
    assert "<recalled>\nI am allergic to nuts.\n</recalled>" in read[2]
    assert "nuts" not in read[3] + read[4]
    with sqlite3.connect(facts) as connection:
        assert connection.execute("SELECT owner, thread, fact FROM facts").fetchall() == [
            ("ada", ada.thread, "I am allergic to nuts.")
        ]
    connection.close()


async def test_a_turn_that_comes_again_is_written_once() -> None:
    async with open_facts() as store:
        for _ in range(2):
            await store.add(None, "t", "t/1/s", ["A.", "B."])
        await store.add("ada", "t", "t/1/s", ["C."])
        assert await store.recall(None, "t") == ("A.", "B.")
        assert await store.recall(None, "t", limit=1) == ("B.",)
        assert await store.recall("ada", "t") == ("C.",)


def test_a_question_states_nothing() -> None:
    assert stated("My dog is Bruno. Is he old? He barks!") == ["My dog is Bruno.", "He barks!"]
    assert stated("") == []
